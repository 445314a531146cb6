//! How the log is configured: `[log]`.

use std::path::Path;

use tracing::Level;

/// `[log]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// `level`: events below it are not logged.
    pub level: Level,
    /// `to`: where lines go, beside stderr.
    pub to: To,
    /// `format`: their form on the syslog socket.
    pub format: Format,
    /// `enterprise-number`: whose structured data it is; without one a line has only what IANA has registered.
    pub enterprise: Option<u32>,
    /// `lines-per-minute` of one cause; 0 is without a limit.
    pub lines_per_minute: u32,
}

/// Where lines go, beside stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// journald where it listens, else syslog.
    Auto,
    /// The syslog socket.
    Syslog,
    /// journald's own socket.
    Journald,
    /// Nowhere else.
    Stderr,
}

impl To {
    /// What shows the log that goes there.
    pub fn how_to_read(self) -> &'static str {
        let has_journald = || Path::new(super::journald::SOCKET).exists();
        match self {
            Self::Journald => "`journalctl -t nova-host-alerter`",
            Self::Auto if has_journald() => "`journalctl -t nova-host-alerter`",
            Self::Auto | Self::Syslog => "`grep -rs nova-host-alerter /var/log`",
            Self::Stderr => "stderr of the process that started it",
        }
    }
}

/// The form of a line on the syslog socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// As syslog(3) writes it, which is what every daemon takes on /dev/log.
    Rfc3164,
    /// The newer one, with structured data.
    Rfc5424,
}

impl Default for Rules {
    fn default() -> Self {
        let (to, format) = (To::Auto, Format::Rfc3164);
        Self { level: Level::INFO, to, format, enterprise: None, lines_per_minute: LINES_PER_MINUTE }
    }
}

/// Enough for each host of a storm of a hundred.
pub const LINES_PER_MINUTE: u32 = 100;
