//! The files: `recovery/MARK.json` beside the journal. They only explain, so a lost one is no fault; the journal's own rows
//! never depend on them.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use marks::id::MarkId;
use marks::recovery::Recovery;
use tokio::task::spawn_blocking;

/// The directory of the files.
#[derive(Clone, Debug)]
pub struct Kept(PathBuf);

impl Kept {
    /// Beside this journal.
    pub fn beside(journal: &Path) -> Self {
        Self(journal.with_file_name("recovery"))
    }

    /// Works with the files on a thread of its own: the daemon's only one waits for no disk.
    pub async fn apart<T: Send + 'static>(&self, work: impl FnOnce(&Self) -> T + Send + 'static) -> T {
        let files = self.clone();
        spawn_blocking(move || work(&files)).await.expect("a panic anywhere ends the whole daemon")
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
        let draft = self.draft(mark);
        let text = serde_json::to_vec(recovery).map_err(io::Error::other)?;
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all(&text)?;
        // Not synced: after a loss of power Nova is asked again.
        fs::rename(&draft, self.file(mark))
    }

    /// The marks of which anything is kept, or was begun to be.
    pub fn marks(&self) -> BTreeSet<MarkId> {
        let Ok(entries) = fs::read_dir(&self.0) else { return BTreeSet::new() };
        let mark = |path: PathBuf| MarkId::parse(path.file_stem()?.to_str()?.trim_start_matches('.')).ok();
        entries.flatten().filter_map(|entry| mark(entry.path())).collect()
    }

    /// Removes what is known of a mark. A file that stays is found again.
    pub fn remove(&self, mark: MarkId) {
        for path in [self.file(mark), self.draft(mark)] {
            drop(fs::remove_file(path));
        }
    }

    fn file(&self, mark: MarkId) -> PathBuf {
        self.0.join(format!("{mark}.json"))
    }

    fn draft(&self, mark: MarkId) -> PathBuf {
        self.0.join(format!(".{mark}.new"))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use marks::id::FencingId;
    use marks::recovery::{Host, Seen};
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
        recovery.note_host(vec![seen], Host::Away, Timestamp(1_800_000_000_000));
        for mark in [one, other] {
            kept.write(mark, &recovery).unwrap();
        }
        assert_eq!(kept.read(one), Some(recovery));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&kept.0), mode(&kept.file(one))), (0o700, 0o600));
        fs::write(kept.draft(other), "{").unwrap();
        assert_eq!(kept.marks(), BTreeSet::from([one, other]));
        kept.remove(other);
        assert!(kept.read(one).is_some() && kept.marks() == BTreeSet::from([one]));
        fs::write(kept.file(one), "{").unwrap();
        assert_eq!(kept.read(one), None);
    }
}
