//! The keys of the register's seals: secrets that only root can read, the same on every controller.

use std::path::{Path, PathBuf};

use register::SealKeys;

use crate::file::read_private;

/// Corosync's, if the cluster has one.
pub const CLUSTER_KEY: &str = "/etc/corosync/authkey";
/// Shorter lines are no secrets: 128 bits in hexadecimal digits.
const LINE_MIN: usize = 32;

/// Our own keys, one on each line: beside the configuration. They go before the cluster's, so that either can be changed.
pub fn own_keys(config: &Path) -> PathBuf {
    config.with_file_name("register.key")
}

/// In our own file, the place of the cluster's key; without it that key goes last.
const COROSYNC: &str = "corosync";

/// The usable keys of these files, and one sentence for each unusable file.
pub fn seal_keys(own: &Path, cluster: &Path) -> (SealKeys, Vec<String>) {
    let (found, complaints) = secrets(own, cluster);
    (SealKeys::derive(found.iter().map(|(_, secret)| secret.as_slice())), complaints)
}

/// The same for the files of a configuration.
pub fn keys_beside(config: &Path) -> (SealKeys, Vec<String>) {
    seal_keys(&own_keys(config), Path::new(CLUSTER_KEY))
}

/// The file whose first key seals.
pub fn sealing_file<'a>(own: &'a Path, cluster: &'a Path) -> Option<&'a Path> {
    secrets(own, cluster).0.first().map(|(path, _)| *path)
}

/// Every secret in order, with its file.
fn secrets<'a>(own: &'a Path, cluster: &'a Path) -> (Vec<(&'a Path, Vec<u8>)>, Vec<String>) {
    let mut complaints = Vec::new();
    let lines = read(own, lines, &mut complaints).unwrap_or_default();
    let of_cluster = read(cluster, whole, &mut complaints);
    let is_placed = lines.iter().any(|line| *line == COROSYNC.as_bytes());
    let last = of_cluster.clone().filter(|_| !is_placed).map(|secret| (cluster, secret));
    let in_order = lines.into_iter().filter_map(|line| match line == COROSYNC.as_bytes() {
        true => of_cluster.clone().map(|secret| (cluster, secret)),
        false => Some((own, line)),
    });
    (in_order.chain(last).collect(), complaints)
}

/// The content of a file that exists and can be used.
fn read<T>(
    path: &Path,
    parse: impl Fn(Vec<u8>) -> Result<T, String>,
    complaints: &mut Vec<String>,
) -> Option<T> {
    if !path.exists() {
        return None;
    }
    let parsed = read_private(path).and_then(parse);
    parsed
        .map_err(|why| {
            complaints.push(format!("the register's key in {} is not used: {why}", path.display()));
        })
        .ok()
}

/// Lines that begin with `#` are comments.
fn lines(text: Vec<u8>) -> Result<Vec<Vec<u8>>, String> {
    let text = String::from_utf8(text).map_err(|_| "it is not text".to_owned())?;
    let lines: Vec<&str> =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    if lines.is_empty() || lines.iter().any(|line| *line != COROSYNC && line.len() < LINE_MIN) {
        return Err(format!(
            "each line must be a secret of at least {LINE_MIN} characters (`openssl rand -hex 32` makes one), or `{COROSYNC}`"
        ));
    }
    Ok(lines.into_iter().map(|line| line.as_bytes().to_vec()).collect())
}

fn whole(bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    if bytes.len() < LINE_MIN { Err("it is too short to be Corosync's".to_owned()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const LINE: &str = "0123456789abcdef0123456789abcdef";

    /// The keys of these two files, each optional.
    fn keys(own: Option<&str>, cluster: Option<&str>, mode: u32) -> (SealKeys, Vec<String>) {
        with_files(own, cluster, mode, seal_keys)
    }

    fn with_files<T>(
        own: Option<&str>,
        cluster: Option<&str>,
        mode: u32,
        ask: impl Fn(&Path, &Path) -> T,
    ) -> T {
        let dir = tempfile::tempdir().unwrap();
        let [first, second] = ["register.key", "authkey"].map(|name| dir.path().join(name));
        for (path, text) in [(&first, own), (&second, cluster)] {
            let Some(text) = text else { continue };
            fs::write(path, text).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        ask(&first, &second)
    }

    #[test]
    fn the_own_file_seals_where_it_can_be_used() {
        let cluster = "c".repeat(128);
        let name = |own, cluster, mode| {
            with_files(own, cluster, mode, |own, cluster| {
                sealing_file(own, cluster).map(|path| path.file_name().unwrap().to_owned())
            })
        };
        assert_eq!(name(Some(LINE), Some(&cluster), 0o600).unwrap(), "register.key");
        assert_eq!(name(Some("short"), Some(&cluster), 0o600).unwrap(), "authkey");
        assert_eq!(name(None, Some(&cluster), 0o600).unwrap(), "authkey");
        assert_eq!(name(Some(LINE), None, 0o644), None);
    }

    fn opened(keys: &SealKeys, by: &SealKeys) -> bool {
        by.opens("p", "t", &keys.seal("p", "t").unwrap())
    }

    /// An own key is added on one controller after the other, behind the cluster's first: each opens the other's.
    #[test]
    fn an_own_key_goes_before_the_clusters_and_both_open() {
        let cluster = "c".repeat(128);
        let of_cluster = keys(None, Some(&cluster), 0o400).0;
        let both = keys(Some(&format!("# of May\n{LINE}\n")), Some(&cluster), 0o600).0;
        let own = keys(Some(LINE), None, 0o600).0;
        assert!(opened(&of_cluster, &both) && opened(&own, &both) && opened(&both, &own));
        assert!(!opened(&both, &of_cluster), "its first key is the own one");
        assert_eq!(both.digest(), own.digest());
    }

    #[test]
    fn own_keys_stand_beside_the_configuration() {
        assert_eq!(own_keys(Path::new(crate::CONFIG_PATH)), Path::new("/etc/nova-host-alerter/register.key"));
        assert_eq!(own_keys(Path::new("alerter.toml")), Path::new("register.key"));
    }

    /// From the cluster's key to our own, one step on one controller after the other: at each moment each opens what any
    /// other seals. The broken variant begins with a file without the word, which seals with a key that the others do not
    /// have yet.
    #[test]
    fn the_clusters_key_is_changed_for_an_own_one_without_a_gap() {
        let cluster = "c".repeat(128);
        let at = |own: Option<&str>| keys(own, Some(&cluster), 0o600).0;
        let (last, both, first) =
            (format!("corosync\n{LINE}\n"), format!("{LINE}\ncorosync\n"), LINE.to_owned());
        let steps = [None, Some(&*last), Some(&*both), Some(&*first)];
        for pair in steps.windows(2) {
            let (before, after) = (at(pair[0]), at(pair[1]));
            assert!(opened(&before, &after) && opened(&after, &before), "{pair:?}");
        }
        assert!(!opened(&at(Some(&first)), &at(None)), "the broken variant");
        let file = |own: &str| {
            with_files(Some(own), Some(&cluster), 0o600, |own, cluster| {
                sealing_file(own, cluster) == Some(cluster)
            })
        };
        assert_eq!((file(&last), file(&both)), (true, false));
    }

    #[test]
    fn what_is_no_secret_is_not_used_and_said_without_it() {
        let cases = [
            (Some("short-secret"), 0o600, "at least 32"),
            (Some("# nothing\n"), 0o600, "at least 32"),
            (Some(LINE), 0o640, "chmod 600"),
            (Some("\u{0}"), 0o644, "chmod 600"),
        ];
        for (own, mode, word) in cases {
            let (keys, complaints) = keys(own, None, mode);
            let [why] = complaints.as_slice() else { panic!("{complaints:?}") };
            assert!(keys.is_empty() && why.contains(word), "{why}");
            assert!(!complaints[0].contains("short-secret"), "{complaints:?}");
        }
        let (keys, complaints) = keys(None, None, 0o600);
        assert!(keys.is_empty() && complaints.is_empty());
    }
}
