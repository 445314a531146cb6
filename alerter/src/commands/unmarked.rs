//! Fencings that have no mark yet, as far as journal and register say (design, section 6).

use std::time::Duration;

use journal::Done;
use marks::fencing::Fencing;
use marks::outage::{COALESCE, HORIZON, Reach, Registered, Traces, forgotten, taken_in};
use marks::register::{Entry, Key};
use marks::time::Timestamp;
use site::Site;

use super::merged::Records;

/// The times of `[intake]` that decide here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    coalesce: Duration,
    pub(super) horizon: Duration,
}

impl Rules {
    /// As they are configured.
    pub(super) fn of(site: &Site) -> Self {
        Self { coalesce: site.coalesce.unwrap_or(COALESCE), horizon: site.horizon.unwrap_or(HORIZON) }
    }
}

/// Fencings without a mark, oldest first.
#[derive(Debug, Default)]
pub(super) struct Unmarked {
    /// In this journal: they wait for the daemon.
    pub(super) here: Vec<Fencing>,
    /// In the register alone: their alerter has not come to them yet, or holds their mark.
    pub(super) elsewhere: Vec<Fencing>,
}

/// The fencings of which the intake would still make a mark, by its own rules. `unfolded` are those of the journal.
///
/// # Errors
/// As any read.
pub(super) fn unmarked(
    records: Records<'_>,
    unfolded: Vec<Fencing>,
    (controller, rules): (&str, Rules),
    now: Timestamp,
) -> Done<Unmarked> {
    let Some(entries) = records.register.entries() else {
        return Ok(Unmarked { here: unfolded, ..Unmarked::default() });
    };
    let registered = Registered::of(entries, &unfolded, rules.coalesce);
    let cleared = forgotten(entries, rules.horizon, now);
    let mut new = Unmarked::default();
    for fencing in unfolded.iter().filter(|fencing| !registered.has_mark(fencing.id)) {
        // What the register knows no more may have been notified by another controller.
        if !traces(records, fencing)?.are_past(fencing.asked_at, cleared) {
            new.here.push(fencing.clone());
        }
    }
    for fencing in
        records.register.all().filter_map(Entry::fencing).filter(|fencing| !registered.has_mark(fencing.id))
    {
        if !is_known(records, fencing, controller, rules)? {
            new.elsewhere.push(fencing.clone());
        }
    }
    new.elsewhere.sort_by_key(|fencing| (fencing.asked_at, fencing.id));
    Ok(new)
}

/// What the register says of a fencing, and what the journal has seen there.
fn traces(records: Records<'_>, fencing: &Fencing) -> Done<Traces> {
    let (key, register) = (Key::Fencing(fencing.id), records.register);
    let stood =
        |key: &Key| records.here(|journal| journal.is_published(register.register(), &key.to_string()));
    Ok(Traces {
        registered: register.entry(&key).is_some(),
        published: stood(&key)?,
        ended: stood(&Key::Settled(fencing.id.into()))?,
    })
}

/// What the journal has made of a fencing counts here, whatever that is.
fn is_known(records: Records<'_>, fencing: &Fencing, controller: &str, rules: Rules) -> Done<bool> {
    let Some(journal) = records.journal else { return Ok(false) };
    let reach = Reach::found(rules.coalesce);
    Ok(fencing.seen_by == controller
        || journal.is_imported(fencing.id)?
        || journal.mark_of(fencing.id)?.is_some()
        || taken_in(fencing, &journal.outages_of(&fencing.node)?, reach).is_some())
}

#[cfg(test)]
mod tests {
    use std::slice;

    use journal::{Journal, Role};
    use marks::fencing::Incarnation;
    use marks::id::FencingId;
    use marks::mark::Settlement;
    use marks::register::{KEPT, Register, Returned};

    use super::*;
    use crate::commands::merged::RegisterView;
    use crate::commands::merged::tests::{NOW, alone, entry, fencing, journal, register, settled};

    /// Those of these fencings of this controller that wait for its daemon.
    fn here(
        journal: Option<&Journal>,
        unfolded: &[&Fencing],
        register: &RegisterView,
        now: Timestamp,
    ) -> Vec<Fencing> {
        let unfolded = unfolded.iter().map(|fencing| (*fencing).clone()).collect();
        unmarked(Records { journal, register }, unfolded, ("ctl1", Rules::of(&Site::default())), now)
            .unwrap()
            .here
    }

    #[test]
    fn a_fencing_without_a_mark_is_seen_from_everywhere() {
        let dir = tempfile::tempdir().unwrap();
        let (marked, lonely) = (fencing("compute1", "ctl1"), fencing("compute2", "ctl2"));
        let journal = journal(dir.path(), &marked);
        let again = Fencing { id: FencingId::generate(), ..marked.clone() };
        let register = register(vec![
            Entry::Fencing(marked.clone()),
            Entry::Fencing(again),
            Entry::Fencing(lonely.clone()),
            Entry::Mark(entry(&marked, "ctl1")),
        ]);
        let elsewhere = |journal: Option<&Journal>, controller: &str, now: Timestamp| {
            unmarked(
                Records { journal, register: &register },
                vec![],
                (controller, Rules::of(&Site::default())),
                now,
            )
            .unwrap()
            .elsewhere
        };
        assert_eq!(elsewhere(Some(&journal), "ctl1", NOW), slice::from_ref(&lonely));
        assert_eq!(elsewhere(None, "ctl3", NOW), slice::from_ref(&lonely));
        let late = NOW + KEPT + Duration::from_secs(1);
        assert_eq!(elsewhere(None, "ctl3", late), slice::from_ref(&lonely), "no age ends it");
        let known = Journal::open(&dir.path().join("state2/marks.db"), Role::Alerter).unwrap();
        assert!(elsewhere(Some(&known), "ctl2", NOW).is_empty(), "its own journal knows better");
    }

    /// The alerter on another controller has notified what `fence_mark` recorded here.
    #[test]
    fn a_fencing_that_was_notified_from_elsewhere_does_not_wait() {
        let first =
            Fencing { incarnation: Some(Incarnation::new("ctl1", 4, 7)), ..fencing("compute1", "ctl1") };
        let later = Fencing {
            id: FencingId::generate(),
            incarnation: Some(Incarnation::new("ctl1", 5, 9)),
            ..first.clone()
        };
        let waiting = |register: &RegisterView, now| here(None, &[&first, &later], register, now);
        let notified = register(vec![Entry::Mark(entry(&first, "ctl2"))]);
        assert_eq!(waiting(&notified, NOW), slice::from_ref(&later), "another connection, another outage");
        let ended =
            register(vec![settled(&first, Settlement::Dismissed), settled(&later, Settlement::Dismissed)]);
        assert!(waiting(&ended, NOW).is_empty());
    }

    /// No age ends what nobody was notified: it waits, unless it has stood in the register, where its alerter found it.
    #[test]
    fn an_old_fencing_waits_unless_it_has_left_the_register() {
        let dir = tempfile::tempdir().unwrap();
        let own = fencing("compute1", "ctl1");
        let mut journal = Journal::open(&dir.path().join("state/marks.db"), Role::Alerter).unwrap();
        let late = NOW + KEPT + Duration::from_secs(1);
        for (is_published, register, now, waiting) in [
            (false, register(vec![]), late, 1),
            (true, register(vec![]), NOW, 1),
            (true, register(vec![]), late, 0),
            (true, register(vec![Entry::Fencing(own.clone())]), late, 1),
            (true, alone(), late, 1),
        ] {
            if is_published {
                journal.note_published(Register::Attrd, &[Key::Fencing(own.id).to_string()]).unwrap();
            }
            assert_eq!(here(Some(&journal), &[&own], &register, now).len(), waiting, "{is_published} {now}");
        }
    }

    /// What the intake makes a mark of waits. The broken variants are what it takes for the same outage.
    #[test]
    fn a_fencing_waits_where_the_intake_makes_a_mark_of_it() {
        let seconds = |count| NOW + Duration::from_secs(count);
        let first = fencing("compute1", "ctl1");
        let marked = |more: Vec<Entry>| register([vec![Entry::Mark(entry(&first, "ctl2"))], more].concat());
        let waits = |register: &RegisterView, after: u64, coalesce: u64| {
            let again = Fencing { id: FencingId::generate(), asked_at: seconds(after), ..first.clone() };
            let rules = Rules { coalesce: Duration::from_secs(coalesce), ..Rules::of(&Site::default()) };
            !unmarked(Records { journal: None, register }, vec![again], ("ctl1", rules), seconds(after))
                .unwrap()
                .here
                .is_empty()
        };
        assert!(waits(&marked(vec![]), 100, 90) && !waits(&marked(vec![]), 100, 100), "as it is configured");
        let back = |after| Returned { mark: first.id.into(), at: seconds(after), by: "ctl2".into() };
        let returned = marked(vec![Entry::Returned(back(60))]);
        assert!(waits(&returned, 100, 180) && !waits(&returned, 50, 180), "its host was back");
    }
}
