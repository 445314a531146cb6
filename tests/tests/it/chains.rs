//! An escalation chain with the built daemon and three receivers: a refusal, a restart in the middle, a time limit, and the
//! acknowledgement that ends it.

use nix::sys::signal::Signal;
use tests::clock::Clock;
use tests::programs::Site;
use tests::receiver::{Answer, Receiver};
use tests::trials::Group;

use crate::path::{LIMIT, host, json, until};

/// As short as a step's time may be, and a moment later.
const STEP: i64 = 60;
const LATER: i64 = STEP + 1;
const NAMES: [&str; 3] = ["first", "second", "third"];

/// Its tests, and why they cannot run here, if they cannot.
pub(crate) fn group() -> Group {
    let tests = tests::trials![a_chain_goes_on_by_refusal_and_by_time];
    Group { cannot: Clock::cannot(), tests }
}

/// Three routes, and who is notified of a host.
fn site(receivers: &[Receiver; 3], recipients: &str) -> Site {
    let route = |(name, receiver): (&str, &Receiver)| {
        format!("[http.{name}]\nurl = \"http://{}/\"\n", receiver.address())
    };
    let routes: String = NAMES.into_iter().zip(receivers).map(route).collect();
    Site::with(&format!("{routes}[groups.default]\n{recipients}\n")).unwrap()
}

fn chain() -> String {
    let steps = NAMES.map(|name| format!("{{ route = \"{name}\", timeout = {STEP} }}"));
    format!("chain = [{}]", steps.join(", "))
}

/// The states of a host's deliveries, in the order of the chain.
fn states(site: &Site, host: &str) -> [String; 3] {
    let shown = json(site, &["show", host]);
    let of = |name: &str| {
        let all = shown[0]["deliveries"].as_array().into_iter().flatten();
        let own = all.filter(|delivery| delivery["route"] == name);
        own.map(|delivery| delivery["state"].as_str().unwrap_or_default()).collect()
    };
    NAMES.map(of)
}

/// How often the next step was notified: the history has a line for the one that is left and for the next.
fn escalations(site: &Site) -> usize {
    let history = json(site, &["history", "compute1"]);
    let words = history.as_array().into_iter().flatten().map(|row| &row["event"]);
    words.filter(|word| **word == "escalated").count() / 2
}

/// S0-25, S0-26, S0-29, S4-8: the first controller refuses the mark, the second cannot take it now, until its time is over, and the
/// third acknowledges. The daemon is killed while it is the second one's turn: the first is not notified again, and the second gets
/// the same bytes. The next host's chain ends with its first step.
fn a_chain_goes_on_by_refusal_and_by_time() {
    let clock = Clock::ahead(0).unwrap();
    let receivers = [(); 3].map(|()| Receiver::on_loopback().unwrap());
    let [first, second, third] = &receivers;
    first.answer(Answer::Status(422));
    second.answer(Answer::Status(503));
    let mut site = site(&receivers, &chain());
    site.set_environment(clock.environment());
    site.start().unwrap();
    site.fence("compute1").unwrap();
    second.wait_for(1, LIMIT).unwrap();
    assert_eq!((first.received().len(), third.received().len()), (1, 0), "one after the other");

    site.end(Signal::SIGKILL).unwrap();
    let known = second.received().len();
    site.start().unwrap();
    second.wait_for(known + 1, LIMIT).unwrap();
    assert_eq!((first.received().len(), third.received().len()), (1, 0), "the chain goes on where it was");
    assert_eq!(escalations(&site), 1);

    clock.set_ahead(LATER).unwrap();
    third.wait_for(1, LIMIT).unwrap();
    until("the mark is settled", || json(&site, &["show", "compute1"])[0]["state"] == "acknowledged");
    assert_eq!(states(&site, "compute1"), ["cancelled", "cancelled", "acknowledged"]);
    assert_eq!(escalations(&site), 2);
    let bodies = receivers.iter().flat_map(Receiver::received).map(|request| request.body);
    assert!(bodies.collect::<Vec<_>>().windows(2).all(|two| two[0] == two[1]), "the same bytes to each");

    let counts = [second, third].map(|receiver| receiver.received().len());
    receivers.iter().for_each(|receiver| receiver.answer(Answer::Status(200)));
    site.fence("compute2").unwrap();
    until("the next mark is settled", || json(&site, &["show", "compute2"])[0]["state"] == "acknowledged");
    assert_eq!(states(&site, "compute2"), ["acknowledged", "cancelled", "cancelled"]);
    let hosts: Vec<_> = first.received().iter().map(host).collect();
    assert_eq!(hosts, ["compute1.my.cloud.com", "compute2.my.cloud.com"]);
    assert_eq!([second, third].map(|receiver| receiver.received().len()), counts, "it has ended");
}
