//! The clock is set while the daemon runs: by days, to 1970, past 2038. Nothing is lost or sent twice, and no endpoint is flooded.

use std::fs;
use std::thread;
use std::time::Instant;

use marks::time::Timestamp;
use nix::sys::signal::Signal;
use serde_json::Value;
use tests::clock::{Clock, ahead_at};
use tests::programs::{Site, millis};
use tests::receiver::{Answer, Received, Receiver};
use tests::trials::Group;

use crate::path::{LIMIT, until};

const DAY: i64 = 86_400;
/// A machine whose clock was never set.
const IN_1970: i64 = 100;
/// Beyond what 31 bits can count.
const IN_2040: i64 = 2_208_988_800;
/// What passes between two readings of the clock in a test, in seconds, on a busy machine.
const SLACK: i64 = 600;

/// Its tests, and why they cannot run here, if they cannot.
pub(crate) fn group() -> Group {
    Group { cannot: Clock::cannot(), tests: tests::trials![whatever_the_clock_does] }
}

/// S1-16, S1-39: set back, what was put off by the old time would wait for days; set forward, all of it is due at once. A
/// failure that is said to be of 1970 or of 2040 is sent all the same.
fn whatever_the_clock_does() {
    let steps = [
        ("ten days forward", 0, 10 * DAY),
        ("ten days back", 0, -10 * DAY),
        ("back to 1970", 0, ahead_at(IN_1970)),
        ("forward from 1970", ahead_at(IN_1970), 0),
        ("forward past 2038", 0, ahead_at(IN_2040)),
        ("back from 2040", ahead_at(IN_2040), 0),
    ];
    // Each waits most of its time.
    thread::scope(|scope| {
        for (name, before, after) in steps {
            let named = thread::Builder::new().name(name.to_owned());
            named.spawn_scoped(scope, move || set_while_it_runs(before, after)).unwrap();
        }
    });
}

/// Three routes that every mark needs: one is well, one answers 503, and one cannot be reached.
struct Room {
    site: Site,
    healthy: Receiver,
    busy: Receiver,
    gone: Receiver,
}

impl Room {
    fn with(clock: &Clock) -> Self {
        let [healthy, busy, mut gone] = [(); 3].map(|()| Receiver::on_loopback().unwrap());
        busy.answer(Answer::Status(503));
        gone.down();
        let mut site = Site::new(healthy.address()).unwrap();
        let more = format!(
            "\n[http.busy]\nurl = \"http://{}/\"\n\n[http.gone]\nurl = \"http://{}/\"\n",
            busy.address(),
            gone.address()
        );
        fs::write(site.config(), fs::read_to_string(site.config()).unwrap() + &more).unwrap();
        site.set_environment(clock.environment());
        site.start().unwrap();
        Self { site, healthy, busy, gone }
    }

    fn json(&self, words: &[&str]) -> Value {
        let output = self.site.alerter(&[words, &["--json"]].concat()).unwrap();
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{words:?}: {error}: {output:?}"))
    }

    /// How often it was tried to reach the one that is not there.
    fn tried(&self) -> u64 {
        let shown = self.json(&["show", "compute1"]);
        let to = |delivery: &&Value| delivery["route"] == "gone";
        let gone = shown[0]["deliveries"].as_array().unwrap().iter().find(to).unwrap();
        gone["attempts"].as_u64().unwrap()
    }

    fn is_settled(&self, host: &str) -> bool {
        self.json(&["show", host])[0]["state"] == "acknowledged"
    }

    /// The agent and the daemon used that time for the host.
    fn assert_time(&self, request: &Received, host: &str, ahead: i64) {
        let event: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(event["payload"]["hostname"], format!("{host}.my.cloud.com"));
        let history = self.json(&["history", host]);
        let marked = millis(&history[0]["at"]).unwrap() / 1000;
        let now = Timestamp::now().seconds() + ahead;
        for said in [event["payload"]["failure_time"].as_i64().unwrap(), marked] {
            assert!((said - now).abs() < SLACK, "{host} at {said} instead of {now}");
        }
    }
}

/// A clock that is so many seconds ahead of the real one is set to be so many ahead.
fn set_while_it_runs(before: i64, after: i64) {
    let clock = Clock::ahead(before).unwrap();
    let mut room = Room::with(&clock);
    let begun = Instant::now();
    room.site.fence("compute1").unwrap();
    room.assert_time(&room.healthy.wait_for(1, LIMIT).unwrap()[0], "compute1", before);
    // Three in a row, and it is taken for one that cannot.
    room.busy.wait_for(3, LIMIT).unwrap();
    until("it was tried", || room.tried() == 1);

    let (asked, since) = (room.busy.received().len(), Instant::now());
    clock.set_ahead(after).unwrap();
    room.busy.wait_for(asked + 1, LIMIT).unwrap();
    let most = since.elapsed().as_secs() + 3;
    let asked = room.busy.received().len() - asked;
    assert!(u64::try_from(asked).unwrap() <= most, "{asked} attempts in {most} s");
    let turns = 1 + begun.elapsed().as_secs() / 30;
    assert!(room.tried() <= turns, "what takes no connection has an attempt each 30 s: {turns}");

    room.site.fence("compute2").unwrap();
    room.assert_time(&room.healthy.wait_for(2, LIMIT).unwrap()[1], "compute2", after);
    room.busy.answer(Answer::Status(200));
    room.gone.up().unwrap();
    until("both are settled", || room.is_settled("compute1") && room.is_settled("compute2"));
    // An end in order takes what libfaketime leaves in /dev/shm.
    room.site.end(Signal::SIGTERM).unwrap();
    for receiver in [&room.healthy, &room.busy, &room.gone] {
        let received = receiver.received();
        let taken = received.iter().filter(|request| request.answer == Answer::Status(200));
        let mut ids: Vec<&str> = taken.filter_map(|request| request.header("idempotency-key")).collect();
        assert_eq!(ids.len(), 2, "each once");
        ids.dedup();
        assert_eq!(ids.len(), 2, "{ids:?}");
    }
}
