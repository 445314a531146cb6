//! The few settings of `alerter.toml` for the fence agent and the reading commands, read so that no typo stops them.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use marks::register::Register;
use register::Etcd;
use toml::de::{DeTable, DeValue};

use crate::etcd;
use crate::file::{DEFAULT_STORE, MAX_BYTES, fragment_directory, fragment_files};

/// The highest value of a setting of `[intake]`.
const MAX_SECONDS: u64 = 86_400;

/// Their part of the site's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// `[store] path`: the journal.
    pub store: PathBuf,
    /// `[store] register`, unparsed.
    pub register: Option<String>,
    /// `[store.etcd]`, if it is valid.
    pub etcd: Option<Etcd>,
    /// `[hosts] domain`, unparsed.
    pub domain: Option<String>,
    /// `[intake] coalesce`.
    pub coalesce: Option<Duration>,
    /// `[intake] horizon`.
    pub horizon: Option<Duration>,
}

impl Default for Site {
    fn default() -> Self {
        let store = PathBuf::from(DEFAULT_STORE);
        Self { store, register: None, etcd: None, domain: None, coalesce: None, horizon: None }
    }
}

impl Site {
    /// Reads a configuration file and the `*.toml` files of `alerter.d` beside it, in the order of their names; the last
    /// value of a setting counts. An unusable file causes a warning and is ignored. A missing file counts as empty.
    pub fn read(config: &Path) -> (Self, Vec<String>) {
        let mut site = Self::default();
        let (mut warnings, mut names_etcd) = (Vec::new(), false);
        for file in std::iter::once(config.to_owned()).chain(fragments(config, &mut warnings)) {
            match text_of(&file) {
                Ok(text) => {
                    names_etcd |= text.contains(Register::Etcd.as_str());
                    site.take(&text, &file, &mut warnings);
                }
                Err(Unusable::Absent) => {}
                Err(Unusable::Because(why)) => warnings.push(warning(&file, &why)),
            }
        }
        // Whatever the register is: the agent's options may set another one.
        if names_etcd {
            site.find_etcd(config, &mut warnings);
        }
        (site, warnings)
    }

    fn find_etcd(&mut self, config: &Path, warnings: &mut Vec<String>) {
        let (etcd, wrong) = etcd::alone(config);
        warnings.extend(wrong);
        self.etcd = etcd;
    }

    /// No message shows any part of the text: it may be secret. A fault somewhere in a file must not send marks to a
    /// journal that no alerter reads: the readable parts count, except those that a fault touches.
    fn take(&mut self, text: &str, file: &Path, warnings: &mut Vec<String>) {
        let (document, faults) = DeTable::parse_recoverable(text);
        if let Some(first) = faults.first() {
            let at = line(text, first.span());
            warnings.push(format!(
                "{}: it is not valid TOML{at}; the rest is used here, run `nova-host-alerter check-config`",
                file.display()
            ));
        }
        let value = |section: &str, key: &str| {
            let value = document.get_ref().get(section)?.get_ref().as_table()?.get(key)?;
            let is_hurt = faults.iter().any(|fault| touches(text, fault.span(), &value.span()));
            (!is_hurt).then(|| value.get_ref())
        };
        let mut setting = |place: &mut Option<String>, section: &str, key: &str| match value(section, key) {
            Some(DeValue::String(text)) => *place = Some(text.to_string()),
            Some(_) => warnings.push(warning(file, &format!("{section}.{key} is not text"))),
            None => {}
        };
        let mut store = None;
        setting(&mut store, "store", "path");
        setting(&mut self.register, "store", "register");
        setting(&mut self.domain, "hosts", "domain");
        self.store = store.map_or_else(|| std::mem::take(&mut self.store), PathBuf::from);
        for (place, key) in [(&mut self.coalesce, "coalesce"), (&mut self.horizon, "horizon")] {
            match value("intake", key).map(seconds) {
                Some(Some(seconds)) => *place = Some(seconds),
                Some(None) => {
                    warnings.push(warning(file, &format!("intake.{key} is not a number of seconds")));
                }
                None => {}
            }
        }
    }
}

/// Limited to the daemon's range.
fn seconds(value: &DeValue<'_>) -> Option<Duration> {
    let number = value.as_integer().filter(|number| number.radix() == 10)?;
    let seconds = number.as_str().parse().ok().filter(|seconds| (1..=MAX_SECONDS).contains(seconds))?;
    Some(Duration::from_secs(seconds))
}

fn warning(file: &Path, why: &str) -> String {
    format!("{}: {why}; it is not used here, run `nova-host-alerter check-config`", file.display())
}

fn fragments(config: &Path, warnings: &mut Vec<String>) -> Vec<PathBuf> {
    let listed = fragment_files(config);
    listed.unwrap_or_else(|e| {
        warnings.push(warning(&fragment_directory(config), &e.to_string()));
        Vec::new()
    })
}

enum Unusable {
    Absent,
    Because(String),
}

fn text_of(file: &Path) -> Result<String, Unusable> {
    let because = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound => Unusable::Absent,
        _ => Unusable::Because(e.to_string()),
    };
    let meta = fs::metadata(file).map_err(because)?;
    if !meta.is_file() || meta.len() > MAX_BYTES {
        return Err(Unusable::Because("it is not a plain file, or too large".to_owned()));
    }
    fs::read_to_string(file).map_err(because)
}

/// Whether a fault is on a line of a value, or its line is unknown.
fn touches(text: &str, fault: Option<Range<usize>>, value: &Range<usize>) -> bool {
    let Some(fault) = fault else { return true };
    let line_begins = text.get(..value.start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
    let line_ends =
        text.get(value.end..).and_then(|rest| rest.find('\n')).map_or(text.len(), |at| value.end + at);
    fault.start <= line_ends && line_begins <= fault.end
}

fn line(text: &str, span: Option<Range<usize>>) -> String {
    let before = span.and_then(|span| text.get(..span.start));
    before.map_or_else(String::new, |before| format!(" (line {})", before.matches('\n').count() + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("alerter.d")).unwrap();
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
        }
        dir
    }

    fn read(dir: &tempfile::TempDir) -> (Site, Vec<String>) {
        Site::read(&dir.path().join("alerter.toml"))
    }

    #[test]
    fn without_a_file_the_built_in_values_hold_and_nothing_is_said() {
        let dir = directory(&[]);
        assert_eq!(read(&dir), (Site::default(), vec![]));
        assert_eq!(Site::read(Path::new("/nonexistent/alerter.toml")), (Site::default(), vec![]));
    }

    /// A broken file costs its own settings and a warning, never the mark; its content is not shown.
    #[test]
    fn a_broken_file_is_passed_over() {
        let dir = directory(&[
            ("alerter.toml", "[store]\npath = \"/a\"\n"),
            ("alerter.d/10.toml", "[http.x]\nsecret = \"s3kr1t\n"),
            ("alerter.d/20.toml", "[hosts]\ndomain = 7\n"),
        ]);
        fs::create_dir(dir.path().join("alerter.d/30.toml")).unwrap();
        let (site, warnings) = read(&dir);
        assert_eq!(site.store, PathBuf::from("/a"));
        assert_eq!(warnings.len(), 3, "{warnings:?}");
        assert!(warnings[0].contains("10.toml") && warnings[0].contains("line 2"), "{warnings:?}");
        assert!(!warnings.concat().contains("s3kr1t"));
    }

    /// An agent that wrote to the default journal, beside an alerter that reads another one, would lose the host if there
    /// is no register. The broken variant ignores the whole file.
    #[test]
    fn a_fault_elsewhere_in_the_file_does_not_move_the_journal() {
        let [before, behind] = ["[http.x]\nurl = \n", "[http.x\nurl = 1\n"];
        let store = "[store]\npath = \"/a\"\nregister = \"none\"\n";
        for text in [format!("{before}{store}"), format!("{store}{before}"), format!("{store}{behind}")] {
            let dir = directory(&[("alerter.toml", &text)]);
            let (site, warnings) = read(&dir);
            assert_eq!((site.store.to_str(), site.register.as_deref()), (Some("/a"), Some("none")), "{text}");
            assert!(warnings.len() == 1 && warnings[0].contains("not valid TOML"), "{warnings:?}");
        }
    }

    #[test]
    fn the_rules_of_an_outage_are_read_as_the_daemon_reads_them() {
        let dir = directory(&[
            ("alerter.toml", "[intake]\ncoalesce = 60\nhorizon = 3_600\n"),
            ("alerter.d/10.toml", "[intake]\ncoalesce = 90\nhorizon = 0\n"),
        ]);
        let (site, warnings) = read(&dir);
        let times = [site.coalesce, site.horizon].map(Option::unwrap);
        assert_eq!(times.map(|time| time.as_secs()), [90, 3600]);
        assert!(
            warnings.len() == 1 && warnings[0].contains("intake.horizon is not a number"),
            "{warnings:?}"
        );
    }
}
