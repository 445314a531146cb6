//! Where a mark came from, who vouches for it, and where it is kept. Pure.

use marks::fencing::{Fencing, Origin};
use marks::id::MarkId;
use marks::mark::{Doubt, MarkRow, Proof, Source, Standing};
use marks::register::Decision;
use marks::sighting::Sighting;

use super::merged::{Found, RegisterView};
use crate::outage::of_sighting;

/// A fencing, and whether it was read from the register.
pub(super) struct Record {
    pub(super) fencing: Fencing,
    pub(super) imported: bool,
}

/// Everything that speaks of one mark.
#[derive(Default)]
pub(super) struct Witnesses {
    pub(super) records: Vec<Record>,
    pub(super) sightings: Vec<Sighting>,
    pub(super) decisions: Vec<Decision>,
}

impl Witnesses {
    /// Where the journal does not know the mark.
    pub(super) fn of_register(register: &RegisterView, mark: MarkId) -> Self {
        let first = register.first_fencing(mark).cloned();
        let records = first.into_iter().map(|fencing| Record { fencing, imported: true }).collect();
        Self { records, decisions: register.decisions(mark), ..Self::default() }
    }
}

/// One sentence for each that speaks of the mark, on this controller or elsewhere.
pub(super) fn came_from(found: &Found, witnesses: &Witnesses, controller: &str) -> Vec<String> {
    let mark = &found.mark;
    let mut all: Vec<String> = witnesses.records.iter().map(record).collect();
    all.extend(witnesses.sightings.iter().map(of_sighting));
    all.extend(witnesses.decisions.iter().map(decision));
    if !found.in_journal || mark.made_by != controller {
        all.push(format!("made by the alerter on {}, read from the register", mark.made_by));
    }
    // What a mark was made of is forgotten earlier than the mark, or stands in another journal.
    let known = match mark.source {
        Source::Fencing => !witnesses.records.is_empty(),
        source => witnesses.sightings.iter().any(|sighting| sighting.source() == source),
    };
    if !known {
        all.push(made_of(mark));
    }
    all
}

fn record(record: &Record) -> String {
    let from = if record.imported { ", read from the register" } else { " in this journal" };
    let on = &record.fencing.seen_by;
    match (record.fencing.origin, record.imported) {
        (Origin::Fencer, _) => format!("recorded by fence_mark on {on}{from}"),
        (Origin::Shell, _) => format!("recorded by fence_mark, run by hand, on {on}{from}"),
        (Origin::Api, _) => format!("the word of a client of the API on {on}{from}"),
        (Origin::Operator, true) => format!("an operator's word on {on}{from}"),
        (Origin::Operator, false) => format!("an operator's word on {on}"),
    }
}

fn decision(decision: &Decision) -> String {
    format!("an operator's word: {} by {} ({})", decision.about.kind(), decision.actor, decision.reason)
}

fn made_of(mark: &MarkRow) -> String {
    let what = match mark.source {
        Source::Fencing => "a record of fence_mark or an operator's word",
        Source::Alert => "Pacemaker's alert",
        Source::History => "Pacemaker's fencing history",
        Source::NodeFenced => "node_fenced in the CIB",
    };
    format!("made of {what}, which is not in this journal")
}

/// Who vouches for a mark.
pub(super) fn standing(found: &Found) -> String {
    let mark = &found.mark;
    if !found.in_journal {
        return format!("vouched for by the alerter on {}, according to the register", mark.made_by);
    }
    match mark.standing {
        Standing::Proven(proof) => format!("vouched for by {}", voucher(proof)),
        Standing::Doubtful(doubt) => {
            format!("nobody vouches for it ({}): {}", mark.standing.as_str(), why(doubt))
        }
    }
}

fn voucher(proof: Proof) -> &'static str {
    match proof {
        Proof::Alone => "fence_mark alone: register = \"none\", so no cluster is asked",
        Proof::Journal => {
            "Pacemaker's fencer, which ran fence_mark: this controller's journal says so, or root's seal on the register's entry"
        }
        Proof::Alert => "Pacemaker's alert",
        Proof::History => "Pacemaker's fencing history",
        Proof::NodeFenced => "node_fenced in the CIB",
        Proof::Operator => "an operator",
    }
}

fn why(doubt: Doubt) -> &'static str {
    match doubt {
        Doubt::Unconfirmed => "it was recorded or confirmed by hand, and Pacemaker reports no fencing",
        Doubt::Unproven => "only the register says so",
        Doubt::OutcomeUnknown => {
            "an old record, and the host is back: its routes may have been notified before"
        }
        Doubt::FencedAgain => {
            "the host was fenced again after its last mark had ended, and it is not known whether it was back in between"
        }
    }
}

/// Where the mark stands now. `journal` is the controller and the path of the journal.
pub(super) fn kept_in(
    found: &Found,
    records: &[Record],
    register: &RegisterView,
    journal: (&str, &str),
) -> Vec<String> {
    let (controller, path) = journal;
    let here = found.in_journal.then(|| format!("the journal of {controller} ({path})"));
    let fencings: Vec<Fencing> = records.iter().map(|record| record.fencing.clone()).collect();
    let kind = register.register().as_str();
    let there = match (register.entries(), register.fault()) {
        (Some(_), _) => match register.keys(found.mark.id, &fencings).as_slice() {
            [] => Some(format!("not in the register ({kind})")),
            keys => Some(format!("the register ({kind}): {}", keys.join(", "))),
        },
        (None, fault) => fault,
    };
    here.into_iter().chain(there).collect()
}

#[cfg(test)]
mod tests {
    use marks::id::{NoteId, OperationId};
    use marks::register::{About, Entry, MarkEntry};
    use marks::time::Timestamp;

    use super::*;
    use crate::commands::merged::tests::{alone, entry, fencing, register, taken, unreadable};
    use marks::sighting::Witness;

    const OPERATION: &str = "e19eab25-6556-4644-89e9-f9bf9b151b87";

    fn found(entry: &MarkEntry, in_journal: bool) -> Found {
        let register = register(vec![Entry::Mark(entry.clone())]);
        let mut all = crate::commands::merged::marks(None, vec![], &register, |_| true).unwrap();
        Found { in_journal, ..all.remove(0) }
    }

    fn saw(witness: Witness, by_human: bool) -> Sighting {
        Sighting { node: fencing("compute1", "ctl1").node, witness, at: Timestamp(0), by_human }
    }

    #[test]
    fn everybody_who_speaks_of_a_mark_is_named() {
        let (own, other) = (fencing("compute1", "ctl1"), fencing("compute1", "ctl2"));
        let found = found(&entry(&own, "ctl1"), true);
        let record = |fencing: &Fencing, origin, imported| Record {
            fencing: Fencing { origin, ..fencing.clone() },
            imported,
        };
        let alert = Witness::Alert(OperationId::parse(OPERATION).unwrap());
        let decision = Decision {
            id: NoteId::generate(),
            about: About::Release(found.mark.id),
            at: Timestamp(0),
            actor: "alice".into(),
            reason: "it is off".into(),
        };
        let witnesses = Witnesses {
            records: vec![
                record(&own, Origin::Fencer, false),
                record(&other, Origin::Fencer, true),
                record(&own, Origin::Shell, false),
                record(&own, Origin::Operator, false),
                record(&other, Origin::Operator, true),
            ],
            sightings: vec![saw(alert, false), saw(Witness::History, true), saw(Witness::NodeFenced, false)],
            decisions: vec![decision],
        };
        let wanted = [
            "recorded by fence_mark on ctl1 in this journal",
            "recorded by fence_mark on ctl2, read from the register",
            "recorded by fence_mark, run by hand, on ctl1 in this journal",
            "an operator's word on ctl1",
            "an operator's word on ctl2, read from the register",
            "Pacemaker's alert (operation e19eab25-6556-4644-89e9-f9bf9b151b87)",
            "Pacemaker's fencing history, confirmed by hand",
            "node_fenced in the CIB",
            "an operator's word: release by alice (it is off)",
        ];
        assert_eq!(came_from(&found, &witnesses, "ctl1"), wanted);
    }

    #[test]
    fn a_mark_of_another_alerter_says_whose_it_is_and_what_it_was_made_of() {
        let first = fencing("compute1", "ctl2");
        let of_alert = MarkEntry { source: Source::Alert, ..entry(&first, "ctl2") };
        let wanted = [
            "made by the alerter on ctl2, read from the register",
            "made of Pacemaker's alert, which is not in this journal",
        ];
        for in_journal in [true, false] {
            assert_eq!(came_from(&found(&of_alert, in_journal), &Witnesses::default(), "ctl1"), wanted);
        }
        let register = register(vec![Entry::Fencing(first.clone())]);
        let witnesses = Witnesses::of_register(&register, first.id.into());
        let wanted = [
            "recorded by fence_mark on ctl2, read from the register",
            "made by the alerter on ctl2, read from the register",
        ];
        assert_eq!(came_from(&found(&entry(&first, "ctl2"), false), &witnesses, "ctl1"), wanted);
    }

    #[test]
    fn a_mark_says_where_it_is_kept_now() {
        let first = fencing("compute1", "ctl1");
        let (here, there) = (found(&entry(&first, "ctl1"), true), found(&entry(&first, "ctl2"), false));
        let kept =
            |found: &Found, register: &RegisterView| kept_in(found, &[], register, ("ctl1", "/var/marks.db"));
        let journal = "the journal of ctl1 (/var/marks.db)";
        let id = first.id;
        let full =
            register(vec![Entry::Fencing(first.clone()), Entry::Mark(entry(&first, "ctl2")), taken(&first)]);
        let keys = format!("the register (attrd): f.{id}, m.{id}, a.{id}.recovery");
        assert_eq!(kept(&here, &full), [journal, &keys]);
        assert_eq!(kept(&there, &full), [keys]);
        assert_eq!(kept(&here, &register(vec![])), [journal, "not in the register (attrd)"]);
        assert_eq!(kept(&here, &alone()), [journal]);
        let wanted = "the register (attrd) cannot be read: attrd_updater: no answer within 2000 ms";
        assert_eq!(kept(&here, &unreadable()), [journal, wanted]);
    }

    #[test]
    fn who_vouches_is_said_and_where_nobody_does_why() {
        let first = fencing("compute1", "ctl1");
        let mut found = found(&entry(&first, "ctl2"), true);
        assert_eq!(standing(&found), "nobody vouches for it (unproven): only the register says so");
        found.mark.standing = Standing::Proven(Proof::Alert);
        assert_eq!(standing(&found), "vouched for by Pacemaker's alert");
        found.in_journal = false;
        assert_eq!(standing(&found), "vouched for by the alerter on ctl2, according to the register");
    }
}
