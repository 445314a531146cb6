//! A new configuration in a running engine: routes that stay the same go on, a wrong file changes nothing, and nothing is dropped.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use alerter::base::Base;
use alerter::base::store::Store;
use alerter::control::api::{ChangeAnswer, Daemon, ReloadAnswer, Request};
use alerter::control::client::{self, ClientError};
use alerter::control::server::ControlSocket;
use alerter::daemon::engine::Engine;
use alerter::daemon::watch::{Identity, Watch};
use alerter::problem::Kind;
use alerter::reload;
use alerter::state::Shared;
use alerter::state::reloads::Reloaded;
use journal::{HistoryFilter, Journal, JournalError, Role};
use marks::delivery::State;
use marks::id::MarkId;
use marks::mark::Settlement;
use marks::time::Timestamp;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::config::Site;
use crate::endpoint::{Endpoint, OK};
use crate::routes::configure;

pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A daemon's engine and control socket, at work on one journal.
pub(crate) struct Running {
    site: Site,
    pub(crate) shared: Arc<Shared>,
    stop: CancellationToken,
    engine: JoinHandle<Result<(), JournalError>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Running {
    pub(crate) async fn with(text: &str) -> Self {
        Self::after(text, |_| ()).await
    }

    /// The same on a journal in which something has happened before.
    pub(crate) async fn after(text: &str, happened: impl FnOnce(&mut Journal)) -> Self {
        let site = Site::new("");
        configure(&site, "none", text);
        let settings = site.settings();
        let path = settings.store.path.clone();
        let mut journal = Journal::open(&path, Role::Alerter).unwrap();
        let watch = Watch::directories(&[journal.directory().to_owned()]);
        let identity = Identity::of(&path);
        journal.check_writable().unwrap();
        happened(&mut journal);
        let (store, _thread) = Store::start(journal).unwrap();
        let shared = Arc::new(Shared::new(Base::new(settings, store, None)));
        let stop = CancellationToken::new();
        let mut engine = Engine::start(Arc::clone(&shared), watch, identity, None).await.unwrap();
        let until = stop.clone();
        let engine = tokio::spawn(async move { engine.run(&until).await });
        let socket = ControlSocket::bind(&site.path("state/control.sock")).unwrap();
        tokio::spawn(socket.serve(Arc::clone(&shared), stop.clone()));
        Self { site, shared, stop, engine }
    }

    pub(crate) async fn fence(&self, host: &str) -> MarkId {
        let fencing = samples::fencing(host, Timestamp::now());
        let id = fencing.id.into();
        self.shared.base.store.run(move |journal| journal.append_fencing(&fencing)).await.unwrap();
        self.shared.poke.notify_one();
        id
    }

    async fn reload(&self, text: &str) -> Reloaded {
        configure(&self.site, "none", text);
        timeout(LONG, reload::reload(&self.shared, None)).await.unwrap()
    }

    /// The routes of a mark, with the states of its deliveries.
    async fn deliveries(&self, mark: MarkId) -> Vec<(String, State)> {
        let read = move |journal: &mut Journal| journal.deliveries_of(mark);
        let rows = self.shared.base.store.run(read).await.unwrap().sound;
        rows.into_iter().map(|delivery| (delivery.route, delivery.state)).collect()
    }

    pub(crate) async fn settled(&self, mark: MarkId) -> Option<Settlement> {
        let row = self.shared.base.store.run(move |journal| journal.mark(mark)).await.unwrap();
        row.unwrap().settled.map(|(how, _)| how)
    }

    /// Waits until a delivery stands so. The engine says after each pass that there was one.
    pub(crate) async fn until(&self, mark: MarkId, route: &str, state: State) {
        let reached = async {
            while !self.deliveries(mark).await.contains(&(route.to_owned(), state)) {
                assert!(!self.engine.is_finished());
                self.shared.passed.notified().await;
            }
        };
        timeout(LONG, reached).await.unwrap();
    }

    pub(crate) fn reasons(&self) -> Vec<String> {
        self.shared.reasons(Timestamp::now())
    }

    pub(crate) fn socket(&self) -> client::Daemon {
        let socket: PathBuf = self.site.path("state/control.sock");
        client::Daemon::patient(&socket, "alice", client::PATIENCE)
    }

    async fn dismiss(&self, route: &str, reason: &str) -> Result<ChangeAnswer, ClientError> {
        let request = Request { route: Some(route.to_owned()), ..Request::because(reason) };
        self.socket().post("/v1/dismiss", &request).await
    }
}

fn route(name: &str, url: &str, keys: &str) -> String {
    format!("[http.{name}]\nurl = \"{url}\"\nallow-http = true\n{keys}\n")
}

const NOBODY: &str = "http://127.0.0.1:9/";

fn changed(what: &[&str]) -> Reloaded {
    Reloaded::Changed(what.iter().map(|what| (*what).to_owned()).collect())
}

/// An endpoint that answers when there is leave to, once for each.
async fn slow() -> (Endpoint, Arc<Semaphore>) {
    let leave = Arc::new(Semaphore::new(0));
    let given = Arc::clone(&leave);
    let endpoint = Endpoint::acting(move |mut peer| {
        let given = Arc::clone(&given);
        async move {
            peer.request().await;
            given.acquire().await.unwrap().forget();
            peer.say(OK).await;
        }
    });
    (endpoint.await, leave)
}

pub(crate) async fn said(endpoint: &Endpoint, requests: usize) {
    let come = async {
        while endpoint.requests().len() < requests {
            tokio::task::yield_now().await;
        }
    };
    timeout(LONG, come).await.unwrap();
}

/// A route that is configured the same keeps its exchange under way, its driver with its token and connections, and its breaker. The
/// broken variant is the other route: one key makes it another one.
#[tokio::test]
async fn a_route_that_says_the_same_goes_on_as_it_is() {
    let (endpoint, leave) = slow().await;
    let kept = route("kept", &endpoint.url(), "");
    let running =
        Running::with(&(kept.clone() + &route("dead", NOBODY, "") + &route("other", NOBODY, ""))).await;
    let mark = running.fence("c1").await;
    said(&endpoint, 1).await;
    running.until(mark, "dead", State::Pending).await;
    let is_closed = |name: &str| running.shared.routes.outboxes()[name].endpoint.is_closed();
    timeout(LONG, async {
        while is_closed("dead") || is_closed("other") {
            running.shared.passed.notified().await;
        }
    })
    .await
    .unwrap();
    let (dead, other) =
        (running.shared.base.route("dead").unwrap(), running.shared.base.route("other").unwrap());
    let before = running.shared.base.route("kept").unwrap();

    // Another order, comments, and a key of the framework alone are no other driver.
    let same = format!("# again\n{}\n{kept}\n", route("dead", NOBODY, "required = false"));
    let came = running.reload(&(same.clone() + &route("other", NOBODY, "timeout = 7"))).await;
    assert_eq!(came, changed(&["route dead has other marks or terms", "route other has changed"]));
    assert!(Arc::ptr_eq(&before, &running.shared.base.route("kept").unwrap()));
    let now = running.shared.base.route("dead").unwrap();
    assert!(Arc::ptr_eq(&dead.driver, &now.driver) && !now.required);
    assert!(!is_closed("dead"), "what is known of its endpoint is not forgotten");
    assert!(!Arc::ptr_eq(&other.driver, &running.shared.base.route("other").unwrap().driver));

    assert_eq!(running.deliveries(mark).await[1], ("kept".to_owned(), State::InFlight));
    leave.add_permits(1);
    running.until(mark, "kept", State::Acknowledged).await;
    assert_eq!(endpoint.requests().len(), 1, "it was sent once");
    assert_eq!(running.reload(&(same + &route("other", NOBODY, "timeout = 7"))).await, changed(&[]));
}

/// What is under way on a route that changes ends as it began, and its answer counts; the next one goes by the new driver. The
/// broken variant, an exchange that is cut off, would be made again.
#[tokio::test]
async fn an_exchange_ends_with_the_driver_that_it_began_with() {
    let ((old, leave), new) = (slow().await, Endpoint::saying(OK).await);
    let running = Running::with(&route("all", &old.url(), "")).await;
    let first = running.fence("c1").await;
    said(&old, 1).await;
    assert_eq!(running.reload(&route("all", &new.url(), "")).await, changed(&["route all has changed"]));
    let second = running.fence("c2").await;
    running.until(second, "all", State::Acknowledged).await;
    assert_eq!(running.deliveries(first).await, [("all".to_owned(), State::InFlight)]);
    leave.add_permits(1);
    running.until(first, "all", State::Acknowledged).await;
    assert_eq!((old.requests().len(), new.requests().len()), (1, 1));
}

/// What an endpoint refuses that is asked no more is tried at the new one at once. The broken variant waits for as long as
/// one that is parked does.
#[tokio::test]
async fn what_was_refused_is_sent_by_the_new_configuration_at_once() {
    let refuses = Endpoint::saying("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n").await;
    let takes = Endpoint::saying(OK).await;
    let running = Running::with(&route("all", &refuses.url(), "")).await;
    let mark = running.fence("c1").await;
    running.until(mark, "all", State::Parked).await;
    running.reload(&route("all", &takes.url(), "")).await;
    running.until(mark, "all", State::Acknowledged).await;
    assert_eq!(takes.requests().len(), 1);
}

/// The broken variant of the configuration is the same one, corrected.
#[tokio::test]
async fn an_invalid_file_changes_nothing_and_says_why() {
    let (takes, unused) = (Endpoint::saying(OK).await, route("all", NOBODY, ""));
    let good = route("all", &takes.url(), "");
    let running = Running::with(&good).await;
    let before = running.shared.base.settings();
    let Reloaded::Refused(problems) = running.reload(&format!("{unused}[delivery]\nack-batsh = 1\n")).await
    else {
        panic!("it is invalid");
    };
    assert_eq!(problems.len(), 1);
    let place = format!("{}:12:1: unknown key ack-batsh", running.site.path("alerter.toml").display());
    assert!(problems[0].starts_with(&place), "{problems:?}");
    assert!(Arc::ptr_eq(&before, &running.shared.base.settings()));
    let reasons = running.reasons();
    let [why] = reasons.as_slice() else { panic!("{reasons:?}") };
    assert!(why.contains(&place) && why.contains("stays in force"), "{why}");
    // Whatever words of other problems are in it, it names its own cause.
    let status: Daemon = running.socket().get("/v1/status").await.unwrap();
    let said: Vec<(Kind, &String)> = status.problems.iter().map(|one| (one.kind, &one.what)).collect();
    assert_eq!((said, &status.health.reasons), (vec![(Kind::Configuration, &reasons[0])], &reasons));
    let mark = running.fence("c1").await;
    running.until(mark, "all", State::Acknowledged).await;
    assert_eq!(running.reload(&good).await, changed(&[]));
    assert!(running.reasons().is_empty(), "it is corrected");
}

/// The file that was refused is the one that is wanted: a signal later reads it again, and not the one before. The broken variant
/// takes up the old file, and says that all is well.
#[tokio::test]
async fn a_file_that_was_refused_is_asked_for_until_it_is_corrected() {
    let running = Running::with(&route("all", NOBODY, "")).await;
    let text = std::fs::read_to_string(running.site.path("alerter.toml")).unwrap();
    let second = running.site.path("second.toml");
    std::fs::write(&second, format!("{text}[log]\nlevle = 1\n")).unwrap();
    let again =
        async |file: Option<PathBuf>| timeout(LONG, reload::reload(&running.shared, file)).await.unwrap();
    assert!(matches!(again(Some(second.clone())).await, Reloaded::Refused(_)));
    assert!(matches!(again(None).await, Reloaded::Refused(_)));
    assert!(running.reasons()[0].contains("second.toml"), "{:?}", running.reasons());
    std::fs::write(&second, text).unwrap();
    assert_eq!(again(None).await, changed(&[]));
    assert_eq!(running.shared.base.settings().file, second);
    assert!(running.reasons().iter().all(|reason| !reason.contains("toml")));
}

/// Where the marks are cannot change under a daemon that holds them; over the control socket every problem comes back.
#[tokio::test]
async fn another_journal_needs_a_restart() {
    let running = Running::with(&route("all", NOBODY, "")).await;
    let before = running.shared.base.settings();
    let text = std::fs::read_to_string(running.site.path("alerter.toml")).unwrap();
    std::fs::write(running.site.path("alerter.toml"), text.replace("marks.db", "other.db")).unwrap();
    let ask = async |file: Option<PathBuf>| -> Result<ReloadAnswer, ClientError> {
        let file = file.map(|file| file.to_str().unwrap().to_owned());
        running.socket().post("/v1/reload", &Request { file, ..Request::because("a new log") }).await
    };
    let answer = ask(None).await.unwrap();
    assert!(!answer.reloaded && answer.problems[0].contains("restart the resource"), "{answer:?}");
    assert!(Arc::ptr_eq(&before, &running.shared.base.settings()));
    assert!(ask(Some("alerter.toml".into())).await.is_err(), "relative to what?");
    // Another main file is one of the same daemon, if it names the same journal.
    std::fs::write(running.site.path("second.toml"), text + "[log]\nlevel = \"debug\"\n").unwrap();
    let answer = ask(Some(running.site.path("second.toml"))).await.unwrap();
    assert_eq!((answer.reloaded, answer.changes), (true, vec!["[log] has changed".to_owned()]));
    assert_eq!(running.shared.base.settings().log.level, tracing::Level::DEBUG);
    assert_eq!(running.shared.base.settings().file, running.site.path("second.toml"));
    let rows =
        running.shared.base.store.run(|journal: &mut Journal| journal.history(&HistoryFilter::default()));
    let rows = rows.await.unwrap().sound;
    let row = rows.iter().find(|row| row.event == "reloaded").unwrap();
    assert!(row.detail.contains("[log] has changed): a new log"), "{row:?}");
    assert!(row.actor.starts_with("alice (uid "), "{row:?}");
}

/// The mark of a route that is gone is sent to the routes that its host has now, and ends when they have it. The broken
/// variant, which ends the mark with the operator's word, notifies nobody.
#[tokio::test]
async fn a_mark_of_a_route_that_is_gone_is_sent_to_the_others() {
    let (takes, leave) = slow().await;
    let running = Running::with(&route("gone", NOBODY, "")).await;
    let mark = running.fence("c1").await;
    running.until(mark, "gone", State::Pending).await;
    running.reload(&route("new", &takes.url(), "")).await;
    said(&takes, 1).await;
    assert_eq!(running.dismiss("gone", "replaced").await.unwrap().changed, 1);
    assert_eq!(running.settled(mark).await, None, "the new one is still to have it");
    leave.add_permits(1);
    running.until(mark, "new", State::Acknowledged).await;
    assert_eq!(running.settled(mark).await, Some(Settlement::Acknowledged));
}

fn chain(names: &[&str]) -> String {
    let link = |name: &&str| format!("{{ route = \"{name}\", timeout = 3600 }}");
    let links = names.iter().map(link).collect::<Vec<_>>().join(", ");
    format!("[groups.g]\nhosts = [\"c1\"]\nchain = [{links}]\n")
}

/// Somebody may be taking a mark at this moment: it is left alone, in a chain too, where the next step would notify a second one
/// meanwhile. The broken variant ends it, and notifies `b`.
#[tokio::test]
async fn an_exchange_that_is_under_way_is_not_dismissed_with_its_route() {
    let (takes, leave) = slow().await;
    let next = Endpoint::saying(OK).await;
    let (a, b) = (route("a", &takes.url(), ""), route("b", &next.url(), "") + &route("rest", NOBODY, ""));
    let running = Running::with(&(chain(&["a", "b"]) + &a + &b)).await;
    let mark = running.fence("c1").await;
    said(&takes, 1).await;
    running.reload(&(chain(&["b"]) + &b)).await;
    let answer = running.dismiss("a", "replaced").await.unwrap();
    assert!(answer.changed == 0 && answer.message.contains("are in flight to route a"), "{answer:?}");
    leave.add_permits(1);
    running.until(mark, "a", State::Acknowledged).await;
    assert_eq!(running.settled(mark).await, Some(Settlement::Acknowledged));
    assert!(next.requests().is_empty());
}

/// What a pause holds stays held until somebody ends it: a configuration without its group is not taken up. The broken variant
/// sends it at once.
#[tokio::test]
async fn a_group_that_is_paused_does_not_go() {
    let takes = Endpoint::saying(OK).await;
    let all = route("all", &takes.url(), "");
    let running = Running::with(&format!("[groups.rack]\nhosts = [\"c1\"]\n{all}")).await;
    let pause = Request { group: Some("rack".to_owned()), ..Request::because("a new switch") };
    let _paused: serde_json::Value = running.socket().post("/v1/pause", &pause).await.unwrap();
    let mark = running.fence("c1").await;
    let Reloaded::Refused(why) = running.reload(&all).await else { panic!("it was taken up") };
    let words = ["group rack is paused by alice (uid ", "resume --group rack"];
    assert!(words.iter().all(|word| why[0].contains(word)), "{why:?}");
    assert_eq!(running.deliveries(mark).await, [("all".to_owned(), State::Pending)]);
    let resume = Request { reason: "it is in".to_owned(), ..pause };
    let _resumed: serde_json::Value = running.socket().post("/v1/resume", &resume).await.unwrap();
    assert!(matches!(running.reload(&all).await, Reloaded::Changed(_)));
    running.until(mark, "all", State::Acknowledged).await;
}
