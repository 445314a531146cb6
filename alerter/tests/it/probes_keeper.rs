//! Probing beside the daemon: bounded, dropped when nobody wants it, asked again when nobody knows.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use alerter::probes::{AT_ONCE, Conclusion, Confirm, Prober};
use marks::id::MarkId;
use tokio::sync::{Semaphore, mpsc};

use crate::endpoint::Endpoint;
use crate::probes::{host, poll_url, script};
use crate::probes_keys::confirm;

pub(crate) const UP: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\npassing";
const DOWN: &[u8] = b"HTTP/1.1 503 Down\r\nContent-Length: 0\r\n\r\n";

fn mark(number: usize) -> MarkId {
    MarkId::of_node_fenced(&host("compute1").node, i64::try_from(number).unwrap())
}

fn only(marks: impl IntoIterator<Item = MarkId>) -> HashSet<MarkId> {
    marks.into_iter().collect()
}

/// Nothing is waited for in these tests but events.
fn at_once(confirm: Confirm) -> Confirm {
    Confirm { again: Duration::from_millis(5), ..confirm }
}

/// The next conclusion on this mark that is another than `before`.
async fn verdict_after(prober: &mut Prober, mark: MarkId, before: &Conclusion) -> Conclusion {
    loop {
        let conclusion = prober.conclusions().remove(&mark).expect("it is wanted");
        if conclusion != *before {
            return conclusion;
        }
        prober.changed().await;
    }
}

async fn verdict_on(confirm: &Confirm) -> Conclusion {
    let mut prober = Prober::default();
    prober.want(mark(0), &host("compute1"), confirm);
    assert_eq!(prober.conclusions()[&mark(0)], Conclusion::Open);
    verdict_after(&mut prober, mark(0), &Conclusion::Open).await
}

/// An endpoint that answers nobody before the test says so, and reports who asks.
struct Held {
    endpoint: Endpoint,
    asked: mpsc::UnboundedReceiver<String>,
    go: Arc<Semaphore>,
    most: Arc<AtomicUsize>,
}

impl Held {
    async fn new() -> Self {
        let (report, asked) = mpsc::unbounded_channel();
        let (go, most, now) =
            (Arc::new(Semaphore::new(0)), Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let (gate, highest) = (Arc::clone(&go), Arc::clone(&most));
        let endpoint = Endpoint::acting(move |mut peer| {
            let (report, gate, highest, now) =
                (report.clone(), Arc::clone(&gate), Arc::clone(&highest), Arc::clone(&now));
            async move {
                let request = String::from_utf8(peer.take_request().await.unwrap()).unwrap();
                highest.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                report.send(request.split(' ').nth(1).unwrap().to_owned()).unwrap();
                gate.acquire().await.unwrap().forget();
                now.fetch_sub(1, Ordering::SeqCst);
                peer.say(DOWN).await;
            }
        })
        .await;
        Self { endpoint, asked, go, most }
    }

    async fn asked(&mut self) -> String {
        self.asked.recv().await.unwrap()
    }
}

/// Forty hosts at once: sixteen are asked, and each of the others in its order when another is done.
///
/// The broken variant asks all at once: sixteen would not be the most.
#[tokio::test]
async fn sixteen_hosts_are_asked_at_once_and_the_others_in_order() {
    const HOSTS: usize = 40;
    let mut held = Held::new().await;
    let confirm = poll_url(held.endpoint.address, "retries = 0\ntimeout = 30");
    let mut prober = Prober::default();
    for number in 0..HOSTS {
        prober.want(mark(number), &host(&format!("c{number}")), &confirm);
    }
    let mut first = HashSet::new();
    for _ in 0..AT_ONCE {
        first.insert(held.asked().await);
    }
    assert_eq!(first, (0..AT_ONCE).map(|number| format!("/health/c{number}")).collect());
    for number in AT_ONCE..HOSTS {
        held.go.add_permits(1);
        assert_eq!(held.asked().await, format!("/health/c{number}"));
    }
    held.go.add_permits(AT_ONCE);
    for number in 0..HOSTS {
        let conclusion = verdict_after(&mut prober, mark(number), &Conclusion::Open).await;
        assert_eq!(conclusion, Conclusion::Confirmed);
    }
    assert_eq!(held.most.load(Ordering::SeqCst), AT_ONCE);
}

/// A mark that is settled meanwhile is not asked about any more, and leaves its place to the next.
#[tokio::test]
async fn what_nobody_wants_any_more_is_dropped() {
    let mut held = Held::new().await;
    let confirm = poll_url(held.endpoint.address, "retries = 0\ntimeout = 30");
    let mut prober = Prober::default();
    for number in 0..=AT_ONCE {
        prober.want(mark(number), &host(&format!("c{number}")), &confirm);
    }
    for _ in 0..AT_ONCE {
        held.asked().await;
    }
    prober.keep_only(&only([mark(AT_ONCE)]));
    assert_eq!(held.asked().await, format!("/health/c{AT_ONCE}"), "it got the place of one that was dropped");
    assert_eq!(prober.conclusions().into_keys().collect::<Vec<_>>(), [mark(AT_ONCE)]);
    held.go.add_permits(2 * AT_ONCE);
    assert_eq!(verdict_after(&mut prober, mark(AT_ONCE), &Conclusion::Open).await, Conclusion::Confirmed);
}

/// S0-4: a host that answers is asked again, and its hold ends when it does not answer any more.
#[tokio::test]
async fn a_host_that_is_up_is_asked_again_until_it_is_down() {
    let endpoint = Endpoint::acting(|mut peer| async move {
        peer.request().await;
        peer.say(if peer.number < 4 { UP } else { DOWN }).await;
    })
    .await;
    let confirm = at_once(poll_url(endpoint.address, "retries = 0"));
    let mut prober = Prober::default();
    prober.want(mark(0), &host("compute1"), &confirm);
    let healthy = verdict_after(&mut prober, mark(0), &Conclusion::Open).await;
    assert!(matches!(healthy, Conclusion::Healthy(_)), "{healthy:?}");
    assert_eq!(verdict_after(&mut prober, mark(0), &healthy).await, Conclusion::Confirmed);
    assert_eq!(endpoint.requests().len(), 4);
}

/// S0-4: a probe that does not know is asked again, alone: what the others said stands.
#[tokio::test]
async fn who_does_not_know_is_asked_again_alone() {
    let dir = tempfile::tempdir().unwrap();
    let count = dir.path().join("count");
    let endpoint = Endpoint::saying(DOWN).await;
    let confirm = at_once(confirm(&format!(
        "[groups.r.confirm.poll-url.api]\nurl = \"http://{}/{{nodename}}\"\nhealthy = \"passing\"\nretries = 0\n[groups.r.confirm.exec.bmc]\ncommand = [\"/bin/sh\", \"-c\", '''echo >> \"$1\"; test $(wc -l < \"$1\") -ge 3 && exit 1; exit 75''', \"{{nodename}}\", \"{}\"]",
        endpoint.address,
        count.display()
    )));
    assert_eq!(verdict_on(&confirm).await, Conclusion::Confirmed);
    assert_eq!(std::fs::read_to_string(&count).unwrap(), "\n\n\n");
    assert_eq!(endpoint.requests().len(), 1);
}

/// When nothing is decided within the limit, all is asked again: what was said long ago says nothing about now.
#[tokio::test]
async fn after_the_limit_all_is_asked_again() {
    let endpoint = Endpoint::acting(|mut peer| async move {
        peer.request().await;
        peer.say(if peer.number == 1 { DOWN } else { UP }).await;
    })
    .await;
    let confirm = confirm(&format!(
        "[groups.r.confirm.poll-url.api]\nurl = \"http://{}/{{nodename}}\"\nhealthy = \"passing\"\nretries = 0\n[groups.r.confirm.exec.bmc]\ncommand = [\"/bin/sh\", \"-c\", \"exit 75\", \"{{nodename}}\"]",
        endpoint.address
    ));
    // The program never knows, so that only the url can decide; and it says something else when it is asked again.
    let confirm = Confirm { limit: Duration::from_secs(1), ..at_once(confirm) };
    let mut prober = Prober::default();
    prober.want(mark(0), &host("compute1"), &confirm);
    let healthy = verdict_after(&mut prober, mark(0), &Conclusion::Open).await;
    assert!(matches!(healthy, Conclusion::Healthy(_)), "{healthy:?}");
}

/// S0-7: a probe decides as soon as it knows; until then the doubt has its sentence.
#[tokio::test]
async fn a_doubt_is_said_and_ends_with_an_answer() {
    let place = tempfile::tempdir().unwrap();
    let known = place.path().join("off");
    let confirm = at_once(script("test -e \"$1\" && exit 1; exit 75", &[known.to_str().unwrap()], ""));
    let mut prober = Prober::default();
    prober.want(mark(0), &host("compute1"), &confirm);
    while prober.doubt(&mark(0)).is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        prober.doubt(&mark(0)).unwrap(),
        "it is not known whether compute1 is down: its probe exec.bmc ended with 75, which means: ask again later; repair the probe, or release the mark"
    );
    std::fs::write(&known, "").unwrap();
    assert_eq!(verdict_after(&mut prober, mark(0), &Conclusion::Open).await, Conclusion::Confirmed);
    assert_eq!(prober.doubt(&mark(0)), None);
}
