//! Controllers whose clocks differ, times that lie ahead, and outages whose records come late: what is sent, and what is held where
//! everybody sees it. The site's clock is that of the alerter's controller.

use std::time::Duration;

use alerter::problem::Kind;
use marks::host::HostName;
use marks::id::{MarkId, NoteId};
use marks::register::{About, Decision, Scope};
use marks::time::Timestamp;
use pacemaker::evidence::Action;

use crate::site::{Alerter, NOBODY, Program, Site, begun, started};

/// By how many seconds the clock is behind of the controller to which the alerter moves; at last by ten years.
const BEHIND: [i64; 4] = [150, 300, 3_600, 10 * 365 * 86_400];

const HOUR: Duration = Duration::from_secs(3600);

/// An alerter on ctl1, and a ctl2 whose clock is ahead. All have the key, and have had it for a while.
fn begun_beside_a_clock_that_is_ahead(ahead: i64) -> (Site, Alerter) {
    let mut site = Site::new(&["compute1"]).with_key();
    site.skews.insert("ctl2", ahead * 1000);
    let (mut site, mut alerter) = started(site, "ctl1");
    site.advance(20.0);
    alerter.run(&mut site, 2);
    (site, alerter)
}

/// The alerter's controller is lost, and another one starts on ctl2.
fn moved(site: &mut Site, first: Alerter) -> Alerter {
    drop(first);
    site.lost.insert("ctl1");
    site.advance(60.0);
    Alerter::start(site, "ctl2")
}

/// Issue 45, A1: a host was notified, and is back and runs, or still down. Whoever dates Pacemaker's history, the next alerter does not
/// notify of it again, and holds nothing of it; of its next failure it notifies. The broken variants void sealed entries that lie ahead, take a time that lies ahead
/// for one of now, or take what was found for what has just happened because its time is younger than the daemon's start.
#[test]
fn what_was_notified_is_not_notified_again_where_clocks_differ() {
    for ahead in BEHIND.into_iter().flat_map(|by| [-by, by]) {
        for (is_back, dates_history) in [(true, true), (true, false), (false, true), (false, false)] {
            let case = format!("{ahead} s ahead, back: {is_back}, dates its history: {dates_history}");
            let (mut site, mut first) = begun_beside_a_clock_that_is_ahead(ahead);
            site.dates_history = dates_history;
            first.meets_outage(&mut site, "compute1", "ctl3", 30);
            assert_eq!(site.notified.len(), 2, "{case}");
            if is_back {
                first.meets_return(&mut site, "compute1", "ctl3", 10);
            }
            let mut second = moved(&mut site, first);
            second.run(&mut site, 90);
            assert_eq!(site.audit(), Vec::<String>::new(), "{case}: {:?}", second.standings("compute1"));
            assert_eq!(second.held("compute1"), [], "{case}: {:?}", second.standings("compute1"));
            if !is_back {
                second.meets_return(&mut site, "compute1", "ctl3", 10);
            }
            second.meets_outage(&mut site, "compute1", "ctl3", 60);
            assert_eq!(site.audit(), Vec::<String>::new(), "{case}: {:?}", second.standings("compute1"));
        }
    }
}

/// Issue 45, A1: a host is still down when its connection is lost with the alerter's controller, and the DC's clock is wrong, too: nothing
/// but what the first alerter shared says of which outage `node_fenced` is. The broken variant holds a second mark (`fenced-again`).
#[test]
fn node_fenced_is_of_the_outage_that_the_alerter_of_its_time_counted_it_to() {
    for ahead in BEHIND.into_iter().flat_map(|by| [-by, by]) {
        let (mut site, mut first) = begun_beside_a_clock_that_is_ahead(ahead);
        (site.dc, site.dates_history) = ("ctl3", true);
        site.skews.insert("ctl3", -ahead * 1000);
        first.meets_outage(&mut site, "compute1", "ctl1", 30);
        site.hosts.get_mut("compute1").unwrap().forget("ctl1");
        let mut second = moved(&mut site, first);
        second.run(&mut site, 90);
        let case = format!("{ahead} s ahead: {:?}", second.standings("compute1"));
        // By a clock that is years ahead it ended so long ago that nothing of it is taken in.
        assert!(site.audit().is_empty() && second.marks("compute1").len() <= 1, "{case}");
    }
}

/// Issue 45, A1: nobody knows whether it was notified, since the register has lost all but its fencing, and it is back: it is held,
/// and nothing that Pacemaker remembers of then lets it go.
#[test]
fn what_is_held_is_not_released_by_what_lies_ahead_of_a_clock_that_is_behind() {
    for (behind, dates_history) in BEHIND.into_iter().flat_map(|behind| [(behind, true), (behind, false)]) {
        let (mut site, mut first) = begun_beside_a_clock_that_is_ahead(-behind);
        site.dates_history = dates_history;
        first.meets_outage(&mut site, "compute1", "ctl3", 30);
        first.meets_return(&mut site, "compute1", "ctl3", 10);
        site.register.clear();
        site.monitor("ctl3");
        let mut second = moved(&mut site, first);
        second.run(&mut site, 90);
        let case = format!("{behind} s behind, dates its history: {dates_history}");
        assert_eq!(site.notified.len(), 2, "{case}: {:?}", second.standings("compute1"));
        assert!(!second.held("compute1").is_empty(), "{case}: everybody sees it");
        second.meets_outage(&mut site, "compute1", "ctl3", 60);
        assert_eq!(site.audit(), Vec::<String>::new(), "{case}: {:?}", second.standings("compute1"));
    }
}

/// The same host fails once more while what was found waits: it is notified of that under an id of its own. The broken variant sends the
/// old record, since its host is down.
#[test]
fn what_was_found_is_not_released_by_what_its_host_met_later() {
    for (ahead, wait) in BEHIND.into_iter().flat_map(|by| [(-by, 12), (by, 12), (-by, 40), (by, 40)]) {
        let (mut site, mut first) = begun_beside_a_clock_that_is_ahead(ahead);
        site.dates_history = true;
        site.die("compute1");
        first.meets_fencing(&mut site, "compute1", 30);
        first.meets_return(&mut site, "compute1", "ctl3", 10);
        site.register.clear();
        let mut second = moved(&mut site, first);
        second.run(&mut site, wait);
        second.meets_outage(&mut site, "compute1", "ctl3", 90);
        let case = format!("{ahead} s ahead, {wait} s: {:?}", second.standings("compute1"));
        assert_eq!(site.audit(), Vec::<String>::new(), "{case}");
    }
}

/// Issue 45, A1: an alerter whose clock is days ahead keeps the register, and the next one's clock is right: Pacemaker shows the outage to
/// it, and only the register says that it was notified. The broken variant forgets by its clock what was settled a minute ago.
#[test]
fn a_clock_that_is_days_ahead_forgets_no_outage_that_lasts() {
    for (days, is_published) in [9, 3650].into_iter().flat_map(|days| [(days, true), (days, false)]) {
        let (mut site, mut first) = begun_beside_a_clock_that_is_ahead(days * 86_400);
        first.meets_outage(&mut site, "compute1", "ctl3", 30);
        let mut second = moved(&mut site, first);
        second.run(&mut site, if is_published { 90 } else { 1 });
        second.clear(&mut site);
        drop(second);
        site.lost.insert("ctl2");
        site.advance(60.0);
        let third = Alerter::at_work(&mut site, "ctl3", 90);
        let case = format!("{days} days ahead, published: {is_published}");
        assert_eq!(site.audit(), Vec::<String>::new(), "{case}: {:?}", third.standings("compute1"));
        assert_eq!(third.held("compute1"), [], "{case}: {:?}", third.standings("compute1"));
    }
}

/// A pause of all, or a maintenance of compute1.
fn decide_for_an_hour(alerter: &mut Alerter, site: &Site, is_pause: bool) {
    let until = site.now + HOUR;
    let about = match is_pause {
        true => About::Pause { scope: Scope::All, until: Some(until) },
        false => About::Maintenance { scope: Scope::Host(HostName::parse("compute1").unwrap()), until },
    };
    let (id, actor, reason) = (NoteId::generate(), "alice".to_owned(), "a new switch".to_owned());
    alerter.decide(&Decision { id, about, at: site.now, actor, reason });
}

/// Issue 45, A1: it lasts as long as it was made for from when the next alerter first saw it, whatever the clocks say, and ends then.
/// The broken variant compares its end with another clock than that which it was made by.
#[test]
fn a_pause_lasts_as_long_as_it_was_made_for_where_clocks_differ() {
    for (ahead, is_pause) in
        BEHIND.into_iter().flat_map(|by| [-by, by]).flat_map(|by| [(by, true), (by, false)])
    {
        let (mut site, mut first) = begun_beside_a_clock_that_is_ahead(ahead);
        decide_for_an_hour(&mut first, &site, is_pause);
        first.run(&mut site, 4);
        first.meets_outage(&mut site, "compute1", "ctl3", 10);
        let mut second = moved(&mut site, first);
        second.run(&mut site, 2);
        site.advance(3500.0);
        second.run(&mut site, 30);
        assert_eq!(site.notified, [], "{ahead} s ahead, a pause: {is_pause}");
        assert!(!second.held("compute1").is_empty(), "{ahead} s ahead, a pause: {is_pause}");
        site.advance(100.0);
        second.run(&mut site, 30);
        // By a clock that is years ahead the mark is so old that its outcome may have been forgotten.
        let wrong = site.promise(&second, ahead > 86_400);
        assert_eq!(wrong, Vec::<String>::new(), "{ahead} s ahead, a pause: {is_pause}");
    }
}

/// Issue 45, A1: the clock is set while no alerter runs: a pause lasts as long as it was made for all the same. The broken variant looks
/// at the clock alone.
#[test]
fn a_pause_lasts_as_long_as_it_was_made_for_where_the_clock_was_set_between_two_runs() {
    between_two_runs_of_a_pause(|_| ());
}

/// The controller is booted, and its clock is wrong then: what is left of the pause holds all the same, and ends. The broken variant looks
/// at the clock alone.
#[test]
fn a_pause_outlives_a_boot_with_another_clock() {
    between_two_runs_of_a_pause(|site| {
        site.advance(60.0);
        site.booted.insert("ctl1", site.now);
    });
}

/// The clock is set between two runs on one controller, and something else happens there: the pause of an hour holds, and ends.
fn between_two_runs_of_a_pause(happens: impl Fn(&mut Site)) {
    for set in BEHIND.into_iter().flat_map(|by| [-by, by]) {
        let (mut site, mut first) = begun_beside_a_clock_that_is_ahead(0);
        decide_for_an_hour(&mut first, &site, true);
        first.run(&mut site, 4);
        drop(first);
        happens(&mut site);
        site.skews.insert("ctl1", set * 1000);
        let mut second = Alerter::start(&site, "ctl1");
        site.outage("compute1", "ctl3");
        site.advance(3500.0);
        second.run(&mut site, 30);
        assert_eq!(site.notified, [], "set by {set} s");
        site.advance(100.0);
        second.run(&mut site, 30);
        // What is over stays so.
        second.meets_return(&mut site, "compute1", "ctl2", 60);
        second.set_clock(&mut site, -1_800_000);
        second.meets_outage(&mut site, "compute1", "ctl3", 60);
        assert_eq!(site.promise(&second, false), Vec::<String>::new(), "set by {set} s");
    }
}

/// A storm holds its marks on the next controller too, whatever its clock says, and no longer than `max-hold`. The broken variant takes the
/// other clock's time for how long they have been held, and sends all at once.
#[test]
fn a_storm_holds_where_clocks_differ() {
    for ahead in BEHIND.into_iter().flat_map(|by| [-by, by]) {
        let hosts = ["compute1", "compute2", "compute3"];
        let mut site = Site::new(&hosts).with_key();
        site.configure("[groups.all]\nhosts = [\"*\"]\nmax-unhealthy = 1\nwindow = 600\nmax-hold = 900\n");
        site.skews.insert("ctl2", ahead * 1000);
        let (mut site, mut first) = started(site, "ctl1");
        site.advance(20.0);
        first.run(&mut site, 2);
        for host in hosts {
            site.outage(host, "ctl3");
        }
        first.run(&mut site, 10);
        assert_eq!(site.notified, [], "they are held");
        let mut second = moved(&mut site, first);
        second.run(&mut site, 60);
        assert_eq!(site.notified, [], "{ahead} s ahead");
        site.advance(900.0);
        second.run(&mut site, 60);
        // By a clock that is years ahead the marks are so old that their outcome may have been forgotten.
        assert_eq!(site.notified_ids().len(), if ahead > 86_400 { 0 } else { 3 }, "{ahead} s ahead");
    }
}

/// The clock is set while a storm holds: it lasts as long as it would have. The broken variant takes the new clock's time for how long the
/// marks have been held: set ahead, it sends all at once; set back, it begins again.
#[test]
fn a_storm_holds_as_long_as_it_would_have_where_the_clock_is_set() {
    for set in [-3_600_000, 3_600_000] {
        let hosts = ["compute1", "compute2", "compute3"];
        let site = Site::new(&hosts).with_key();
        site.configure("[groups.all]\nhosts = [\"*\"]\nmax-unhealthy = 1\nwindow = 3600\nmax-hold = 900\n");
        let (mut site, mut alerter) = started(site, "ctl1");
        for host in hosts {
            site.outage(host, "ctl3");
        }
        alerter.run(&mut site, 400);
        alerter.set_clock(&mut site, set);
        alerter.run(&mut site, 400);
        assert_eq!(site.notified, [], "set by {set} ms");
        alerter.run(&mut site, 150);
        assert_eq!(site.notified_ids().len(), 3, "set by {set} ms");
    }
}

/// Another alerter makes the marks while this one runs: they count from when they are seen here. The broken variant counts them from this
/// daemon's start, an hour ago: their window is over, and all are sent in the storm.
#[test]
fn a_storm_holds_what_another_alerter_has_marked_meanwhile() {
    let hosts = ["compute1", "compute2", "compute3"];
    let site = Site::new(&hosts).with_key();
    site.configure("[groups.all]\nhosts = [\"*\"]\nmax-unhealthy = 1\nwindow = 600\nmax-hold = 900\n");
    let (mut site, mut alerter) = started(site, "ctl1");
    alerter.run(&mut site, 3600);
    for host in hosts {
        site.outage(host, "ctl3");
    }
    Alerter::start(&site, "ctl2").run(&mut site, 10);
    alerter.run(&mut site, 60);
    assert_eq!(site.notified, []);
}

/// The same of the daemon's own start: the clock was two hours ahead when the pause of an hour was made. The broken variant pauses for
/// three hours.
#[tokio::test]
async fn a_daemon_that_starts_sees_that_the_clock_was_set() {
    let route = format!("[http.recovery]\nurl = \"{NOBODY}\"\nallow-http = true\n");
    let mut program = Program::unstarted(&route);
    program.was_paused(HOUR, 2 * HOUR);
    program.start().await;
    let mark = program.fence("compute1");
    program.wait(async || program.mark(mark).await["held"]["until"].is_string()).await;
    let held = program.mark(mark).await["held"].clone();
    let until = Timestamp::parse(held["until"].as_str().unwrap()).unwrap();
    assert!(until.distance(Timestamp::now() + HOUR) < Duration::from_secs(60), "{held}");
}

/// Issue 45, A2: its connection is lost with the controller that held it, and it fails again within `coalesce`: an outage of its own,
/// whether the agent or a poll has seen that `node_fenced` was erased. The broken variants look at connections and clocks alone.
#[test]
fn a_host_that_was_back_unseen_and_fails_again_is_notified_again() {
    for (is_marked, is_watched) in [(true, false), (true, true), (false, true)] {
        let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
        alerter.meets_outage(&mut site, "compute1", "ctl1", 20);
        site.back("compute1", "ctl2");
        site.advance(30.0);
        site.hosts.get_mut("compute1").unwrap().forget("ctl2");
        site.die("compute1");
        if is_watched {
            alerter.run(&mut site, 4);
        }
        if is_marked {
            site.off("ctl3", "compute1");
        }
        alerter.meets_fencing(&mut site, "compute1", 30);
        let case = format!("marked: {is_marked}, watched: {is_watched}");
        assert_eq!(site.audit(), Vec::<String>::new(), "{case}: {:?}", alerter.standings("compute1"));
    }
}

/// Another controller connects a host soon after its last connection, so that clocks do not order the two, and it is a member some polls
/// later. The broken variant judges its return at the connection alone.
#[test]
fn a_host_is_back_when_it_is_a_member_though_its_connection_was_there_before() {
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
    for controller in ["ctl1", "ctl2"] {
        alerter.meets_outage(&mut site, "compute1", "ctl3", 20);
        site.back("compute1", controller);
        site.hosts.get_mut("compute1").unwrap().member = None;
        alerter.run(&mut site, 4);
        site.hosts.get_mut("compute1").unwrap().member = Some(true);
        alerter.run(&mut site, 4);
    }
    let returned: Vec<bool> = alerter.marks("compute1").iter().map(|row| row.returned_at.is_some()).collect();
    assert_eq!(returned, [true, true]);
}

/// Its connection is forgotten, it is fenced again, and who records that has a clock by which it is the outage before: one of its own, under
/// the id of its fencing. The broken variant joins it by that clock, and makes a mark of `node_fenced` that others do not know.
#[test]
fn a_host_that_is_fenced_again_is_in_an_outage_of_its_own_whatever_clock_dates_it() {
    let (mut site, mut alerter) = begun_beside_a_clock_that_is_ahead(-100);
    let first = site.outage("compute1", "ctl1");
    alerter.run(&mut site, 20);
    alerter.meets_return(&mut site, "compute1", "ctl1", 10);
    site.advance(70.0);
    site.hosts.get_mut("compute1").unwrap().forget("ctl1");
    site.die("compute1");
    let second = site.off("ctl2", "compute1");
    alerter.run(&mut site, 4);
    alerter.meets_fencing(&mut site, "compute1", 30);
    let ids: Vec<MarkId> = alerter.marks("compute1").iter().map(|row| row.id).collect();
    assert_eq!(ids, [MarkId::from(first), second.into()]);
    assert_eq!(site.audit(), Vec::<String>::new());
}

/// Its connection is forgotten, and a controller whose clock is ahead runs `off` once more: one outage. The broken variant looks for the
/// newest outage by that clock, finds one from which the host was back, and notifies of it twice.
#[test]
fn a_host_that_is_fenced_again_while_it_is_down_is_notified_once_beside_a_clock_that_is_ahead() {
    for ahead in BEHIND {
        let (mut site, mut alerter) = begun_beside_a_clock_that_is_ahead(ahead);
        alerter.meets_outage(&mut site, "compute1", "ctl2", 20);
        alerter.meets_return(&mut site, "compute1", "ctl1", 10);
        site.advance(300.0);
        site.hosts.get_mut("compute1").unwrap().forget("ctl1");
        site.die("compute1");
        site.off("ctl1", "compute1");
        alerter.meets_fencing(&mut site, "compute1", 20);
        site.off("ctl2", "compute1");
        alerter.meets_fencing(&mut site, "compute1", 30);
        let case = format!("{ahead} s ahead: {:?}", alerter.standings("compute1"));
        assert_eq!(site.audit(), Vec::<String>::new(), "{case}");
        assert_eq!(site.notified.len(), 4, "{case}");
    }
}

/// `fence_mark` ran on another controller, whose clock is so many seconds ahead of the alerter's.
fn off_elsewhere(site: &mut Site, ahead: i64) {
    let mut fencing = site.fencing("ctl2", "compute1");
    for time in [&mut fencing.asked_at, &mut fencing.committed_at] {
        *time = Timestamp(time.0 + ahead * 1000);
    }
    site.mark("ctl2", &fencing);
}

/// B3: a clock that is ahead is reported, with what to do.
#[test]
fn a_clock_that_differs_is_seen_in_status() {
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
    let said = |alerter: &Alerter, site: &Site| alerter.problems(site, Kind::ClockSkew);
    assert!(said(&alerter, &site).is_empty());
    site.die("compute1");
    off_elsewhere(&mut site, 60);
    alerter.run(&mut site, 2);
    let [one] = &said(&alerter, &site)[..] else { panic!("{:?}", said(&alerter, &site)) };
    let why = format!("{} {}", one.what, one.then);
    assert!(why.starts_with("the clock of ctl2 is ") && why.contains("NTP"), "{why}");
}

/// B3: what Pacemaker said of the first outage is dated after the return, and is read by an alerter that comes later. The host
/// lives: a mark of it would be false.
#[test]
fn a_host_that_is_back_is_not_marked_by_a_witness_whose_clock_is_ahead() {
    let (mut site, mut first) = begun(&["compute1"], "ctl1");
    first.meets_outage(&mut site, "compute1", "ctl1", 28);
    assert_eq!(site.notified.len(), 2);
    // The controller that connects it has a clock that is 60 s behind.
    site.back("compute1", "ctl2");
    let behind = site.now.seconds() - 60;
    site.hosts.get_mut("compute1").unwrap().forget("ctl2");
    site.hosts.get_mut("compute1").unwrap().move_connection("ctl1", "ctl2", behind);
    first.run(&mut site, 4);
    site.lost.insert("ctl1");
    let second = Alerter::at_work(&mut site, "ctl3", 60);
    assert_eq!(second.marks("compute1").len(), 1, "{:?}", second.standings("compute1"));
    assert_eq!(site.notified.len(), 2);
}

/// No key vouches for what a controller recorded whose clock is ahead: Pacemaker does, here. The broken variant goes by the time of that
/// record, which comes after all that proves it.
#[test]
fn what_a_clock_that_is_ahead_recorded_is_proven_by_what_appears() {
    for ahead in BEHIND {
        let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
        site.skews.insert("ctl2", ahead * 1000);
        alerter.meets_outage(&mut site, "compute1", "ctl2", 40);
        site.assert_all_notified();
    }
}

/// B3: what was kept with an older outage proves a mark whose record comes later. The host and the controller that held its newest
/// connection were lost together, so that only the record knows of it.
#[test]
fn what_is_kept_proves_a_mark_whose_record_comes_later() {
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
    alerter.meets_outage(&mut site, "compute1", "ctl1", 20);
    site.advance(3600.0);
    // Nobody polls while it is back, and what was seen of its return is lost with the controller that saw it.
    site.back("compute1", "ctl2");
    site.advance(3600.0);
    site.die("compute1");
    let late = site.fencing("ctl2", "compute1");
    site.hosts.get_mut("compute1").unwrap().forget("ctl2");
    site.alert("compute1", Action::Off, 0, "ctl3");
    alerter.run(&mut site, 4);
    site.mark("ctl2", &late);
    alerter.run(&mut site, 20);
    assert_eq!(site.notified_ids().len(), 2, "{:?}", alerter.standings("compute1"));
}
