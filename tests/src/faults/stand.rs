//! An alerter of which nothing bad is said, and its endpoint: what every fault begins with.

use std::time::Duration;

use anyhow::{Context as _, ensure};

use crate::lab::wait;
use crate::programs::Site;
use crate::receiver::Receiver;

/// Longer than the longest wait between two attempts.
const LIMIT: Duration = Duration::from_secs(40);

/// A site with a fault, and what it takes to last.
pub struct Stand {
    /// The alerter.
    pub site: Site,
    /// The endpoint of route `recovery`, where it has one on loopback.
    pub receiver: Receiver,
}

impl Stand {
    /// Lays a site out with these tables, and does not start it.
    ///
    /// # Errors
    /// The files cannot be written, or there is no loopback.
    pub fn new(tables: impl FnOnce(&Receiver) -> String) -> anyhow::Result<Self> {
        let receiver = Receiver::on_loopback()?;
        let tables = tables(&receiver);
        Ok(Self { site: Site::with(&tables)?, receiver })
    }

    /// Starts it, and sees that all is well: the broken variant of every fault is this.
    ///
    /// # Errors
    /// It does not start, or something is wrong already.
    pub fn well(tables: impl FnOnce(&Receiver) -> String) -> anyhow::Result<Self> {
        let mut stand = Self::new(tables)?;
        stand.site.start()?;
        let (code, line) = check(&stand.site, &[])?;
        ensure!(
            code == 0 && line.starts_with("OK: No fenced host waits to be reported. | open=0;;;0 "),
            "{line}"
        );
        Ok(stand)
    }

    /// Waits until `status` has this word.
    pub(super) fn until_said(&self, word: &str) -> anyhow::Result<()> {
        wait::until(word, LIMIT, || Ok(self.says(word)?.then_some(())))
    }

    /// Waits until `status` does not have this word.
    pub(super) fn until_not_said(&self, word: &str) -> anyhow::Result<()> {
        wait::until(&format!("no {word}"), LIMIT, || Ok((!self.says(word)?).then_some(())))
    }

    fn says(&self, word: &str) -> anyhow::Result<bool> {
        Ok(String::from_utf8(self.site.alerter(&["status"])?.stdout)?.contains(word))
    }
}

/// A route to the receiver.
pub(super) fn http(receiver: &Receiver) -> String {
    format!("[http.recovery]\nurl = \"http://{}/v1/host-failures\"\n", receiver.address())
}

/// Exit code and line of `status --check`.
///
/// # Errors
/// It cannot be run, or was killed.
pub fn check(site: &Site, more: &[&str]) -> anyhow::Result<(i32, String)> {
    let output = site.alerter(&[&["status", "--check"], more].concat())?;
    let code = output.status.code().context("status was killed")?;
    Ok((code, String::from_utf8(output.stdout)?))
}
