//! Old rules that broke the promise, each as a change of a few words: `make mutants` puts them back one by one, and a test
//! of the packages here must find each.

use std::path::Path;
use std::{fs, io};

/// The packages whose tests are asked, with their directories.
pub const PACKAGES: [(&str, &str); 6] = [
    ("marks", "crates/marks"),
    ("journal", "crates/journal"),
    ("pacemaker", "crates/pacemaker"),
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

/// All of them.
pub const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "A: what an endpoint has against one host parks the route",
        changes: &[Change {
            file: "alerter/src/delivery/mod.rs",
            today: "Outcome::Rejected(_) => Sign::Rejects,",
            before: "Outcome::Rejected(_) => Sign::Refuses,",
        }],
        tests: &["whom_an_endpoint_refuses_delays_nobody_else"],
    },
    Mutant {
        name: "B1: a mark that nobody took ends by its age",
        changes: &[Change {
            file: "alerter/src/intake/start.rs",
            today: "return doubt(journal, base, register, row, now);",
            before: "return match now.since(row.failure_time) > base.settings().intake.horizon {
                true => journal.expire(row.id, \"it is too old\", now).map(drop),
                false => doubt(journal, base, register, row, now),
            };",
        }],
        tests: &["a_mark_that_was_not_sent_does_not_end_by_age"],
    },
    Mutant {
        name: "B2: what was ever published is not compared with the register",
        changes: &[Change {
            file: "crates/journal/src/register/published.rs",
            today: "AND EXISTS ({stood} AND p.entry = 'f.' || f.id)",
            before: "AND NOT EXISTS ({stood} AND p.entry = 'f.' || f.id)",
        }],
        tests: &["a_mark_of_another_controller_comes_back"],
    },
    Mutant {
        name: "B3: clocks that differ by more than five seconds prove nothing",
        changes: &[
            Change {
                file: "crates/marks/src/outage.rs",
                today: "let is_near = claimed <= sighting.at + CLOCK_SKEW;",
                before: "let is_near = claimed <= sighting.at + GRAIN;",
            },
            Change {
                file: "crates/marks/src/outage.rs",
                today: "joined.rule.is_sure() || is_near",
                before: "joined.rule.is_sure() && false || is_near",
            },
        ],
        tests: &["clocks_that_differ"],
    },
    Mutant {
        name: "B4: what is dated in the future waits until then",
        changes: &[Change {
            file: "alerter/src/intake/judge.rs",
            today: "if seen.waited < patience {",
            before: "if self.now.since(sighting.at) < patience {",
        }],
        tests: &["what_is_dated_in_the_future"],
    },
    Mutant {
        name: "B4: a first start in the future silences what happens before",
        changes: &[
            Change {
                file: "alerter/src/intake/register.rs",
                today: "partition(|mark| is_ahead(mark.at, now))",
                before: "partition(|mark| is_ahead(mark.at, now) && false)",
            },
            Change {
                file: "alerter/src/intake/judge.rs",
                today: "!from_alert && !seen.is_fresh && sighting.at < self.watermark",
                before: "!from_alert && sighting.at < self.watermark",
            },
        ],
        tests: &["a_first_start_in_the_future"],
    },
    Mutant {
        name: "B5: an outage that nothing proves takes in what comes much later",
        changes: &[Change {
            file: "crates/marks/src/outage.rs",
            today: "(is_believed(outage) || is_within(at, outage, reach.widest()))",
            before: "(is_believed(outage) || is_within(at, outage, reach.widest()) || true)",
        }],
        tests: &["a_failure_is_not_folded"],
    },
    Mutant {
        name: "B6: a cluster node has no incarnation, and is back when its outage is long over",
        changes: &[
            Change {
                file: "crates/pacemaker/src/cib/operations.rs",
                today: "return self.own_work_of(host);",
                before: "return self.own_work_of(host).filter(|_| false);",
            },
            Change {
                file: "alerter/src/intake/members.rs",
                today: "let Some(at) = return_from(&outage, &life, now, coalesce) else {",
                before: "let is_over = now.since(outage.newest) > coalesce;\n            let Some(at) = return_from(&outage, &life, now, coalesce).filter(|_| is_over) else {",
            },
        ],
        tests: &["a_cluster_node_that_comes_back"],
    },
    Mutant {
        name: "B7: fenced again a day later joins what was sent",
        changes: &[Change {
            file: "crates/marks/src/outage.rs",
            today: "&& at.since(outage.newest) > reach.widest()",
            before: "&& at.since(outage.newest) > reach.widest() && false",
        }],
        tests: &["a_fencing_a_day_after"],
    },
    Mutant {
        name: "B8: without a register a fencing joins what was acknowledged",
        changes: &[Change {
            file: "crates/marks/src/outage.rs",
            today: "&& !(reach.alone && is_settled())",
            before: "&& !(reach.alone && is_settled() && false)",
        }],
        tests: &["without_a_register_a_fencing"],
    },
    Mutant {
        name: "B9: fenced again a day later has ended with what was sent, says the agent",
        changes: &[Change {
            file: "crates/marks/src/outage/registered.rs",
            today: "(!is_over(joined.outage, fencing.asked_at, reach)).then_some",
            before: "(!is_over(joined.outage, fencing.asked_at, reach) || true).then_some",
        }],
        tests: &["what_comes_after_a_return_or_long_after_the_end_has_not_ended"],
    },
    Mutant {
        name: "B10: a host that a controller is connected to is lost, if the CIB says so",
        changes: &[Change {
            file: "crates/pacemaker/src/cib/hosts.rs",
            today: "*is_member || !self.is_held(host)",
            before: "*is_member || !self.is_held(host) || true",
        }],
        tests: &["a_host_that_a_controller_is_connected_to_is_not_lost"],
    },
    Mutant {
        name: "D: what is no controller ends a mark",
        changes: &[Change {
            file: "alerter/src/intake/credible.rs",
            today: "false => Err(Reason::Stranger(by.to_owned())),",
            before: "false => Ok(()),",
        }],
        tests: &["an_end_by_a_controller_that_does_not_exist"],
    },
    Mutant {
        name: "D: what was seen before a host was back proves a fencing after it",
        changes: &[Change {
            file: "crates/marks/src/outage.rs",
            today: "is_near && !connections.show_return(joined.outage, sighting.at, claimed)",
            before: "is_near && (!connections.show_return(joined.outage, sighting.at, claimed) || true)",
        }],
        tests: &["a_forged_fencing_moments_after_a_return"],
    },
    Mutant {
        name: "P1: what Pacemaker 3.0 writes over a remote node is believed",
        changes: &[Change {
            file: "crates/pacemaker/src/cib/releases.rs",
            today: "self.release().is_some_and(|release| release >= OVERWRITES_REMOTES)",
            before: "self.release().is_some_and(|release| release >= OVERWRITES_REMOTES) && false",
        }],
        tests: &["of_a_remote_node_in_a_cluster_of_3_0_the_connection_decides"],
    },
    Mutant {
        name: "P2: a host that was cut because of its confirmation by hand is notified",
        changes: &[Change {
            file: "alerter/src/intake/judge.rs",
            today: "is_some_and(|since| *since + before <= sighting.at)",
            before: "is_some_and(|since| *since + before >= *since)",
        }],
        tests: &["a_confirmation_by_hand_counts_only_for_a_host_that_was_lost_before"],
    },
    Mutant {
        name: "R1: only what a route is known to have is called back",
        changes: &[Change {
            file: "crates/marks/src/returning.rs",
            today: "delivery.is_taken() || delivery.arrivals.attempts > 0 || self.was_elsewhere",
            before: "delivery.is_taken()",
        }],
        tests: &[
            "a_host_whose_mark_may_have_arrived_is_called_back_after_unmark",
            "a_host_that_another_alerter_may_have_notified_of_is_called_back",
            "a_return_is_owed_wherever_an_attempt_may_have_arrived",
            "hosts_are_called_back_when_they_are_back_and_not_before",
        ],
    },
    Mutant {
        name: "R2: the end of a mark takes its return along",
        changes: &[Change {
            file: "crates/journal/src/queue/deliveries.rs",
            today: "!delivery.state.is_final() && !delivery.is_return()",
            before: "!delivery.state.is_final()",
        }],
        tests: &["a_pending_return_outlives_unmark_and_waits_for_the_host"],
    },
    Mutant {
        name: "R3: a dead host is called back",
        changes: &[Change {
            file: "crates/marks/src/returning.rs",
            today: "_ if !self.is_member => Ruling::Wait,",
            before: "_ if false => Ruling::Wait,",
        }],
        tests: &[
            "a_pending_return_outlives_unmark_and_waits_for_the_host",
            "hosts_are_called_back_when_they_are_back_and_not_before",
            "a_return_waits_for_the_host_and_for_no_mark_that_is_held",
        ],
    },
    Mutant {
        name: "R4: a return goes to the host of the same name in another cloud",
        changes: &[Change {
            file: "crates/marks/src/returning.rs",
            today: "[_, ..] if !self.is_released =>",
            before: "[_, ..] if false =>",
        }],
        tests: &["a_return_goes_to_where_the_failure_was_sent_or_is_held"],
    },
    Mutant {
        name: "R5: a server that has moved is marked or recovered",
        changes: &[Change {
            file: "crates/drivers/src/openstack/servers.rs",
            today: "if is_there { Place::There } else { Place::Elsewhere }",
            before: "if is_there { Place::There } else { Place::There }",
        }],
        tests: &["a_mapped_server_that_has_moved_is_left_alone", "a_node_that_has_moved_is_not_recovered"],
    },
    Mutant {
        name: "R6: a service that somebody else has down is taken up",
        changes: &[Change {
            file: "crates/drivers/src/nova/change.rs",
            today: "Some(false) if !stored.has_disabled(service) => Self::default(),",
            before: "Some(false) if !stored.has_disabled(service) => Self { status: None, ..Self::up(service.forced_down) },",
        }],
        tests: &["a_host_that_is_back_is_as_it_was"],
    },
    Mutant {
        name: "R7: a return that is refused is cancelled by age",
        changes: &[Change {
            file: "crates/journal/src/queue/deliveries.rs",
            today: "d.required = 0 AND NOT {IS_STEP}",
            before: "d.required = 0",
        }],
        tests: &["a_return_that_is_refused_is_never_cancelled_by_age"],
    },
    Mutant {
        name: "S1: the register is brought up to date before everything was read",
        changes: &[Change {
            file: "alerter/src/intake/upkeep.rs",
            today: "if !base.seen().has_passed() {",
            before: "if false {",
        }],
        tests: &["a_fencing_that_was_not_judged_yet"],
    },
    Mutant {
        name: "C10: a host that is down from before the first start is passed over",
        changes: &[Change {
            file: "alerter/src/intake/judge.rs",
            today: "is_from_before && over.is_none() && self.is_still_down(seen, outages)",
            before: "is_from_before && over.is_none() && self.is_still_down(seen, outages) && false",
        }],
        tests: &["a_host_that_is_down_from_before_asks_once"],
    },
    Mutant {
        name: "S2: what nobody has sealed ends, releases and holds",
        changes: &[Change {
            file: "alerter/src/intake/credible.rs",
            today: "if let Some(why) = known.behind.unsealed {",
            before: "if let Some(why) = known.behind.unsealed.filter(|_| false) {",
        }],
        tests: &["forgeries_have_no_effect"],
    },
    Mutant {
        name: "S3: an alerter's copy of a fencing is the word of root on the controller that it names",
        changes: &[Change {
            file: "crates/marks/src/register/union.rs",
            today: "(Part::Agent, None) | (Part::Alerter, Some(_)) => false,",
            before: "(Part::Agent, None) => false,\n        (Part::Alerter, Some(_)) => true,",
        }],
        tests: &["only_its_own_agent_vouches"],
    },
    Mutant {
        name: "S4: what does not stand there counts, also where pages are lacking",
        changes: &[Change {
            file: "alerter/src/intake/register.rs",
            today: "(is_lacking || self.is_spoken_for(row.id))",
            before: "((false && is_lacking) || self.is_spoken_for(row.id))",
        }],
        tests: &["where_pages_are_lacking_nobody"],
    },
    Mutant {
        name: "S5: an end by an alerter with another key is a forgery, and its mark is sent again",
        changes: &[Change {
            file: "alerter/src/intake/credible.rs",
            today: "|| *self == without_a_key",
            before: "|| (false && *self == without_a_key)",
        }],
        tests: &["what_an_alerter_with_another_key"],
    },
    Mutant {
        name: "45 A1: each alerter finds out by itself of which outage node_fenced is",
        changes: &[Change {
            file: "crates/journal/src/register/entries.rs",
            today: "\"s.witness <> 'history' AND EXISTS",
            before: "\"s.operation IS NOT NULL AND EXISTS",
        }],
        tests: &["node_fenced_is_of_the_outage"],
    },
    Mutant {
        name: "45 A1: what happened after an end is told by a record's own clock",
        changes: &[Change {
            file: "crates/marks/src/outage.rs",
            today: "!is_void(outage, reach.since(at))",
            before: "!is_void(outage, at)",
        }],
        tests: &["a_word_that_was_taken_back_swallows"],
    },
    Mutant {
        name: "45 A1: a word takes an end back by its own clock",
        changes: &[Change {
            file: "crates/marks/src/outage.rs",
            today: "ended < reach.since(fencing.asked_at)",
            before: "ended < fencing.asked_at",
        }],
        tests: &["a_mark_by_hand_takes_back"],
    },
    Mutant {
        name: "45 A1: what no alerter counted to an outage is placed by clocks",
        changes: &[Change {
            file: "crates/marks/src/outage.rs",
            today: "(reach.appeared.is_some() || reach.is_uncounted)",
            before: "reach.appeared.is_some()",
        }],
        tests: &["a_host_is_lost_together_with_the_alerter"],
    },
    Mutant {
        name: "45 A1: a sealed return is compared with the DC's clock",
        changes: &[Change {
            file: "alerter/src/intake/register.rs",
            today: "&& (is_sealed || self.may_be_back(entry, &row)?)",
            before: "&& self.may_be_back(entry, &row)?",
        }],
        tests: &["a_host_is_lost_together_with_the_alerter"],
    },
    Mutant {
        name: "45 A1: a confirmation by hand is found by clocks alone",
        changes: &[Change {
            file: "alerter/src/intake/sightings.rs",
            today: "Ok(is_last || kept",
            before: "Ok(kept",
        }],
        tests: &["a_confirmation"],
    },
    Mutant {
        name: "45 A1: an open mark goes although another clock dated the mark of its outage",
        changes: &[Change {
            file: "alerter/src/intake/start.rs",
            today: "if others.iter().any(|other| other.returned_at.is_none())",
            before: "if others.is_empty() && !others.is_empty()",
        }],
        tests: &["an_open_mark_of_an_outage_that_another"],
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
