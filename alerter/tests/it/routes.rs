//! What the configured routes make of marks: who is notified of a host, and what becomes of a delivery whose route is gone.

use alerter::base::Base;
use alerter::base::store::Store;
use alerter::intake::apply;
use alerter::intake::start::{self, Serving};
use alerter::moment::Moment;
use alerter::state::Shared;
use journal::{Capacity, Ended, Journal, Role, Taken, Verdict};
use marks::delivery::State;
use marks::id::MarkId;
use marks::time::Timestamp;
use serde_json::Value;

use crate::check_config::{alerter, text};
use crate::config::Site;

/// A daemon at its start, without its engine.
pub(crate) struct Daemon {
    pub(crate) journal: Journal,
    pub(crate) shared: Shared,
}

/// What the engine does before its first pass.
pub(crate) fn catch_up(journal: &mut Journal, base: &Base) {
    let now = Timestamp::now();
    start::recover(journal, now).unwrap();
    start::complete_without_cluster(journal, base, now).unwrap();
    let mut serving = base.knows_groups().then(Serving::default);
    while let Some(at) = serving {
        serving = start::serve_page(journal, base, at, now).unwrap();
    }
}

/// Gives a site a configuration that says what every mark needs, with this register.
pub(crate) fn configure(site: &Site, register: &str, text: &str) {
    let store = site.path("state/marks.db");
    let head = format!("[store]\npath = \"{}\"\nregister = \"{register}\"\n", store.display());
    let text = format!("{head}[hosts]\ndomain = \"x.y\"\non-shared-storage = true\n{text}");
    std::fs::write(site.path("alerter.toml"), text).unwrap();
}

/// A site whose journal stays the same while its configuration changes.
pub(crate) struct Place(pub(crate) Site);

impl Place {
    pub(crate) fn new() -> Self {
        Self(Site::new(""))
    }

    /// Starts a daemon with this configuration.
    pub(crate) fn start(&self, text: &str) -> Daemon {
        self.configure(text);
        let settings = self.0.settings();
        let open = || Journal::open(&settings.store.path, Role::Alerter).unwrap();
        let (mut journal, (store, _thread)) = (open(), Store::start(open()).unwrap());
        let shared = Shared::new(Base::new(settings, store, None));
        catch_up(&mut journal, &shared.base);
        start::serve_unserved(&mut journal, &shared.base, Timestamp::now()).unwrap();
        Daemon { journal, shared }
    }

    pub(crate) fn configure(&self, text: &str) {
        configure(&self.0, "none", text);
    }

    /// What `status` says where no daemon runs.
    pub(crate) fn status(&self, words: &[&str]) -> String {
        text(&alerter(&self.0.path("alerter.toml"), words).stdout)
    }

    /// Somebody changes the journal by hand.
    pub(crate) fn tamper(&self, sql: &str) {
        rusqlite::Connection::open(self.0.path("state/marks.db")).unwrap().execute_batch(sql).unwrap();
    }

    fn without_route(&self) -> Value {
        let status: Value = serde_json::from_str(&self.status(&["status", "--json"])).unwrap();
        status["without_route"].clone()
    }
}

impl Daemon {
    pub(crate) fn fence(&mut self, host: &str, at: Timestamp) -> MarkId {
        let fencing = samples::fencing(host, at);
        self.journal.append_fencing(&fencing).unwrap();
        apply::take_in(&mut self.journal, (&self.shared.base, &self.shared.accounts), None).unwrap();
        fencing.id.into()
    }

    /// The same at a time of the test's own.
    pub(crate) fn fence_at(&mut self, host: &str, at: Timestamp) -> MarkId {
        let fencing = samples::fencing(host, at);
        self.journal.append_fencing(&fencing).unwrap();
        apply::take_in_at(
            &mut self.journal,
            (&self.shared.base, &self.shared.accounts),
            None,
            Moment { wall: at, ..Moment::now() },
        )
        .unwrap();
        fencing.id.into()
    }

    /// The routes of a mark, with the states of its deliveries.
    pub(crate) fn deliveries(&self, mark: MarkId) -> Vec<(String, State)> {
        let rows = self.journal.deliveries_of(mark).unwrap();
        assert!(rows.damaged.is_empty());
        rows.sound.into_iter().map(|delivery| (delivery.route, delivery.state)).collect()
    }

    /// Says whether the mark is settled with it.
    fn acknowledge(&mut self, mark: MarkId, route: &str) -> bool {
        let now = Timestamp::now();
        let begun = self.journal.dispatch(&[], &[Capacity::of(route, 1)], None, now).unwrap().begun;
        assert_eq!(begun[0].mark.id, mark);
        let verdict = Verdict::Acknowledged { reference: None, detail: "taken".into() };
        let ended = Ended { mark, route: route.to_owned(), verdict, at: now };
        self.journal.dispatch(&[ended], &[], None, now).unwrap();
        self.journal.mark(mark).unwrap().unwrap().settled.is_some()
    }
}

pub(crate) fn route(name: &str, keys: &str) -> String {
    format!("[http.{name}]\nurl = \"http://127.0.0.1:9/{name}\"\n{keys}\n")
}

fn to(route: &str, state: State) -> (String, State) {
    (route.to_owned(), state)
}

/// S1-15, S1-16: a delivery whose route is gone is kept, and made when the route is there again; until then the mark is open
/// and `status` says what to do. The broken variant, which adds nothing at the start, is the poll in between.
#[test]
fn a_delivery_whose_route_is_gone_waits_for_it() {
    let place = Place::new();
    let mark = place.start(&route("old", "")).fence("c1", Timestamp::now());
    assert_eq!(place.without_route(), 0);
    place.configure(&route("new", ""));
    assert_eq!(place.without_route(), 1, "no daemon has seen the new route yet");

    let mut daemon = place.start(&route("new", ""));
    assert_eq!(daemon.deliveries(mark), [to("new", State::Pending), to("old", State::Pending)]);
    assert_eq!(place.without_route(), 0);
    assert!(!daemon.acknowledge(mark, "new"), "it waits for the other one");
    assert_eq!(place.without_route(), 1);
    let said = place.status(&["status"]);
    assert!(said.contains("the mark of c1 cannot be sent: route old is not configured"), "{said}");
    assert!(place.status(&["list"]).contains("old pending"));

    let mut daemon = place.start(&(route("new", "") + &route("old", "")));
    assert_eq!(daemon.deliveries(mark), [to("new", State::Acknowledged), to("old", State::Pending)]);
    assert_eq!(place.without_route(), 0);
    assert!(daemon.acknowledge(mark, "old"), "with that it is settled");
}

/// S1-15: a mark of which no delivery was made at all gets its deliveries.
#[test]
fn a_mark_without_any_delivery_gets_one() {
    let place = Place::new();
    let mut daemon = place.start(&route("all", ""));
    let marked = daemon.fence("c1", Timestamp::now());
    let bare = samples::fencing("c2", Timestamp::now());
    let row = daemon.journal.mark(marked).unwrap().unwrap();
    let row = marks::mark::MarkRow { id: bare.id.into(), node: bare.node.clone(), ..row };
    daemon.journal.append_fencing(&bare).unwrap();
    daemon.journal.make_mark(&row, Taken::Fencing(&bare), &[], None, Timestamp::now()).unwrap();
    assert_eq!(place.without_route(), 1);
    let daemon = place.start(&route("all", ""));
    assert_eq!(daemon.deliveries(row.id), [to("all", State::Pending)]);
    assert_eq!(place.without_route(), 0);
    place.configure("[http.all]\nurl = 7\n");
    assert_eq!(place.without_route(), Value::Null, "nobody knows what is configured");
}
