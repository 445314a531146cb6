mod transitions;

use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;
use std::{fs, process};

use tempfile::TempDir;

use super::*;
use marks::delivery::State;
use marks::fencing::Fencing;
use marks::id::MarkId;
use marks::mark::{MarkRow, Proof, Standing};
use marks::rule::Rule;
use marks::time::Timestamp;

pub(crate) const NOW: Timestamp = Timestamp(1_800_000_000_000);

pub(crate) struct Home {
    _keep: TempDir,
    path: PathBuf,
}

impl Home {
    pub(crate) fn new() -> Self {
        let keep = TempDir::new().unwrap();
        let path = keep.path().join("state/marks.db");
        Self { _keep: keep, path }
    }

    /// Its journal too, as the alerter has it.
    pub(crate) fn alerter() -> (Self, Journal) {
        let home = Self::new();
        let journal = home.open(Role::Alerter);
        (home, journal)
    }

    /// That, with a mark of `compute1`.
    pub(crate) fn marked() -> (Self, Journal, MarkId) {
        let (home, mut journal) = Self::alerter();
        let mark = marked(&mut journal, "compute1", NOW);
        (home, journal, mark)
    }

    pub(crate) fn open(&self, role: Role) -> Journal {
        Journal::open(&self.path, role).unwrap()
    }

    fn refusal(&self) -> &'static str {
        Journal::open(&self.path, Role::Agent).unwrap_err().kind()
    }

    /// A connection that ignores our rules, as a fault or an attacker might.
    pub(crate) fn raw(&self) -> Connection {
        Connection::open(&self.path).unwrap()
    }
}

pub(crate) fn fencing(node: &str) -> Fencing {
    Fencing { already_down: Some(false), given_shared_storage: Some(true), ..samples::fencing(node, NOW) }
}

pub(crate) fn marked(journal: &mut Journal, node: &str, at: Timestamp) -> MarkId {
    marked_as(journal, node, at, Standing::Proven(Proof::Journal))
}

pub(crate) fn marked_as(journal: &mut Journal, node: &str, at: Timestamp, standing: Standing) -> MarkId {
    let first = Fencing { asked_at: at, ..fencing(node) };
    journal.append_fencing(&first).unwrap();
    let row = MarkRow { standing, ..samples::mark(&first) };
    journal.make_mark(&row, Taken::Fencing(&first), &[to_recovery(node)], None, at).unwrap();
    row.id
}

pub(crate) fn to_recovery(body: &str) -> NewDelivery {
    NewDelivery { route: "recovery".into(), body: body.as_bytes().to_vec(), required: true, link: None }
}

/// A mark that two routes get, of which `wiki` is not required.
pub(crate) fn marked_for_two(journal: &mut Journal, node: &str, at: Timestamp) -> MarkId {
    let wiki = NewDelivery { route: "wiki".into(), required: false, ..to_recovery(node) };
    marked_for(journal, node, at, &[to_recovery(node), wiki])
}

/// A mark with these deliveries.
pub(crate) fn marked_for(journal: &mut Journal, node: &str, at: Timestamp, to: &[NewDelivery]) -> MarkId {
    let first = Fencing { asked_at: at, ..fencing(node) };
    journal.append_fencing(&first).unwrap();
    let row = samples::mark(&first);
    journal.make_mark(&row, Taken::Fencing(&first), to, None, at).unwrap();
    row.id
}

/// One attempt and its result; returns whether the mark is settled with it.
pub(crate) fn attempt(journal: &mut Journal, mark: MarkId, route: &str, verdict: &Verdict) -> bool {
    journal.begin_attempt(mark, route).unwrap();
    journal.finish_attempt(mark, route, verdict, NOW).unwrap()
}

/// The states of a mark's deliveries in the order of their routes.
pub(crate) fn states(journal: &Journal, mark: MarkId) -> Vec<State> {
    journal.deliveries_of(mark).unwrap().sound.iter().map(|delivery| delivery.state).collect()
}

/// The events of a mark's history, oldest first.
pub(crate) fn events(journal: &Journal, mark: MarkId) -> Vec<String> {
    let filter = HistoryFilter { mark: Some(mark), ..HistoryFilter::default() };
    let history = journal.history(&filter).unwrap();
    assert!(history.damaged.is_empty());
    history.sound.into_iter().map(|line| line.event).collect()
}

pub(crate) fn again(next_due: Timestamp) -> Verdict {
    Verdict::Again {
        state: State::Pending,
        ambiguous: false,
        kind: "connect".into(),
        detail: "refused".into(),
        next_due,
    }
}

pub(crate) fn acknowledged() -> Verdict {
    Verdict::Acknowledged { reference: None, detail: "HTTP 202".into() }
}

#[test]
fn directory_and_files_are_closed_to_others_whatever_the_umask() {
    let home = Home::new();
    home.open(Role::Agent).append_fencing(&fencing("compute1")).unwrap();
    let mode = |p: &Path| fs::metadata(p).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(home.path.parent().unwrap()), 0o711);
    assert_eq!(mode(&home.path), 0o600);
    for file in fs::read_dir(home.path.parent().unwrap()).unwrap() {
        assert_eq!(mode(&file.unwrap().path()), 0o600);
    }
}

#[test]
fn the_agent_leaves_the_wal_for_the_alerter() {
    let home = Home::new();
    drop(home.open(Role::Alerter));
    let mut agent = home.open(Role::Agent);
    agent.append_fencing(&fencing("compute1")).unwrap();
    drop(agent);
    let wal = fs::metadata(home.path.with_extension("db-wal")).unwrap();
    assert!(wal.len() > 0, "closing must not checkpoint");
    // The broken variant: an ordinary connection, as the last one, removes the WAL.
    home.raw().query_row("SELECT count(*) FROM fencing", [], |r| r.get::<_, i64>(0)).unwrap();
    assert!(!home.path.with_extension("db-wal").exists());
}

#[test]
fn places_that_others_could_write_are_refused() {
    let home = Home::new();
    drop(home.open(Role::Agent));
    let directory = home.path.parent().unwrap();
    let chmod = |p: &Path, mode| fs::set_permissions(p, fs::Permissions::from_mode(mode)).unwrap();
    for (path, bad, good) in
        [(directory, 0o777, 0o711), (directory, 0o721, 0o711), (&*home.path, 0o620, 0o600)]
    {
        chmod(path, bad);
        assert_eq!(home.refusal(), "insecure", "{bad:o}");
        chmod(path, good);
        drop(home.open(Role::Agent));
    }
    chmod(directory.parent().unwrap(), 0o777);
    assert_eq!(home.refusal(), "insecure", "an ancestor without the sticky bit");
    chmod(directory.parent().unwrap(), 0o1777);
    drop(home.open(Role::Agent));
}

#[test]
fn a_symlink_or_hard_link_in_place_of_a_file_is_refused_and_its_target_untouched() {
    for name in ["marks.db", "marks.db-wal", "marks.db-shm", "marks.db.lock"] {
        let home = Home::new();
        fs::create_dir(home.path.parent().unwrap()).unwrap();
        let target = home.path.parent().unwrap().parent().unwrap().join("target");
        fs::write(&target, "precious").unwrap();
        let planted = home.path.with_file_name(name);
        symlink(&target, &planted).unwrap();
        assert_eq!(home.refusal(), "symlink", "{name}");
        fs::remove_file(&planted).unwrap();
        fs::hard_link(&target, &planted).unwrap();
        assert_eq!(home.refusal(), "symlink", "hard link {name}");
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
    }
}

#[test]
fn a_symlink_in_place_of_the_directory_is_refused() {
    let home = Home::new();
    let real = home.path.parent().unwrap().with_file_name("elsewhere");
    fs::create_dir(&real).unwrap();
    symlink(&real, home.path.parent().unwrap()).unwrap();
    assert_eq!(home.refusal(), "symlink");
}

#[test]
fn foreign_newer_and_planted_files_are_refused_and_left_alone() {
    let home = Home::new();
    drop(home.open(Role::Agent));
    home.raw().execute_batch("CREATE TRIGGER t AFTER INSERT ON mark BEGIN DELETE FROM mark; END").unwrap();
    assert_eq!(home.refusal(), "other-form", "a planted trigger");
    home.raw().execute_batch("DROP TRIGGER t; PRAGMA user_version = 9").unwrap();
    assert_eq!(home.refusal(), "newer-schema");
    home.raw().execute_batch("PRAGMA user_version = 1; PRAGMA application_id = 7").unwrap();
    assert_eq!(home.refusal(), "foreign");
    fs::write(&home.path, "not a database, but somebody's letter").unwrap();
    assert_eq!(home.refusal(), "foreign");
    assert!(fs::read_to_string(&home.path).unwrap().contains("letter"));
}

#[test]
fn an_old_sqlite_is_refused() {
    for (version, found) in
        [(3_040_001, "3.40.1"), (3_046_001, "3.46.1"), (3_050_007, "3.50.7"), (3_051_002, "3.51.2")]
    {
        let refusal = refuse_old_sqlite(version).unwrap_err();
        assert_eq!(refusal.kind(), "sqlite-too-old");
        assert!(refusal.to_string().starts_with(&format!("SQLite {found} can lose")), "{refusal}");
    }
    for version in [3_051_003, 3_052_000, 4_000_000, rusqlite::version_number()] {
        assert!(refuse_old_sqlite(version).is_ok(), "{version}");
    }
}

#[test]
fn a_reader_makes_nothing() {
    let home = Home::new();
    assert_eq!(Journal::open(&home.path, Role::Reader).unwrap_err().kind(), "missing");
    assert!(!home.path.parent().unwrap().exists());
}

#[test]
fn history_and_fencings_cannot_be_rewritten() {
    let home = Home::new();
    home.open(Role::Agent).append_fencing(&fencing("compute1")).unwrap();
    let raw = home.raw();
    assert!(raw.execute("UPDATE history SET detail = 'x'", []).is_err());
    assert!(raw.execute("UPDATE fencing SET node = 'compute2'", []).is_err());
}

/// A flipped byte in a row must never name another host.
#[test]
fn a_changed_row_is_noticed_in_every_table() {
    let (home, mut journal, mark) = Home::marked();
    let raw = home.raw();
    raw.execute_batch("DROP TRIGGER fencing_is_kept; UPDATE fencing SET node = 'compute2'").unwrap();
    assert_eq!(journal.fencings_of(mark).unwrap().damaged.len(), 1);
    raw.execute("UPDATE delivery SET body = ?1", [&b"compute2"[..]]).unwrap();
    let due = journal.due(NOW, "recovery", 10, None).unwrap();
    assert!(due.sound.is_empty() && due.damaged.len() == 1);
    // It is quarantined now: not due, not gone.
    assert!(journal.due(NOW, "recovery", 10, None).unwrap().damaged.is_empty());
    assert_eq!(journal.deliveries_of(mark).unwrap().damaged.len(), 1);
    raw.execute("UPDATE mark SET fqdn = 'compute2.example.org'", []).unwrap();
    assert_eq!(journal.mark(mark).unwrap_err().kind(), "damaged");
}

/// It decides whether a fencing is an outage of its own.
#[test]
fn another_word_on_whether_a_host_was_down_already_is_noticed() {
    for word in ["1", "NULL"] {
        let (home, journal, mark) = Home::marked();
        assert_eq!(journal.fencings_of(mark).unwrap().sound[0].already_down, Some(false));
        let damage = format!("DROP TRIGGER fencing_is_kept; UPDATE fencing SET already_down = {word}");
        home.raw().execute_batch(&damage).unwrap();
        assert_eq!(journal.fencings_of(mark).unwrap().damaged.len(), 1, "{word}");
    }
}

#[test]
fn a_changed_fold_or_line_of_history_is_not_believed() {
    let (home, mut journal, mark) = Home::marked();
    assert_eq!(journal.fence_count(mark).unwrap(), 1);
    let raw = home.raw();
    raw.execute_batch(
        "DROP TRIGGER history_is_kept; UPDATE history SET actor = 'alice' WHERE event = 'marked'",
    )
    .unwrap();
    let history = journal.history(&HistoryFilter::default()).unwrap();
    assert_eq!((history.sound.len(), history.damaged.len()), (1, 1));
    raw.execute("UPDATE folded SET mark = NULL", []).unwrap();
    assert_eq!(journal.fence_count(mark).unwrap(), 0);
    let again = journal.unfolded_fencings().unwrap().sound;
    assert_eq!(again.len(), 1, "it is read again");
    journal.add_to_mark(&again[0], (mark, Rule::SameConnection), NOW).unwrap();
    assert_eq!(journal.fence_count(mark).unwrap(), 1);
}

/// A start shortens the waits of a previous daemon, but a rejection has its own schedule, and says nothing of its route.
/// The broken variant is a mark with a bad answer.
#[test]
fn what_is_rejected_keeps_its_schedule_and_is_no_trouble_of_its_route() {
    let (late, cap) = (NOW + Duration::from_secs(3000), NOW + Duration::from_secs(30));
    for (state, waits, troubles) in [(State::Parked, late, 0), (State::Pending, cap, 1)] {
        let (_home, mut journal, mark) = Home::marked();
        let Verdict::Again { ambiguous, kind, detail, .. } = again(late) else { unreachable!() };
        let again = Verdict::Again { state, ambiguous, kind, detail, next_due: late };
        attempt(&mut journal, mark, "recovery", &again);
        assert_eq!(journal.tried().unwrap().len(), troubles, "{state:?}");
        journal.put_off_no_longer_than(cap).unwrap();
        let delivery = journal.deliveries_of(mark).unwrap().sound.remove(0);
        assert_eq!((delivery.next_due, delivery.is_rejected()), (waits, state == State::Parked));
        journal.put_off_no_longer_than(NOW - SLOWEST).unwrap();
        assert!(journal.deliveries_of(mark).unwrap().sound[0].next_due <= NOW, "but not forever");
    }
}

#[test]
fn a_transition_outside_of_the_table_is_refused() {
    let (_home, mut journal, mark) = Home::marked();
    journal.begin_attempt(mark, "recovery").unwrap();
    assert_eq!(journal.begin_attempt(mark, "recovery").unwrap_err().kind(), "transition");
}

#[test]
fn a_lock_file_of_a_dead_process_holds_nothing() {
    let home = Home::new();
    let journal = home.open(Role::Alerter);
    fs::write(home.path.with_extension("db.lock"), "1 99\n").unwrap();
    assert_eq!(Lock::holder(journal.path()).unwrap(), None);
    drop(Lock::take(journal.path()).unwrap());
}

/// A daemon that was killed under a PID 1 that is slow to reap does not hang.
#[test]
fn a_zombie_holds_no_lock() {
    let home = Home::new();
    let journal = home.open(Role::Alerter);
    let mut child = process::Command::new("true").spawn().unwrap();
    let stat = format!("/proc/{}/stat", child.id());
    let fields = || fs::read_to_string(&stat).unwrap().split(' ').map(str::to_owned).collect::<Vec<_>>();
    while fields()[2] != "Z" {
        std::thread::yield_now();
    }
    fs::write(home.path.with_extension("db.lock"), format!("{} {}\n", child.id(), fields()[21])).unwrap();
    assert_eq!(Lock::holder(journal.path()).unwrap(), None);
    child.wait().unwrap();
}

#[test]
fn the_version_changes_with_every_write_and_only_then() {
    let home = Home::new();
    let (mut agent, alerter) = (home.open(Role::Agent), home.open(Role::Alerter));
    let (before, of_agent) = (alerter.version().unwrap(), agent.version().unwrap());
    assert_eq!(alerter.version().unwrap(), before);
    agent.append_fencing(&fencing("compute1")).unwrap();
    assert_ne!(alerter.version().unwrap(), before, "somebody else wrote");
    assert_ne!(agent.version().unwrap(), of_agent, "it wrote itself");
    let after = alerter.version().unwrap();
    alerter.unfolded_fencings().unwrap();
    assert_eq!(alerter.version().unwrap(), after);
}

/// Puts a copy that `VACUUM INTO` made in the journal's place, as somebody who restores it would.
fn restore(home: &Home) {
    let copy = home.path.with_file_name("copy");
    home.raw().execute("VACUUM INTO ?1", [copy.to_str()]).unwrap();
    for suffix in ["-wal", "-shm"] {
        let _absent = fs::remove_file(home.path.with_extension(format!("db{suffix}")));
    }
    fs::rename(copy, &home.path).unwrap();
    assert_eq!(mode(home), "delete");
}

fn mode(home: &Home) -> String {
    home.raw().pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap()
}

fn reading(home: &Home) -> Connection {
    let reader = home.raw();
    reader.execute_batch("BEGIN; SELECT count(*) FROM fencing").unwrap();
    reader
}

/// The broken variant sets the mode only where it makes the file: a mark waits for every reader, for ever and silently.
#[test]
fn a_copy_in_the_journals_place_has_a_log_again_so_that_no_reader_delays_a_mark() {
    for role in [Role::Agent, Role::Alerter] {
        let home = Home::new();
        home.open(Role::Agent).append_fencing(&fencing("compute1")).unwrap();
        restore(&home);
        assert_eq!(home.open(Role::Reader).unfolded_fencings().unwrap().sound.len(), 1, "it can be read");
        let mut journal = home.open(role);
        assert_eq!(mode(&home), "wal", "{role:?}");
        let reader = reading(&home);
        // Whatever had to wait would fail.
        journal.connection.busy_timeout(Duration::ZERO).unwrap();
        journal.append_fencing(&fencing("compute2")).unwrap();
        journal.make_mark(&samples::mark(&fencing("compute3")), Taken::Register, &[], None, NOW).unwrap();
        assert_eq!(home.open(role).unfolded_fencings().unwrap().sound.len(), 2);
        drop(reader);
    }
}

/// A daemon has to start, and `fence_mark` has a register, whatever reads a copy that was just put there.
#[test]
fn a_copy_that_is_being_read_is_opened_as_it_is_and_has_a_log_at_the_next_open() {
    let home = Home::new();
    drop(home.open(Role::Agent));
    restore(&home);
    let reader = reading(&home);
    let (began, mut alerter) = (std::time::Instant::now(), home.open(Role::Alerter));
    assert!(began.elapsed() < ALERTER_BUSY && mode(&home) == "delete");
    drop(reader);
    drop(home.open(Role::Agent));
    assert_eq!(mode(&home), "wal");
    alerter.append_fencing(&fencing("compute1")).unwrap();
    assert_eq!(home.open(Role::Reader).unfolded_fencings().unwrap().sound.len(), 1);
}

/// A typo in a path makes no second journal.
#[test]
fn a_journal_that_has_to_exist_is_not_made() {
    let home = Home::new();
    assert_eq!(Agent::open_existing(&home.path).unwrap_err().kind(), "missing");
    assert!(!home.path.parent().unwrap().exists());
    drop(Agent::open(&home.path).unwrap());
    Agent::open_existing(&home.path).unwrap();
}
