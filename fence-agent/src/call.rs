//! One call of the agent: the caller, the options, and the paths.

use std::fs;
use std::time::{Duration, Instant};

use marks::register::Register;
use marks::time::Timestamp;
use register::SealKeys;
use site::Site;

use crate::failure::Failure;
use crate::given::Given;
use crate::paths::Paths;
use crate::report::Report;
use crate::settings::{self, Settings, SettingsError, Target, TargetError};
use crate::{cluster, guard};

/// The time limit of `off` and `monitor`, beside the requested delay.
pub const OWN_LIMIT: Duration = Duration::from_secs(20);

/// Everything for an action.
#[derive(Debug)]
pub struct Call {
    /// When the agent was started.
    pub asked_at: Timestamp,
    /// The same moment, by the clock of the time limits.
    pub started: Instant,
    /// Whether Pacemaker's fencer is the caller (`PCMK_service` is in the environment).
    pub from_fencer: bool,
    /// The options.
    pub given: Given,
    /// The paths.
    pub paths: Paths,
    /// The output.
    pub report: Report,
}

impl Call {
    /// The host.
    ///
    /// # Errors
    /// [`TargetError`]
    pub fn target(&self) -> Result<Target, TargetError> {
        Target::from_given(&self.given, &mut |text| self.report.warning(text))
    }

    /// The merged options and site settings. Faults only cause warnings here.
    ///
    /// # Errors
    /// [`SettingsError`]
    pub fn settings(&self) -> Result<Settings, SettingsError> {
        Ok(self.settings_and_site_complaints()?.0)
    }

    /// The same; unless a parameter sets the journal, it also returns why the site's configuration cannot be used: the
    /// default journal may not be the alerter's.
    ///
    /// # Errors
    /// [`SettingsError`]
    pub fn settings_and_site_complaints(&self) -> Result<(Settings, Vec<String>), SettingsError> {
        let (site, mut warnings) = Site::read(&self.paths.config);
        warnings.iter().for_each(|text| self.report.warning(text));
        let mut settings = Settings::new(&self.given, site)?;
        settings.keys = self.keys(settings.register());
        if self.given.filled("store").is_some() {
            warnings.clear();
        }
        Ok((settings, warnings))
    }

    /// An unusable or missing key must not prevent a mark.
    fn keys(&self, register: Register) -> SealKeys {
        if register == Register::None {
            return SealKeys::default();
        }
        let own = site::own_keys(&self.paths.config);
        let (keys, complaints) = site::seal_keys(&own, &self.paths.cluster_key);
        complaints.iter().for_each(|text| self.report.warning(text));
        keys
    }

    /// Whether the host may be marked, by its name and by corosync's nodelist.
    ///
    /// # Errors
    /// [`Failure`], also if the nodelist cannot be read.
    pub fn judge_name(&self, target: &Target) -> Result<(), Failure> {
        let nodes = cluster::corosync(&self.paths.corosync)?;
        Ok(guard::by_name(&target.node, &settings::hosts(&self.given)?, &nodes)?)
    }

    /// The time limit of the call, beside the requested delay.
    pub fn delay(&self) -> Duration {
        let seconds = self.given.get("delay").and_then(crate::given::whole).unwrap_or(0);
        Duration::from_secs(seconds.into())
    }
}

/// The name of this controller.
pub fn controller() -> String {
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}

/// The name under which the agent was called, for the metadata.
pub fn program_name(first_argument: Option<&std::ffi::OsStr>) -> String {
    let name = first_argument.map(std::path::Path::new).and_then(|path| path.file_name()?.to_str());
    name.filter(|name| !name.is_empty()).unwrap_or(crate::report::IDENT).to_owned()
}

/// Whether Pacemaker ever ran here: otherwise a shell's `monitor` only warns.
pub fn is_cluster_host(paths: &Paths) -> bool {
    fs::exists(&paths.cib).unwrap_or(true)
}

/// What the agent can be asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Mark the host.
    Off,
    /// Report whether the host may be marked, by its name alone.
    Status,
    /// Report whether a mark could be written now, and whether the fencing levels are right.
    Monitor,
    /// Print the metadata.
    Metadata,
    /// Print the metadata with the macros of a manual page.
    Manpage,
    /// Check the options.
    ValidateAll,
}

/// All of them, as in the metadata. Never `on`, `reboot` or `list`: Pacemaker would call them.
pub const ACTIONS: [(&str, Action); 6] = [
    ("off", Action::Off),
    ("status", Action::Status),
    ("monitor", Action::Monitor),
    ("metadata", Action::Metadata),
    ("manpage", Action::Manpage),
    ("validate-all", Action::ValidateAll),
];

impl Action {
    /// Reads an action's name, in any case. `meta-data` is OCF's word for `metadata`.
    pub fn parse(word: &str) -> Option<Self> {
        let word = word.to_ascii_lowercase();
        let word = if word == "meta-data" { "metadata" } else { &word };
        ACTIONS.iter().find(|(name, _)| *name == word).map(|(_, action)| *action)
    }

    /// Whether it only prints.
    pub fn is_document(self) -> bool {
        matches!(self, Self::Metadata | Self::Manpage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_any_case_and_nothing_else_is() {
        assert_eq!(Action::parse("OFF"), Some(Action::Off));
        assert_eq!(Action::parse("Meta-Data"), Some(Action::Metadata));
        for other in
            ["", " off", "off ", "on", "reboot", "enable", "disable", "list", "list-status", "o", "offf"]
        {
            assert_eq!(Action::parse(other), None, "{other:?}");
        }
    }
}
