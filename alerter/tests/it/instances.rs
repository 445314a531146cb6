//! What became of a failed host's instances: Nova is asked, page by page, and the outage is followed to its end.

use std::sync::Arc;
use std::time::Duration;

use alerter::base::Base;
use alerter::base::store::Store;
use alerter::daemon::recovery;
use alerter::intake::apply;
use alerter::outage;
use alerter::problem::Kind;
use alerter::recovery::kept::Kept;
use alerter::state::Shared;
use drivers::WhichName;
use drivers::instances::Instances;
use journal::{Journal, Role};
use marks::delivery::State;
use marks::id::MarkId;
use marks::recovery::{End, Seen, Tally};
use marks::time::Timestamp;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::cloud::{Cloud, Service, Whim};
use crate::config;
use crate::nova_config::beside_a_cloud;
use crate::openstack::{Request, error, http};
use crate::route::LONG;

const HOST: &str = "compute7.my.cloud.com";
const OTHER: &str = "compute8.my.cloud.com";

/// A Nova with instances, each with its host and its status.
pub(crate) struct FakeNova {
    instances: Vec<(String, String, &'static str)>,
    shows_hosts: bool,
    /// However many are asked for.
    max_limit: usize,
    /// How much each tenant says of its instance, in bytes.
    metadata: usize,
    /// Of each nova-compute.
    state: &'static str,
    /// How long it takes over each answer.
    slow: Duration,
}

impl FakeNova {
    fn of(count: usize) -> Self {
        let one =
            |number: usize| (format!("{number:08x}-0000-4000-8000-000000000000"), HOST.to_owned(), "ACTIVE");
        let instances = (0..count).map(one).collect();
        Self {
            instances,
            shows_hosts: true,
            max_limit: 1000,
            metadata: 0,
            state: "down",
            slow: Duration::ZERO,
        }
    }

    fn shown(&self, (id, host, status): &(String, String, &str)) -> serde_json::Value {
        let mut row = json!({"id": id, "name": format!("web-{}", &id[4..8]), "tenant_id": "p", "status": status,
            "OS-EXT-STS:task_state": null, "metadata": {"x": "x".repeat(self.metadata)}});
        if self.shows_hosts {
            row["OS-EXT-SRV-ATTR:host"] = host.as_str().into();
        }
        row
    }

    fn list(&self, query: &[(String, String)]) -> Vec<u8> {
        let value = |key: &str| query.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
        assert_eq!(value("all_tenants"), Some("1"));
        let limit: usize = value("limit").unwrap().parse().unwrap();
        let on = self.instances.iter().filter(|one| Some(one.1.as_str()) == value("host"));
        let behind: Vec<_> = match value("marker") {
            Some(marker) => on.skip_while(|one| one.0 != marker).skip(1).collect(),
            None => on.collect(),
        };
        let page: Vec<_> =
            behind.into_iter().take(limit.min(self.max_limit)).map(|one| self.shown(one)).collect();
        http(200, &json!({ "servers": page }).to_string(), "")
    }
}

impl Service for FakeNova {
    const TYPE: &'static str = "compute";
    const BASE: &'static str = "/v2.1";

    fn answer(&mut self, request: &Request, path: &str) -> Vec<u8> {
        assert_eq!(request.method, "GET", "it only reads");
        std::thread::sleep(self.slow);
        if path == "/servers/detail" {
            return self.list(&request.query);
        }
        if path == "/os-services" {
            let host = &request.query[0].1;
            let rows = if [HOST, OTHER].contains(&host.as_str()) {
                json!([{"host": host, "state": self.state}])
            } else {
                json!([])
            };
            return http(200, &json!({ "services": rows }).to_string(), "");
        }
        match self.instances.iter().find(|one| path == format!("/servers/{}", one.0)) {
            Some(one) => http(200, &json!({ "server": self.shown(one) }).to_string(), ""),
            None => error(404, "itemNotFound", "Instance could not be found."),
        }
    }
}

fn nova(cloud: &Cloud<FakeNova>) -> Instances {
    Instances::new(cloud.options(), WhichName::Fqdn).unwrap()
}

/// The broken variant takes the first page for all of them.
#[tokio::test]
async fn ten_thousand_instances_are_read_page_by_page() {
    let cloud = Cloud::with(FakeNova::of(10_000)).await;
    let found = nova(&cloud).on(HOST).await.unwrap();
    assert_eq!(found.len(), 10_000);
    assert_eq!(cloud.count("GET /v2.1/servers/detail"), 51, "200 at once, and an empty one");
    assert_eq!(nova(&cloud).on(OTHER).await.unwrap(), []);
    let wrong = nova(&cloud).on("compute7").await.unwrap_err();
    assert_eq!(wrong.kind, "unknown-host", "of a host that it does not know Nova lists nothing too");
}

/// A page that is longer than is read of one is asked for in smaller parts; Nova's own limit shortens pages.
#[tokio::test]
async fn long_pages_and_short_ones_are_read_to_the_end() {
    let cloud = Cloud::with(FakeNova { metadata: 60_000, max_limit: 7, ..FakeNova::of(30) }).await;
    assert_eq!(nova(&cloud).on(HOST).await.unwrap().len(), 30);
    let cloud = Cloud::with(FakeNova { metadata: 60_000, ..FakeNova::of(30) }).await;
    assert_eq!(nova(&cloud).on(HOST).await.unwrap().len(), 30);
}

/// What is not known is never an empty host: half a page, a 401 that stays, a 503, an end in the middle, hidden hosts. The
/// broken variant counts what came.
#[tokio::test]
async fn an_answer_that_is_not_whole_is_none() {
    for (whims, word) in [
        (vec![Whim::HalfBody; 3], "protocol"),
        (vec![Whim::Say(503, "{}".to_owned())], "unavailable"),
        (vec![Whim::Say(401, "{}".to_owned()); 2], "credentials"),
        (vec![Whim::Say(403, "{}".to_owned())], "forbidden"),
        (vec![Whim::Reset], "closed"),
    ] {
        let cloud = Cloud::with(FakeNova::of(3)).await;
        cloud.room().whims.extend(whims.into_iter().map(|whim| ("GET /v2.1/servers", whim)));
        assert_eq!(nova(&cloud).on(HOST).await.unwrap_err().kind, word);
        assert_eq!(nova(&cloud).on(HOST).await.unwrap().len(), 3, "the next answer is whole");
    }
    let hidden = Cloud::with(FakeNova { shows_hosts: false, ..FakeNova::of(3) }).await;
    assert_eq!(nova(&hidden).on(HOST).await.unwrap_err().kind, "forbidden");
    let id = hidden.room().service.instances[0].0.clone();
    assert!(nova(&hidden).one(&id).await.is_err());
}

#[tokio::test]
async fn one_instance_is_found_wherever_it_is_or_not_at_all() {
    let cloud = Cloud::with(FakeNova::of(1)).await;
    let id = cloud.room().service.instances[0].0.clone();
    cloud.room().service.instances[0].1 = OTHER.to_owned();
    let host = |seen: Option<Seen>| seen.and_then(|seen| seen.host);
    assert_eq!(host(nova(&cloud).one(&id).await.unwrap()).as_deref(), Some(OTHER));
    cloud.room().service.instances.clear();
    assert_eq!(nova(&cloud).one(&id).await.unwrap(), None);
}

/// A daemon without its engine that follows outages, with short times.
struct Follower {
    journal: Journal,
    shared: Arc<Shared>,
    kept: Kept,
    config: alerter::config::Recovery,
    stop: CancellationToken,
    _home: config::Site,
}

impl Follower {
    fn start(cloud: &Cloud<FakeNova>) -> Self {
        let home = config::Site::new("");
        let (path, clouds) = (home.path("state/marks.db"), cloud.site.files.path("clouds.yaml"));
        let text = format!(
            "[store]\npath = \"{}\"\nregister = \"none\"\n[hosts]\ndomain = \"my.cloud.com\"\non-shared-storage = true\n[http.recovery]\nurl = \"http://127.0.0.1:9/\"\nextensions = true\n[recovery]\nclouds-file = \"{}\"\nallow-http = true\n",
            path.display(),
            clouds.display()
        );
        let home = home.with("alerter.toml", text);
        let settings = home.settings();
        let mut config = settings.recovery.clone().unwrap();
        config.rules.every = Duration::from_millis(500);
        config.rules.limit = Duration::from_secs(2);
        let open = || Journal::open(&settings.store.path, Role::Alerter).unwrap();
        let (journal, (store, _thread)) = (open(), Store::start(open()).unwrap());
        let kept = Kept::beside(&settings.store.path);
        let shared = Arc::new(Shared::new(Base::new(settings, store, None)));
        shared.acting.allow(Duration::MAX);
        let stop = CancellationToken::new();
        tokio::spawn(recovery::follow(Arc::clone(&shared), config.clone(), stop.clone()));
        Self { journal, shared, kept, config, stop, _home: home }
    }

    fn fence(&mut self, host: &str) -> MarkId {
        let fencing = samples::fencing(host, Timestamp::now());
        self.journal.append_fencing(&fencing).unwrap();
        apply::take_in(&mut self.journal, (&self.shared.base, &self.shared.accounts), None).unwrap();
        fencing.id.into()
    }

    /// The mark of the host, once Nova has said that so many instances are there.
    async fn fence_with(&mut self, count: usize) -> MarkId {
        let mark = self.fence("compute7");
        self.wait("the first answer", |it| it.tally(mark).there == count).await;
        mark
    }

    fn tally(&self, mark: MarkId) -> Tally {
        self.kept.read(mark).map(|known| known.tally()).unwrap_or_default()
    }

    fn acknowledge(&mut self, mark: MarkId) {
        let delivery = self.journal.deliveries_of(mark).unwrap().sound.pop().unwrap();
        let taken = marks::register::Acknowledgement {
            mark,
            route: delivery.route,
            at: Timestamp::now(),
            by: "ctl2".into(),
        };
        assert!(self.journal.acknowledged_elsewhere(&taken, false, Timestamp::now()).unwrap());
        let state = self.journal.deliveries_of(mark).unwrap().sound.pop().unwrap().state;
        assert_eq!(state, State::Acknowledged);
    }

    async fn wait(&self, what: &str, is: impl Fn(&Self) -> bool) {
        let waited = tokio::time::timeout(LONG, async {
            while !is(self) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        assert!(waited.await.is_ok(), "{what} did not come");
    }

    fn kinds(&self) -> Vec<Kind> {
        self.shared.problems(Timestamp::now()).into_iter().map(|one| one.kind).collect()
    }

    async fn events(&self, mark: MarkId) -> Vec<String> {
        let kept = outage::Kept::read(&self.journal, mark).unwrap().unwrap().with_recovery(&self.kept);
        let of_nova = ["instances", "not-recovered", "recovered", "recovery-ended"];
        let timeline = kept.await.outage().timeline();
        timeline.into_iter().map(|one| one.event).filter(|event| of_nova.contains(&event.as_str())).collect()
    }
}

/// From the first answer to the last instance: what is left after the limit is a problem, and is none any more when it
/// moves. The broken variant ends with the acknowledgement.
#[tokio::test]
async fn an_outage_is_followed_to_its_last_instance() {
    let cloud = Cloud::with(FakeNova::of(3)).await;
    let mut follower = Follower::start(&cloud);
    let mark = follower.fence_with(3).await;
    let tally = |it: &Follower| it.tally(mark);
    cloud.room().service.instances[0].1 = OTHER.to_owned();
    follower.acknowledge(mark);
    follower.wait("the first one elsewhere", |it| tally(it).elsewhere == 1).await;
    follower.wait("the problem", |it| it.kinds().contains(&Kind::NotRecovered)).await;
    let problem = follower.shared.problems(Timestamp::now()).remove(0);
    assert!(
        problem.what.starts_with("2 instances are not known to be up after compute7 failed: web-0001"),
        "{problem:?}"
    );
    for number in [1, 2] {
        cloud.room().service.instances[number].1 = OTHER.to_owned();
    }
    follower.wait("the end", |it| it.kept.read(mark).is_some_and(|known| known.ended.is_some())).await;
    follower.wait("no problem", |it| it.kinds().is_empty()).await;
    let known = follower.kept.read(mark).unwrap();
    assert_eq!((known.ended.unwrap().0, known.last_up().is_some()), (End::Recovered, true));
    assert_eq!(follower.events(mark).await, ["instances", "not-recovered", "recovered"]);
    let kept = outage::Kept::read(&follower.journal, mark).unwrap().unwrap().with_recovery(&follower.kept);
    assert!(kept.await.outage().times().downtime.is_some_and(|seconds| seconds < 60));
    let asked = cloud.count("GET");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(cloud.count("GET"), asked, "nobody asks any more");
    follower.stop.cancel();
}

/// A Nova that is away delays nothing and is asked again; what it said before stays. Another host is not kept waiting.
#[tokio::test]
async fn a_nova_that_fails_is_asked_again() {
    let cloud = Cloud::with(FakeNova::of(2)).await;
    cloud.room().whims.extend([("GET", Whim::Say(503, "{}".into())), ("GET", Whim::HalfBody)]);
    let mut follower = Follower::start(&cloud);
    let mark = follower.fence("compute7");
    let there = |it: &Follower| it.kept.read(mark).is_some_and(|known| known.tally().there == 2);
    follower.wait("the answer", there).await;
    let now = Timestamp::now();
    let is_news = |one: &alerter::problem::Problem| one.not_yet_news(now).is_none();
    assert!(!follower.shared.problems(now).iter().any(is_news), "it was away for moments");
    // The file is written before the problem ends.
    follower.wait("the end of the problem", |it| it.kinds().is_empty()).await;
    follower.stop.cancel();
}

/// A host is back, and its instances are not. The broken variants: its return ends the outage, with the problem; an instance runs
/// again because Nova, whose nova-compute is away, has it as it was; one failed question hides the problem.
#[tokio::test]
async fn a_host_that_is_back_is_followed_until_its_instances_are_up() {
    let cloud = Cloud::with(FakeNova::of(2)).await;
    let mut follower = Follower::start(&cloud);
    let mark = follower.fence_with(2).await;
    let tally = |it: &Follower| it.tally(mark);
    follower.acknowledge(mark);
    assert!(follower.journal.note_return(mark, Timestamp::now(), Timestamp::now()).unwrap());
    follower.wait("the problem", |it| it.kinds().contains(&Kind::NotRecovered)).await;
    cloud.room().whims.push(("GET", Whim::Say(503, "{}".into())));
    follower.wait("both problems", |it| it.kinds() == [Kind::NotRecovered, Kind::RecoveryUnknown]).await;
    cloud.room().service.instances[0].2 = "ERROR";
    cloud.room().service.state = "up";
    follower.wait("one that runs", |it| tally(it).again == 1).await;
    assert!(follower.kinds().contains(&Kind::NotRecovered), "the other one does not");
    cloud.room().service.instances[0].2 = "ACTIVE";
    follower.wait("both", |it| tally(it).again == 2).await;
    follower.wait("one problem", |it| it.kinds() == [Kind::NotRecovered]).await;
    let known = follower.kept.read(mark).unwrap();
    assert_eq!(known.ended, None, "Nova may have them as they were");
    cloud.room().whims.push(("GET /v2.1/os-services", Whim::Say(503, "{}".into())));
    follower.wait("no answer", |it| it.kinds().contains(&Kind::RecoveryUnknown)).await;
    let asked = |it: &Follower| it.kept.read(mark).and_then(|known| known.asked_at);
    follower.wait("the next answer", |it| asked(it) > known.asked_at).await;
    let later = follower.kept.read(mark).unwrap().instances;
    assert_eq!(later, known.instances, "since when they run is still known");
    follower.stop.cancel();
}

/// The broken variant keeps everything that it has learned until the last of many slow answers.
#[tokio::test]
async fn slow_answers_are_noted_as_they_come() {
    let cloud = Cloud::with(FakeNova::of(10)).await;
    let mut follower = Follower::start(&cloud);
    let mark = follower.fence_with(10).await;
    let tally = |it: &Follower| it.tally(mark);
    cloud.room().service.slow = Duration::from_millis(300);
    cloud.room().service.instances.iter_mut().for_each(|one| one.1 = OTHER.to_owned());
    follower.wait("some of them", |it| (1..10).contains(&tally(it).elsewhere)).await;
    follower.wait("all of them", |it| tally(it).elsewhere == 10).await;
    follower.stop.cancel();
}

/// The broken variant takes a round in which one slow question failed, and no other was asked, for an answer.
#[tokio::test]
async fn a_round_without_an_answer_is_no_answer() {
    let cloud = Cloud::with(FakeNova::of(3)).await;
    let mut follower = Follower::start(&cloud);
    let mark = follower.fence_with(3).await;
    let tally = |it: &Follower| it.tally(mark);
    cloud.room().service.slow = Duration::from_millis(600);
    cloud.room().whims.extend((0..12).map(|_| ("GET /v2.1/servers/0000", Whim::HalfBody)));
    cloud.room().service.instances.iter_mut().for_each(|one| one.1 = OTHER.to_owned());
    follower.wait("no answer", |it| it.kinds().contains(&Kind::RecoveryUnknown)).await;
    cloud.room().service.slow = Duration::ZERO;
    follower.wait("all of them", |it| tally(it).elsewhere == 3 && it.kinds().is_empty()).await;
    follower.stop.cancel();
}

/// The broken variant asks for less time than it takes to see anything.
#[test]
fn the_questions_last_long_enough() {
    let site = |keys: &str| beside_a_cloud("recovery", keys);
    let wrong = "must be longer than recovery-limit, and at least eleven minutes and two intervals";
    for (keys, is_wrong) in [
        ("ask-for = 780\nrecovery-limit = 60", false),
        ("ask-for = 779\nrecovery-limit = 60", true),
        ("recovery-limit = 86400", true),
        ("ask-for = 86401\nrecovery-limit = 86400", false),
    ] {
        let said = site(keys).load().map_err(|problems| problems.to_string()).err().unwrap_or_default();
        assert_eq!(said.contains(wrong), is_wrong, "{keys}: {said}");
    }
}

/// The host fails again before its instances are up. The broken variants: a later mark that is not acknowledged ends the earlier
/// outage; what the restart left stopped counts as stopped before, and is recovered where it is stopped elsewhere.
#[tokio::test]
async fn a_host_that_fails_again_hands_its_instances_on() {
    let cloud = Cloud::with(FakeNova::of(1)).await;
    let mut follower = Follower::start(&cloud);
    let first = follower.fence("compute7");
    let known = |it: &Follower, mark| it.kept.read(mark).unwrap_or_default();
    follower.wait("the first answer", |it| known(it, first).tally().there == 1).await;
    follower.acknowledge(first);
    assert!(follower.journal.note_return(first, Timestamp::now(), Timestamp::now()).unwrap());
    cloud.room().service.instances[0].2 = "SHUTOFF";
    follower.wait("the problem", |it| it.kinds().contains(&Kind::NotRecovered)).await;
    let later = follower.fence("compute7");
    follower.wait("an answer about the later mark", |it| known(it, later).began_at.is_some()).await;
    assert_eq!(known(&follower, first).ended, None, "the later mark may be dismissed");
    follower.acknowledge(later);
    follower.wait("the end", |it| known(it, first).ended.is_some()).await;
    assert_eq!(known(&follower, first).ended.unwrap().0, End::FailedAgain);
    cloud.room().service.instances[0].1 = OTHER.to_owned();
    follower.wait("its place", |it| known(it, later).tally().moving == 1).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((known(&follower, later).tally().moving, known(&follower, later).ended), (1, None));
    follower.stop.cancel();
}

/// The broken variant asks for the first hosts again before it has asked for the last ones once.
#[tokio::test]
async fn no_host_waits_for_the_questions_about_others() {
    let cloud = Cloud::with(FakeNova { slow: Duration::from_millis(60), ..FakeNova::of(0) }).await;
    let mut follower = Follower::start(&cloud);
    let hosts: Vec<String> = (1..=24).map(|number| format!("c{number:02}")).collect();
    for host in &hosts {
        follower.fence(host);
    }
    let is_asked_for = |host: &String| cloud.room().asked.iter().any(|asked| asked.contains(host.as_str()));
    follower.wait("a question about each host", |_| hosts.iter().all(is_asked_for)).await;
    follower.stop.cancel();
}

/// S0-23, S1-6: a route that asks for extensions gets what this controller knows, and what Nova said when the host was lost; a host
/// of which Nova said nothing near its failure has no instances. The broken variant takes an old answer.
#[tokio::test]
async fn extensions_have_who_fenced_and_the_instances_at_the_loss() {
    let cloud = Cloud::with(FakeNova::of(0)).await;
    let mut follower = Follower::start(&cloud);
    let node = |name: &str| marks::host::HostName::parse(name).unwrap();
    let lost = |at, all| (at, drivers::event::Instances { all, projects: [("p".to_owned(), all)].into() });
    let now = Timestamp::now();
    let old = now - Duration::from_secs(3600);
    let said = [(node("compute7"), lost(now, 3)), (node("compute8"), lost(old, 4))];
    follower.shared.base.at_loss().extend(said);
    let extensions = |follower: &mut Follower, host: &str| {
        let mark = follower.fence(host);
        let body = follower.journal.deliveries_of(mark).unwrap().sound.pop().unwrap().body;
        serde_json::from_slice::<serde_json::Value>(&body).unwrap()["nova-host-alerter"].clone()
    };
    let known = extensions(&mut follower, "compute7");
    assert_eq!((&known["version"], &known["node"]), (&json!("1.0"), &json!("compute7")), "{known}");
    assert_eq!(
        (&known["group"], &known["instances"]),
        (&json!("default"), &json!({"all": 3, "projects": {"p": 3}}))
    );
    assert!(known["fencing"]["controller"].is_string() && known["fencing"]["by"].is_string(), "{known}");
    let unknown = extensions(&mut follower, "compute8");
    assert!(unknown["node"] == "compute8" && unknown.get("instances").is_none(), "{unknown}");
    follower.stop.cancel();
}

/// The broken variant forgets what Nova said before the restart, and with it the instances that have left since.
#[tokio::test]
async fn a_restart_goes_on_where_it_was() {
    let cloud = Cloud::with(FakeNova::of(2)).await;
    let mut follower = Follower::start(&cloud);
    let mark = follower.fence("compute7");
    follower.wait("the first answer", |it| it.kept.read(mark).is_some()).await;
    follower.stop.cancel();
    for one in &mut cloud.room().service.instances {
        one.1 = OTHER.to_owned();
    }
    follower.acknowledge(mark);
    let (stop, config) = (CancellationToken::new(), follower.config.clone());
    tokio::spawn(recovery::follow(Arc::clone(&follower.shared), config, stop.clone()));
    follower.wait("the end", |it| it.kept.read(mark).is_some_and(|known| known.ended.is_some())).await;
    let known = follower.kept.read(mark).unwrap();
    assert_eq!((known.ended.unwrap().0, known.tally().elsewhere), (End::Recovered, 2));
    stop.cancel();
}
