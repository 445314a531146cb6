//! Old rules that broke the promise, each as a change of a few words: `make mutants` puts them back one by one, and a test
//! of the packages here must find each.

use std::path::Path;
use std::{fs, io};

/// The packages whose tests are asked, with their directories.
pub const PACKAGES: [(&str, &str); 7] = [
    ("marks", "crates/marks"),
    ("journal", "crates/journal"),
    ("pacemaker", "crates/pacemaker"),
    ("register", "crates/register"),
    ("drivers", "crates/drivers"),
    ("alerter", "alerter"),
    ("fence-agent", "fence-agent"),
];

/// One old rule.
#[derive(Clone, Copy, Debug)]
pub struct Mutant {
    /// What was broken.
    pub name: &'static str,
    /// Where it is put back.
    pub changes: &'static [Change],
    /// The tests that are asked, as words that their names hold.
    pub tests: &'static [&'static str],
}

/// A change of one place.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// The file, from the root of the project.
    pub file: &'static str,
    /// The text of today, which stands there once.
    pub today: &'static str,
    /// The text of the old rule.
    pub before: &'static str,
}

/// A rule: its name; each place with its file, the text of today and the old one; the tests.
macro_rules! old {
    ($name:literal, $($file:literal, $today:literal => $before:literal,)+ [$($test:literal),+]) => {
        Mutant {
            name: $name,
            changes: &[$(Change { file: $file, today: $today, before: $before }),+],
            tests: &[$($test),+],
        }
    };
}

/// All of them.
pub const MUTANTS: &[Mutant] = &[
    old! { "A: what an endpoint has against one host parks the route", "alerter/src/delivery/mod.rs",
        "Outcome::Rejected(_) => Sign::Rejects," =>
        "Outcome::Rejected(_) => Sign::Refuses,",
        ["whom_an_endpoint_refuses_delays_nobody_else"]
    },
    old! { "B1: a mark that nobody took ends by its age", "alerter/src/intake/start.rs",
        "return doubt(journal, base, register, row, now);" =>
        "return match now.since(row.failure_time) > base.settings().intake.horizon {
                true => journal.expire(row.id, \"it is too old\", now).map(drop),
                false => doubt(journal, base, register, row, now),
            };",
        ["a_mark_that_was_not_sent_does_not_end_by_age"]
    },
    old! { "B2: what was ever published is not compared with the register", "crates/journal/src/register/published.rs",
        "AND EXISTS ({stood} AND p.entry = 'f.' || f.id)" =>
        "AND NOT EXISTS ({stood} AND p.entry = 'f.' || f.id)",
        ["a_mark_of_another_controller_comes_back"]
    },
    old! { "B3: clocks that differ by more than five seconds prove nothing",
        "crates/marks/src/outage.rs", "let is_near = claimed <= sighting.at + CLOCK_SKEW;" =>
        "let is_near = claimed <= sighting.at + GRAIN;",
        "crates/marks/src/outage.rs", "joined.rule.is_sure() || is_near" =>
        "joined.rule.is_sure() && false || is_near",
        ["clocks_that_differ"]
    },
    old! { "B4: what is dated in the future waits until then", "alerter/src/intake/judge.rs",
        "if seen.waited < patience {" =>
        "if self.now.since(sighting.at) < patience {",
        ["what_is_dated_in_the_future"]
    },
    old! { "B4: a first start in the future silences what happens before",
        "alerter/src/intake/register.rs", "partition(|mark| is_ahead(mark.at, now))" =>
        "partition(|mark| is_ahead(mark.at, now) && false)",
        "alerter/src/intake/judge.rs", "!from_alert && !seen.is_fresh && sighting.at < self.watermark" =>
        "!from_alert && sighting.at < self.watermark",
        ["a_first_start_in_the_future"]
    },
    old! { "B5: an outage that nothing proves takes in what comes much later", "crates/marks/src/outage.rs",
        "(is_believed(outage) || is_within(at, outage, reach.widest()))" =>
        "(is_believed(outage) || is_within(at, outage, reach.widest()) || true)",
        ["a_failure_is_not_folded"]
    },
    old! { "B6: a cluster node has no incarnation, and is back when its outage is long over",
        "crates/pacemaker/src/cib/operations.rs", "return self.own_work_of(host);" =>
        "return self.own_work_of(host).filter(|_| false);",
        "alerter/src/intake/members.rs", "let Some(at) = return_from(&outage, &life, now, coalesce) else {" =>
        "let is_over = now.since(outage.newest) > coalesce;\n            let Some(at) = return_from(&outage, &life, now, coalesce).filter(|_| is_over) else {",
        ["a_cluster_node_that_comes_back"]
    },
    old! { "B7: fenced again a day later joins what was sent", "crates/marks/src/outage.rs",
        "(is_long_ago || is_taken_back" =>
        "(is_long_ago && false || is_taken_back",
        ["a_fencing_a_day_after"]
    },
    old! { "B8: without a register a fencing joins what was acknowledged", "crates/marks/src/outage.rs",
        "&& !(reach.alone && is_settled())" =>
        "&& !(reach.alone && is_settled() && false)",
        ["without_a_register_a_fencing"]
    },
    old! { "B9: fenced again a day later has ended with what was sent, says the agent", "crates/marks/src/outage/registered.rs",
        "(!is_over(joined, fencing.asked_at, reach)).then_some" =>
        "(!is_over(joined, fencing.asked_at, reach) || true).then_some",
        ["what_comes_after_a_return_or_long_after_the_end_has_not_ended"]
    },
    old! { "B10: a host that a controller is connected to is lost, if the CIB says so", "crates/pacemaker/src/cib/hosts.rs",
        "*is_member || !self.is_held(host)" =>
        "*is_member || !self.is_held(host) || true",
        ["a_host_that_a_controller_is_connected_to_is_not_lost"]
    },
    old! { "D: what is no controller ends a mark", "alerter/src/intake/credible.rs",
        "false => Err(Reason::Stranger(by.to_owned()))," =>
        "false => Ok(()),",
        ["an_end_by_a_controller_that_does_not_exist"]
    },
    old! { "D: what was seen before a host was back proves a fencing after it", "crates/marks/src/outage.rs",
        "is_near && !connections.show_return(joined.outage, sighting.at, claimed)" =>
        "is_near && (!connections.show_return(joined.outage, sighting.at, claimed) || true)",
        ["a_forged_fencing_moments_after_a_return"]
    },
    old! { "P1: what Pacemaker 3.0 writes over a remote node is believed", "crates/pacemaker/src/cib/releases.rs",
        "self.release().is_some_and(|release| release >= OVERWRITES_REMOTES)" =>
        "self.release().is_some_and(|release| release >= OVERWRITES_REMOTES) && false",
        ["of_a_remote_node_in_a_cluster_of_3_0_the_connection_decides"]
    },
    old! { "P2: a host that was cut because of its confirmation by hand is notified", "alerter/src/intake/judge.rs",
        "is_some_and(|since| *since + before <= sighting.at)" =>
        "is_some_and(|since| *since + before >= *since)",
        ["a_confirmation_by_hand_counts_only_for_a_host_that_was_lost_before"]
    },
    old! { "R1: only what a route is known to have is called back", "crates/marks/src/returning.rs",
        "delivery.is_taken() || delivery.arrivals.attempts > 0 || self.was_elsewhere" =>
        "delivery.is_taken()",
        ["a_host_whose_mark_may_have_arrived_is_called_back_after_unmark", "a_host_that_another_alerter_may_have_notified_of_is_called_back", "a_return_is_owed_wherever_an_attempt_may_have_arrived", "hosts_are_called_back_when_they_are_back_and_not_before"]
    },
    old! { "R2: the end of a mark takes its return along", "crates/journal/src/queue/deliveries.rs",
        "!delivery.state.is_final() && !delivery.is_return()" =>
        "!delivery.state.is_final()",
        ["a_pending_return_outlives_unmark_and_waits_for_the_host"]
    },
    old! { "R3: a dead host is called back", "crates/marks/src/returning.rs",
        "_ if !self.is_member => Ruling::Wait," =>
        "_ if false => Ruling::Wait,",
        ["a_pending_return_outlives_unmark_and_waits_for_the_host", "hosts_are_called_back_when_they_are_back_and_not_before", "a_return_waits_for_the_host_and_for_no_mark_that_is_held"]
    },
    old! { "R4: a return goes to the host of the same name in another cloud", "crates/marks/src/returning.rs",
        "[_, ..] if !self.is_released =>" =>
        "[_, ..] if false =>",
        ["a_return_goes_to_where_the_failure_was_sent_or_is_held"]
    },
    old! { "R5: a server that has moved is marked or recovered", "crates/drivers/src/openstack/servers.rs",
        "if is_there { Place::There } else { Place::Elsewhere }" =>
        "if is_there { Place::There } else { Place::There }",
        ["a_mapped_server_that_has_moved_is_left_alone", "a_node_that_has_moved_is_not_recovered"]
    },
    old! { "R6: a service that somebody else has down is taken up", "crates/drivers/src/nova/change.rs",
        "Some(false) if !stored.has_disabled(service) => Self::default()," =>
        "Some(false) if !stored.has_disabled(service) => Self { status: None, ..Self::up(service.forced_down) },",
        ["a_host_that_is_back_is_as_it_was"]
    },
    old! { "R7: a return that is refused is cancelled by age", "crates/journal/src/queue/deliveries.rs",
        "d.required = 0 AND NOT {IS_STEP}" =>
        "d.required = 0",
        ["a_return_that_is_refused_is_never_cancelled_by_age"]
    },
    old! { "S1: the register is brought up to date before everything was read", "alerter/src/intake/upkeep.rs",
        "if !base.seen().has_passed() {" =>
        "if false {",
        ["a_fencing_that_was_not_judged_yet"]
    },
    old! { "C10: a host that is down from before the first start is passed over", "alerter/src/intake/judge.rs",
        "is_from_before && over.is_none() && self.is_still_down(seen, outages)" =>
        "is_from_before && over.is_none() && self.is_still_down(seen, outages) && false",
        ["a_host_that_is_down_from_before_asks_once"]
    },
    old! { "S2: what nobody has sealed ends, releases and holds", "alerter/src/intake/credible.rs",
        "if let Some(why) = known.behind.unsealed {" =>
        "if let Some(why) = known.behind.unsealed.filter(|_| false) {",
        ["forgeries_have_no_effect"]
    },
    old! { "S3: an alerter's copy of a fencing is the word of root on the controller that it names", "crates/marks/src/register/trust.rs",
        "(Part::Agent, None) | (Part::Alerter, Some(_)) => false," =>
        "(Part::Agent, None) => false,\n        (Part::Alerter, Some(_)) => true,",
        ["only_its_own_agent_vouches"]
    },
    old! { "S4: what does not stand there counts, also where pages are lacking", "alerter/src/intake/register.rs",
        "(is_lacking || self.is_spoken_for(row.id))" =>
        "((false && is_lacking) || self.is_spoken_for(row.id))",
        ["where_pages_are_lacking_nobody"]
    },
    old! { "S5: an end by an alerter with another key is a forgery, and its mark is sent again", "alerter/src/intake/credible.rs",
        "|| *self == without_a_key" =>
        "|| (false && *self == without_a_key)",
        ["what_an_alerter_with_another_key"]
    },
    old! { "S6: what another release wrote goes with the next write", "crates/register/src/pages.rs",
        "|| !is_understood(line);" => "|| false && !is_understood(line);",
        ["what_another_release_wrote"]
    },
    old! { "45 A1: each alerter finds out by itself of which outage node_fenced is", "crates/journal/src/register/entries.rs",
        "s.witness = 'alert' OR s.witness = 'node-fenced'" =>
        "s.witness = 'alert' OR s.witness = 'none'",
        ["node_fenced_is_of_the_outage"]
    },
    old! { "45 A1: what happened after an end is told by a record's own clock", "crates/marks/src/outage.rs",
        "!is_void(outage, reach.since(at))" =>
        "!is_void(outage, at)",
        ["a_word_that_was_taken_back_swallows"]
    },
    old! { "45 A1: a word takes an end back by its own clock", "crates/marks/src/outage.rs",
        "ended < reach.since(fencing.asked_at)" =>
        "ended < fencing.asked_at",
        ["a_mark_by_hand_takes_back"]
    },
    old! { "45 A1: what no alerter counted to an outage is placed by clocks", "crates/marks/src/outage.rs",
        "(reach.appeared.is_some() || reach.is_uncounted)" =>
        "reach.appeared.is_some()",
        ["a_host_is_lost_together_with_the_alerter"]
    },
    old! { "45 A1: a sealed return is compared with the DC's clock", "alerter/src/intake/register.rs",
        "&& (is_sealed || self.may_be_back(entry, &row)?)" =>
        "&& self.may_be_back(entry, &row)?",
        ["a_host_is_lost_together_with_the_alerter"]
    },
    old! { "45 A1: a confirmation by hand is found by clocks alone", "alerter/src/intake/sightings.rs",
        "Ok(is_last || kept" =>
        "Ok(kept",
        ["a_confirmation"]
    },
    old! { "45 A1: an open mark goes although another clock dated the mark of its outage", "alerter/src/intake/start.rs",
        "if others.iter().any(|other| other.returned_at.is_none())" =>
        "if others.is_empty() && !others.is_empty()",
        ["an_open_mark_of_an_outage_that_another"]
    },
    old! { "45 A1: another clock says how long a storm has held a mark", "alerter/src/policy/known.rs",
        "|| row.settled.is_some() { row.made_at }" =>
        "|| now > Timestamp(0) { row.made_at }",
        ["a_storm_holds_where_clocks_differ"]
    },
    old! { "45 A1: a boot ends what another clock says is over", "crates/journal/src/register/decisions.rs",
        "self.newest_at()?.map_or(0, " =>
        "self.newest_at()?.filter(|_| now.0 == 0).map_or(0, ",
        ["a_pause_outlives_a_boot"]
    },
    old! { "45 A1: a return is as old as another clock says", "crates/journal/src/queue/returns.rs",
        "(m.return_known_at >= ?2" =>
        "(m.returned_at >= ?2",
        ["a_return_that_this_alerter_saw"]
    },
    old! { "45 A1: a join of a cluster node is compared with another clock", "alerter/src/cluster/members.rs",
        "own.fold(outage.newest, Timestamp::max)" =>
        "own.take(0).fold(outage.newest, Timestamp::max)",
        ["a_clock_that_is_behind_makes_no_return"]
    },
    old! { "45 A1: a pause that is over is in force again when the clock is set back", "crates/journal/src/register/decisions.rs",
        "now.0.min(now.0.saturating_sub(set))" =>
        "now.0.saturating_sub(set)",
        ["a_pause_lasts_as_long_as_it_was_made_for"]
    },
    old! { "45 A1: an outage that another clock dates later overtakes a return", "crates/journal/src/queue/returns.rs",
        "n.made_by = m.made_by AND (n.made_at" =>
        "(n.made_at",
        ["a_return_is_owed_though_another_clock"]
    },
    old! { "45 A1: evidence is of the outage that its connection ended before", "crates/marks/src/outage.rs",
        "sure.filter(|found| !is_over(*found, at, reach))" =>
        "sure",
        ["evidence_is_of_the_mark_beside_it"]
    },
    old! { "45 A1: a clock says that a host which was down already had been back", "alerter/src/intake/judge.rs",
        "reach.appeared.is_none() && fencing.already_down == Some(true)" =>
        "reach.appeared.is_none() && fencing.already_down.is_none()",
        ["a_found_fencing_of_a_host"]
    },
    old! { "45 A1: the record of a clock that is ahead is proven by nothing of now", "alerter/src/intake/sightings.rs",
        "row.failure_time.min(row.made_at)" =>
        "row.failure_time",
        ["what_a_clock_that_is_ahead_recorded"]
    },
    old! { "45 A1: what comes back with a page has appeared", "alerter/src/intake/pass.rs",
        "!imported || !self.was_partial()" =>
        "!imported || self.register.is_some()",
        ["what_comes_back_with_a_page"]
    },
    old! { "45 A1: what another alerter held was never notified", "alerter/src/intake/pass.rs",
        "self.counted(fencing.id.into()).is_none()" =>
        "!entries.is_none()",
        ["what_comes_back_with_a_page"]
    },
    old! { "45 A1: what was found is released by what its host met later", "alerter/src/intake/sightings.rs",
        "!is_fresh && waiting.was_up(&key)" =>
        "is_fresh && waiting.was_up(&key)",
        ["what_was_found_is_not_released"]
    },
    old! { "45 B4: what is found joins a word that was taken back, by its clock", "crates/marks/src/outage.rs",
        "is_taken_back && reach.appeared.is_none()" =>
        "is_taken_back && reach.appeared.is_none() && false",
        ["a_failure_behind_a_word_that_was_taken_back"]
    },
    old! { "45 B4: a word that is read and not taken in has the host down", "crates/journal/src/intake/outages.rs",
        "is_some_and(|first| first.origin != Origin::Fencer)" =>
        "is_some_and(|first| first.origin != Origin::Fencer && mark.settled.is_none())",
        ["a_failure_behind_a_word_that_was_taken_back"]
    },
    old! { "45 B7: a release for a route is known on one controller alone", "crates/journal/src/register/decisions.rs",
        "(About::Release(mark), true) = (&decision.about, is_sealed)" =>
        "(About::Release(mark), true) = (&decision.about, is_sealed && now.0 == 0)",
        ["what_was_released_for_a_route"]
    },
];

/// Why a mutant does not fit the code any more, a sentence for each place; empty where it fits.
pub fn misfits(root: &Path, mutant: &Mutant) -> Vec<String> {
    let says = |change: &Change| Some(format!("{}: {}", mutant.name, misfit(root, change)?));
    mutant.changes.iter().filter_map(says).collect()
}

fn misfit(root: &Path, change: &Change) -> Option<String> {
    let Change { file, today, before } = change;
    match fs::read_to_string(root.join(file)) {
        Err(e) => Some(format!("{file} cannot be read ({e})")),
        Ok(text) => match text.matches(today).count() {
            _ if today == before => Some("the old rule is that of today".to_owned()),
            1 => None,
            count => Some(format!("its text stands {count} times in {file}, and should stand once")),
        },
    }
}

/// Puts the old rule into a copy of the project, or takes it out again.
///
/// # Errors
/// A file cannot be read or written.
pub fn put(root: &Path, mutant: &Mutant, is_old: bool) -> io::Result<()> {
    mutant.changes.iter().try_for_each(|change| {
        let path = root.join(change.file);
        let (from, to) = if is_old { (change.today, change.before) } else { (change.before, change.today) };
        fs::write(&path, fs::read_to_string(&path)?.replacen(from, to, 1))
    })
}
