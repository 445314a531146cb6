//! A fencing, a mark and its delivery for tests: each test sets the fields that matter and takes the rest from here. And programs to
//! run.

pub mod left_out;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use marks::delivery::{Arrivals, Delivery, State};
use marks::fencing::{Fencing, Origin};
use marks::host::HostName;
use marks::id::{FencingId, MarkId};
use marks::mark::{Mark, MarkRow, Proof, Source, Standing};
use marks::register::MarkEntry;
use marks::time::Timestamp;

/// The fencer's record on `ctl1` of a host at that time, with optional parts empty.
///
/// # Panics
/// The host name is invalid.
pub fn fencing(host: &str, at: Timestamp) -> Fencing {
    Fencing {
        id: FencingId::generate(),
        node: HostName::parse(host).expect("a test names a host"),
        plug: None,
        asked_at: at,
        committed_at: at,
        seen_by: "ctl1".to_owned(),
        origin: Origin::Fencer,
        incarnation: None,
        already_down: None,
        given_domain: None,
        given_shared_storage: None,
        cause: None,
    }
}

/// Its mark, proven by its maker's journal.
///
/// # Panics
/// Its host has a domain already.
pub fn mark(first: &Fencing) -> MarkRow {
    MarkRow {
        id: first.id.into(),
        node: first.node.clone(),
        fqdn: Some(first.node.with_domain("example.org").expect("a name without a domain")),
        on_shared_storage: Some(true),
        failure_time: first.asked_at,
        generated_time: first.asked_at,
        settled: None,
        source: Source::Fencing,
        incarnation: first.incarnation.clone(),
        standing: Standing::Proven(Proof::Journal),
        made_by: first.seen_by.clone(),
        made_at: first.asked_at,
        returned_at: None,
        return_known_at: None,
    }
}

/// The mark of a host that failed then.
///
/// # Panics
/// As [`fencing`] and [`mark`].
pub fn mark_of(host: &str, at: Timestamp) -> MarkRow {
    mark(&fencing(host, at))
}

/// The same as the register has it, made on that controller.
///
/// # Panics
/// As [`mark`].
pub fn entry(first: &Fencing, made_by: &str) -> MarkEntry {
    let fqdn = first.node.with_domain("example.org").expect("a name without a domain");
    let mark = Mark {
        id: first.id.into(),
        generated_time: first.committed_at,
        ..sent_as(&first.node, fqdn, first.asked_at)
    };
    let (incarnation, made_at) = (first.incarnation.clone(), first.committed_at);
    MarkEntry { mark, source: Source::Fencing, incarnation, made_by: made_by.to_owned(), made_at }
}

/// What is sent of a host that failed then, with both of its names.
///
/// # Panics
/// A name or the id is invalid.
pub fn sent(id: &str, [node, fqdn]: [&str; 2], at: Timestamp) -> Mark {
    let name = |name| HostName::parse(name).expect("a test names a host");
    Mark { id: MarkId::parse(id).expect("a test has an id"), ..sent_as(&name(node), name(fqdn), at) }
}

fn sent_as(node: &HostName, fqdn: HostName, at: Timestamp) -> Mark {
    let (id, node) = (FencingId::generate().into(), node.clone());
    Mark { id, node, fqdn, on_shared_storage: true, failure_time: at, generated_time: at }
}

/// Its delivery on a required route, without an attempt yet, due at once.
pub fn delivery(mark: &MarkRow, route: &str) -> Delivery {
    Delivery {
        mark: mark.id,
        route: route.to_owned(),
        required: true,
        chain: None,
        failure_time: mark.failure_time,
        state: State::Pending,
        body: Vec::new(),
        attempts: 0,
        ambiguous: 0,
        arrivals: Arrivals::default(),
        released_at: None,
        next_due: mark.failure_time,
        last: None,
        reference: None,
        ended_at: None,
    }
}

/// Writes a program that is run afterwards, through a process of its own: a file that is open for writing here would stay
/// open in programs that other tests start at that moment, and could not be run ("Text file busy").
///
/// # Panics
/// It cannot be written.
pub fn program(path: &Path, content: impl AsRef<[u8]>) {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "cat > \"$1\" && chmod 755 \"$1\"", "sh"]).arg(path).stdin(Stdio::piped());
    let mut writer = command.spawn().expect("there is a shell");
    let mut stdin = writer.stdin.take().expect("it has a pipe");
    stdin.write_all(content.as_ref()).expect("the shell reads");
    drop(stdin);
    assert!(writer.wait().is_ok_and(|status| status.success()), "{}", path.display());
}

/// The calls in a trace of `strace -f`, without the processes that made them.
pub fn calls(trace: &str) -> Vec<String> {
    let call = |line: &str| line.split_once(' ').map_or(line, |(_, call)| call.trim_start()).to_owned();
    trace.lines().map(call).collect()
}
