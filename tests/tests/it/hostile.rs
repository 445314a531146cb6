//! Whole daemons and endpoints that behave badly: one that flaps, one that acknowledges and drops the connection, and a
//! healthy one beside all the others.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, thread};

use journal::{Journal, Role};
use marks::time::Timestamp;
use nix::sys::signal::Signal;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;
use tests::lab::wait;
use tests::programs::Site;
use tests::receiver::{Answer, Received, Receiver};
use tests::trials::Group;

use crate::path::{LIMIT, delivery, event, host, json, running, stopped, until, until_settled};

/// Its tests; they run everywhere.
pub(crate) fn group() -> Group {
    Group::everywhere(tests::trials![
        an_acknowledgement_counts_though_the_connection_is_dropped,
        a_healthy_route_does_not_notice_the_others,
    ])
}

fn retry(site: &Site) {
    assert!(site.alerter(&["retry", "--all"]).unwrap().status.success());
}

/// The marks that a receiver has acknowledged, in their order.
fn taken(receiver: &Receiver) -> Vec<Received> {
    receiver.received().into_iter().filter(|request| request.answer == Answer::Status(200)).collect()
}

fn ids(requests: &[Received]) -> Vec<String> {
    let mut ids: Vec<String> = requests.iter().map(|request| event(request)["id"].to_string()).collect();
    ids.sort();
    ids
}

/// S1-16, S4-30: a whole answer counts, whatever becomes of the connection behind it: nothing is sent again, by a new
/// daemon neither. The broken variant drops the connection one byte earlier.
fn an_acknowledgement_counts_though_the_connection_is_dropped() {
    let whole = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n";
    let (receiver, mut site) = running();
    receiver.answer(Answer::Reset(whole.to_vec()));
    for host in ["compute1", "compute2", "compute3"] {
        site.fence(host).unwrap();
    }
    receiver.wait_for(3, LIMIT).unwrap();
    until_settled(&site);
    assert_eq!(delivery(&site, "compute2")["ambiguous"], 0);
    site.end(Signal::SIGTERM).unwrap();
    site.start().unwrap();

    receiver.answer_next(Answer::Reset(whole[..whole.len() - 1].to_vec()));
    site.fence("compute4").unwrap();
    let got = receiver.wait_for(5, LIMIT).unwrap();
    until_settled(&site);
    let hosts: Vec<String> = got[3..].iter().map(host).collect();
    assert_eq!(hosts, ["compute4.my.cloud.com"; 2], "the first three were sent once");
    assert_eq!(got[3].body, got[4].body);
    assert_eq!(delivery(&site, "compute4")["ambiguous"], 1);
    assert_eq!(receiver.received().len(), 5);
}

/// Three outages each, hours apart.
const HOSTS: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
const OUTAGES: usize = 3;
const MARKS: usize = HOSTS.len() * OUTAGES;

/// Routes that acknowledge nothing, each in its own way, and by which word that is reported; where none is, no exchange ends.
fn hostile(healthy: SocketAddr) -> [(&'static str, Answer, &'static str); 7] {
    let elsewhere =
        format!("HTTP/1.1 302 Found\r\nlocation: http://{healthy}/v1\r\ncontent-length: 0\r\n\r\n");
    let busy = b"HTTP/1.1 503 Busy\r\n\r\n".to_vec();
    [
        ("silent", Answer::Silence, ""),
        ("slow-header", Answer::Trickle(b"HTTP/1.1 200 OK\r\nx-slow: ".to_vec()), "timeout"),
        ("slow-body", Answer::Trickle(busy.clone()), "unavailable"),
        ("endless-body", Answer::Flood(busy), "unavailable"),
        ("reset", Answer::Reset(Vec::new()), "closed"),
        ("busy", Answer::Status(503), "unavailable"),
        ("elsewhere", Answer::Raw(elsewhere.into_bytes()), "redirect"),
    ]
}

/// S1-30, S4-20: eight required routes that acknowledge nothing; the ninth gets every mark once, those of each host in
/// their order, while an exchange that never ends is under way on another. All marks stay open; and where an endpoint
/// behaves at last (the broken variant of all before), it gets every mark once and in order too.
fn a_healthy_route_does_not_notice_the_others() {
    let (healthy, mut site) = stopped();
    let mut others = Vec::new();
    let mut config = fs::read_to_string(site.config()).unwrap();
    for (name, answer, word) in hostile(healthy.address()) {
        let receiver = Receiver::on_loopback().unwrap();
        receiver.answer(answer);
        // Once it behaves it must have the time to answer, also on a busy machine: what is cut off is sent again.
        let timeout = if word == "timeout" { 5 } else { 30 };
        config +=
            &format!("\n[http.{name}]\nurl = \"http://{}/v1\"\ntimeout = {timeout}\n", receiver.address());
        others.push((name, receiver, word));
    }
    let impostor = Impostor::new(&site);
    fs::write(site.config(), config + &impostor.route).unwrap();

    outages(&site, &HOSTS[..5]);
    site.start().unwrap();
    for (name, receiver, _) in &others {
        assert!(receiver.wait_for(1, LIMIT).is_ok(), "{name} was not asked");
    }
    outages(&site, &HOSTS[5..]);
    healthy.wait_for(MARKS, LIMIT).unwrap();
    let words = others.iter().map(|(name, _, word)| (*name, *word)).chain([("impostor", "tls-signature")]);
    for (name, word) in words.filter(|(_, word)| !word.is_empty()) {
        until(&format!("{name} has failed by {word}"), || {
            deliveries(&site).iter().any(|d| d["route"] == name && d["last"]["kind"] == word)
        });
    }
    until("the healthy route has all on record", || {
        not_acknowledged(&site, |route| route == "recovery") == 0
    });
    assert_eq!(json(&site, &["list"]).as_array().unwrap().len(), MARKS, "all stay open");
    assert_eq!(not_acknowledged(&site, |route| route != "recovery"), MARKS * (others.len() + 1));
    each_once_and_in_order(&healthy);

    for (_, receiver, _) in &mut others {
        receiver.answer(Answer::Status(200));
        receiver.down();
        receiver.up().unwrap();
    }
    let mut before = 0;
    let repaired = || {
        let left = not_acknowledged(&site, |route| route != "impostor");
        // What was under way when the endpoint was repaired waits for its next turn.
        if left == before {
            retry(&site);
        }
        before = left;
        Ok((left == 0).then_some(()))
    };
    wait::until("all that are repaired take all", LIMIT, repaired).unwrap();
    for receiver in others.iter().map(|(_, receiver, _)| receiver).chain([&healthy]) {
        each_once_and_in_order(receiver);
    }
    assert_eq!(impostor.notified.load(Ordering::Relaxed), 0);
    assert_eq!(json(&site, &["list"]).as_array().unwrap().len(), MARKS, "one route is still missing");
}

fn outages(site: &Site, hosts: &[&str]) {
    let mut journal = Journal::open(&site.journal(), Role::Agent).unwrap();
    for hours in (1..=OUTAGES).rev() {
        for host in hosts {
            let at = Timestamp(Timestamp::now().0 - i64::try_from(hours).unwrap() * 3_600_000);
            journal.append_fencing(&samples::fencing(host, at)).unwrap();
        }
    }
}

/// Those of all open marks.
fn deliveries(site: &Site) -> Vec<Value> {
    let marks = json(site, &["list"]).as_array().cloned().unwrap_or_default();
    marks.iter().flat_map(|mark| mark["deliveries"].as_array().cloned().unwrap_or_default()).collect()
}

fn not_acknowledged(site: &Site, route: impl Fn(&str) -> bool) -> usize {
    let of_these = |d: &&Value| route(d["route"].as_str().unwrap()) && d["state"] != "acknowledged";
    deliveries(site).iter().filter(of_these).count()
}

fn each_once_and_in_order(receiver: &Receiver) {
    let taken = taken(receiver);
    let ids = ids(&taken);
    assert_eq!(ids.len(), MARKS);
    assert!(ids.is_sorted_by(|one, next| one < next), "each once: {ids:?}");
    for name in HOSTS {
        let of_host = taken.iter().filter(|request| host(request) == format!("{name}.my.cloud.com"));
        let times: Vec<i64> =
            of_host.map(|request| event(request)["payload"]["failure_time"].as_i64().unwrap()).collect();
        assert_eq!(times.len(), OUTAGES);
        assert!(times.is_sorted(), "{name}: {times:?}");
    }
}

/// An endpoint whose certificate nobody has signed that the route trusts. It would take what it is sent.
struct Impostor {
    /// How often it was sent something all the same.
    notified: Arc<AtomicUsize>,
    /// Its table in the configuration.
    route: String,
}

impl Impostor {
    fn new(site: &Site) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, notified) = (listener.local_addr().unwrap(), Arc::<AtomicUsize>::default());
        let (config, counter) = (Arc::new(its_config()), Arc::clone(&notified));
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let (config, counter) = (Arc::clone(&config), Arc::clone(&counter));
                thread::spawn(move || Self::serve(stream, config, &counter));
            }
        });
        let ca = site.directory().join("ca.pem");
        fs::write(&ca, certificate(&KeyPair::generate().unwrap()).pem()).unwrap();
        fs::set_permissions(&ca, fs::Permissions::from_mode(0o600)).unwrap();
        let route =
            format!("\n[http.impostor]\nurl = \"https://{address}/v1\"\nca-file = \"{}\"\n", ca.display());
        Self { notified, route }
    }

    fn serve(stream: TcpStream, config: Arc<ServerConfig>, notified: &AtomicUsize) {
        let mut session = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
        if session.read(&mut [0]).is_ok_and(|bytes| bytes > 0) {
            notified.fetch_add(1, Ordering::Relaxed);
            let _however = session.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        }
    }
}

fn its_config() -> ServerConfig {
    let key = KeyPair::generate().unwrap();
    let shown = vec![certificate(&key).der().clone()];
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    ServerConfig::builder().with_no_client_auth().with_single_cert(shown, key).unwrap()
}

fn certificate(key: &KeyPair) -> rcgen::Certificate {
    CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().self_signed(key).unwrap()
}
