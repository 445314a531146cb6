//! `[notice.NAME]`: who gets the notices for operators, which never go to the recovery routes.

use std::sync::Arc;

use drivers::{Driver, Kind, exec, http};
use site::Section;

use super::reach::RouteName;
use super::written::Written;

/// The drivers that a notice may go through.
const KINDS: [Kind; 2] = [http::KIND, exec::KIND];
/// Keys of these drivers that lay out the message of a mark or of its return, or say how it is acknowledged.
const OF_MARKS: [&str; 10] = [
    "body",
    "cloudevents-source",
    "routing-key-file",
    "template",
    "time-format",
    "extensions",
    "ack",
    "ack-timeout",
    "when-returned",
    "return-url",
];

/// One target of notices.
#[derive(Clone, Debug)]
pub struct NoticeTarget {
    /// Unique among the targets.
    pub name: RouteName,
    /// How it gets its notices.
    pub way: NoticeWay,
    /// The content of its table.
    pub(crate) written: Written,
}

/// How a target gets its notices.
#[derive(Clone, Debug)]
pub enum NoticeWay {
    /// A line of the daemon's own log.
    Syslog,
    /// An exchange of a driver.
    Driver(Arc<dyn Driver>),
}

/// Reads all of them, in the order of their names.
pub(super) fn read(root: &mut Section<'_, '_>) -> Vec<NoticeTarget> {
    let mut all = root.section("notice");
    all.only_tables("target");
    all.sections().into_iter().filter_map(|key| target(all.named_section(key), key)).collect()
}

fn target(mut section: Section<'_, '_>, key: &str) -> Option<NoticeTarget> {
    let name = RouteName::parse(key);
    if name.is_none() {
        section.complain_here("the name of a target must be 1 to 64 letters, digits, '-' or '_'");
    }
    let words: Vec<(&'static str, Option<Kind>)> =
        [("syslog", None)].into_iter().chain(KINDS.map(|kind| (kind.word, Some(kind)))).collect();
    if !section.has("to") {
        let title = section.title().to_owned();
        section.missing(format!("[{title}] has no to: set to = \"syslog\", \"http\" or \"exec\""));
    }
    // Without it the other keys are not known.
    let way = match section.choice("to", &words)? {
        None => Some(NoticeWay::Syslog),
        Some(kind) => driver(&mut section, kind).map(NoticeWay::Driver),
    };
    let written = Written::of(section.table(), &[]);
    section.finish();
    Some(NoticeTarget { name: name?, way: way?, written })
}

fn driver(section: &mut Section<'_, '_>, kind: Kind) -> Option<Arc<dyn Driver>> {
    for key in OF_MARKS.into_iter().filter(|key| section.has(key)).collect::<Vec<_>>() {
        section.complain(key, format!("a notice has a form of its own: remove {key}"));
    }
    (kind.configure)(section)
}
