//! The files: `recovery/MARK.json` beside the journal. They only explain, so a lost one is no fault; the journal's own rows
//! never depend on them.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use marks::id::MarkId;
use marks::recovery::Recovery;

/// The directory of the files.
#[derive(Clone, Debug)]
pub struct Kept(PathBuf);

impl Kept {
    /// Beside this journal.
    pub fn beside(journal: &Path) -> Self {
        Self(journal.with_file_name("recovery"))
    }

    /// What is known of a mark; `None` if nothing is, or if the file cannot be read.
    pub fn read(&self, mark: MarkId) -> Option<Recovery> {
        serde_json::from_slice(&fs::read(self.file(mark)).ok()?).ok()
    }

    /// Replaces what is known. A reader sees the old file or the new one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, mark: MarkId, recovery: &Recovery) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        let draft = self.0.join(format!(".{mark}.new"));
        let text = serde_json::to_vec(recovery).map_err(io::Error::other)?;
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all(&text)?;
        // Not synced: after a loss of power Nova is asked again.
        fs::rename(&draft, self.file(mark))
    }

    /// Removes the files of marks that are not in the journal any more. Returns how many.
    pub fn prune(&self, is_there: impl Fn(MarkId) -> bool) -> usize {
        let Ok(entries) = fs::read_dir(&self.0) else { return 0 };
        let is_old = |path: &PathBuf| {
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            // A draft that could not be finished goes with its mark too.
            MarkId::parse(stem.trim_start_matches('.')).is_ok_and(|mark| !is_there(mark))
        };
        let files = entries.flatten().map(|entry| entry.path()).filter(is_old);
        files.filter(|path| fs::remove_file(path).is_ok()).count()
    }

    fn file(&self, mark: MarkId) -> PathBuf {
        self.0.join(format!("{mark}.json"))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use marks::id::FencingId;
    use marks::recovery::Seen;
    use marks::time::Timestamp;

    use super::*;

    /// Only root may read which instances a project has.
    #[test]
    fn what_was_written_is_read_and_goes_with_its_mark() {
        let home = tempfile::tempdir().unwrap();
        let kept = Kept::beside(&home.path().join("marks.db"));
        let [one, other]: [MarkId; 2] = [FencingId::generate().into(), FencingId::generate().into()];
        assert_eq!(kept.read(one), None);
        let mut recovery = Recovery::default();
        let seen = Seen { name: "web \"1\"\n".into(), ..samples::instance("a", "c7") };
        recovery.note_host(vec![seen], Timestamp(1_800_000_000_000));
        for mark in [one, other] {
            kept.write(mark, &recovery).unwrap();
        }
        assert_eq!(kept.read(one), Some(recovery));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&kept.0), mode(&kept.file(one))), (0o700, 0o600));
        assert_eq!(kept.prune(|mark| mark == one), 1);
        assert!(kept.read(one).is_some() && kept.read(other).is_none());
        fs::write(kept.file(one), "{").unwrap();
        assert_eq!(kept.read(one), None);
    }
}
