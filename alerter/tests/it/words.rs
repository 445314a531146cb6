//! What operators say, in any order, on three controllers, between failures, returns and moves of the alerter: a word that was answered
//! holds, one that was taken back takes nothing with it, and no failure is lost.

use std::fmt::Debug;
use std::time::Duration;

use marks::fencing::{Fencing, Origin};
use marks::register::{About, Decision, Scope};
use marks::time::Timestamp;
use proptest::prelude::*;
use serde_json::json;

use crate::api::Server;
use crate::decisions::{decision, end_of};
use crate::interleavings::cases;
use crate::site::{Alerter, CLOCKS, CONTROLLERS, Mark, Outage, ROUTES, Site, started};

const HOST: &str = "compute1";
/// Records nearer than this may be one outage by clocks.
const NEAR: Duration = Duration::from_secs(300);

/// A step that cannot happen is skipped.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The host dies and is fenced; `fence_mark` is asked, or Pacemaker alone reports it.
    Fails { is_marked: bool },
    /// It is back.
    Returns,
    /// The alerter works.
    Runs { seconds: u32 },
    /// It starts on another controller.
    Moves { to: usize },
    /// The routes refuse everything, or take it again.
    Turns,
    /// `mark`
    Says,
    /// `unmark`
    Ends,
    /// `release`
    Releases,
    /// `pause`, with a limit.
    Pauses { seconds: u64 },
    /// `resume`
    Resumes,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => any::<bool>().prop_map(|is_marked| Step::Fails { is_marked }),
        3 => Just(Step::Returns),
        5 => (4..40_u32).prop_map(|seconds| Step::Runs { seconds }),
        2 => (0..3_usize).prop_map(|to| Step::Moves { to }),
        2 => Just(Step::Turns),
        3 => Just(Step::Says),
        4 => Just(Step::Ends),
        1 => Just(Step::Releases),
        2 => (10..200_u64).prop_map(|seconds| Step::Pauses { seconds }),
        1 => Just(Step::Resumes),
    ]
}

/// What an operator said of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Failed,
    Ended,
}

struct Story {
    site: Site,
    alerter: Alerter,
    said: Vec<(Word, Timestamp)>,
    /// When pauses were in force.
    pauses: Vec<(Timestamp, Timestamp)>,
    /// The marks that a release names, which overrides a pause.
    released: Vec<String>,
    /// The marks that an operator ended, and after how many words.
    ended: Vec<(String, usize, Timestamp)>,
    wrong_here: Vec<String>,
}

impl Story {
    fn new(clocks: [i64; 3]) -> Self {
        let (site, alerter) = started(Site::new(&[HOST]).with_clocks(clocks), "ctl1");
        Self {
            site,
            alerter,
            said: Vec::new(),
            pauses: Vec::new(),
            released: Vec::new(),
            ended: Vec::new(),
            wrong_here: Vec::new(),
        }
    }

    /// Now, by the clock of the alerter's controller.
    fn here(&self) -> Timestamp {
        self.site.clock(self.alerter.controller)
    }

    fn is_up(&self) -> bool {
        self.site.hosts[HOST].member == Some(true)
    }

    /// An answered word stands in the register.
    fn say(&mut self, word: Word) {
        self.said.push((word, self.site.now));
        self.alerter.take_in(&self.site);
        self.alerter.keep_up(&mut self.site);
        self.site.advance(1.0);
    }

    fn open_marks(&self) -> Vec<Mark> {
        self.alerter.marks(HOST).into_iter().filter(|mark| mark.settled.is_none()).collect()
    }

    fn take(&mut self, step: Step) {
        let here = self.alerter.controller;
        match step {
            Step::Fails { is_marked } if self.is_up() => {
                self.site.fail(HOST, is_marked);
            }
            Step::Returns if !self.is_up() => {
                self.site.advance(6.0);
                self.site.back(HOST, "ctl2");
                self.alerter.pass(&mut self.site);
                self.site.advance(6.0);
            }
            Step::Runs { seconds } => self.alerter.run(&mut self.site, seconds),
            Step::Moves { to } => self.move_to(CONTROLLERS[to]),
            Step::Turns if self.site.down.is_empty() => self.site.down.extend(ROUTES),
            Step::Turns => self.site.down.clear(),
            Step::Says => {
                let word = Fencing { origin: Origin::Operator, ..self.site.fencing(here, HOST) };
                self.site.mark(here, &word);
                self.say(Word::Failed);
            }
            Step::Ends => {
                let open = self.open_marks();
                open.iter().for_each(|mark| self.alerter.unmark(&self.site, mark.id));
                let (words, at) = (self.said.len(), self.site.now);
                self.ended.extend(open.iter().map(|mark| (mark.id.to_string(), words, at)));
                if !open.is_empty() {
                    self.say(Word::Ended);
                }
            }
            Step::Releases => {
                let held = self.open_marks().into_iter().rfind(|mark| mark.standing.doubt().is_some());
                held.iter().for_each(|mark| self.alerter.release(&self.site, mark.id));
                if let Some(mark) = held {
                    self.released.push(mark.id.to_string());
                    self.say(Word::Failed);
                }
            }
            Step::Pauses { seconds } => self.pause(Duration::from_secs(seconds)),
            Step::Resumes => self.resume(),
            Step::Fails { .. } | Step::Returns => {}
        }
    }

    fn move_to(&mut self, controller: &'static str) {
        self.alerter = Alerter::start(&self.site, controller);
        self.alerter.pass(&mut self.site);
    }

    fn pause(&mut self, lasting: Duration) {
        let at = self.here();
        let about = About::Pause { scope: Scope::All, until: Some(at + lasting) };
        let pause = Decision { at, ..decision(&self.site, about) };
        self.alerter.decide(&pause);
        self.alerter.keep_up(&mut self.site);
        self.pauses.push((self.site.now, self.site.now + lasting));
    }

    fn resume(&mut self) {
        let at = self.here();
        for paused in self.alerter.in_force(&self.site) {
            self.alerter.end(&end_of(&paused, at));
        }
        self.pauses.iter_mut().for_each(|(_, until)| *until = self.site.now.min(*until));
        self.alerter.keep_up(&mut self.site);
    }

    /// Everything works for long enough: on this controller, which no other one may have to help, and on others.
    fn settle(&mut self) {
        self.site.down.clear();
        self.resume();
        self.alerter.run(&mut self.site, 40);
        self.wrong_here = self.complaints();
        for controller in ["ctl1", "ctl3"] {
            self.move_to(controller);
            self.alerter.run(&mut self.site, 40);
        }
    }

    /// What is wrong, as seen from outside.
    fn complaints(&self) -> Vec<String> {
        let lost = self.site.outages.iter().filter(|outage| !self.is_accounted_for(outage));
        let mut wrong: Vec<String> = lost.map(|outage| format!("lost: {outage:?}")).collect();
        wrong.extend(self.words_that_do_not_hold());
        for sent in &self.site.notified {
            let is_paused = |(from, until): &&(Timestamp, Timestamp)| *from < sent.at && sent.at < *until;
            let is_held =
                self.pauses.iter().any(|pause| is_paused(&pause)) && !self.released.contains(&sent.id);
            wrong.extend(is_held.then(|| format!("in a pause: {sent:?}")));
            let failed = Timestamp::from_seconds(sent.failure_time);
            let was_down = |outage: &&Outage| {
                outage.began.since(failed) < NEAR && outage.ended.is_none_or(|end| failed < end + NEAR)
            };
            let was_said =
                |(word, at): &&(Word, Timestamp)| *word == Word::Failed && at.distance(failed) < NEAR;
            let is_true = self.site.outages.iter().any(|outage| was_down(&outage))
                || self.said.iter().any(|said| was_said(&said));
            wrong.extend((!is_true).then(|| format!("false: {sent:?}")));
        }
        wrong
    }

    /// A mark that was ended is not sent until somebody says again that the host has failed; and that is sent, or held, unless it is ended.
    fn words_that_do_not_hold(&self) -> Vec<String> {
        let says = |from: usize, word: Word| self.said.iter().skip(from).any(|(said, _)| *said == word);
        let after = |(id, words, at): &&(String, usize, Timestamp)| {
            let is_sent = |sent: &crate::site::Notified| sent.id == *id && sent.at > *at;
            !says(words + 1, Word::Failed) && self.site.notified.iter().any(is_sent)
        };
        let mut wrong: Vec<String> =
            self.ended.iter().filter(after).map(|it| format!("sent after its end: {it:?}")).collect();
        let is_near = |at: &Timestamp| {
            self.site
                .notified
                .iter()
                .any(|sent| Timestamp::from_seconds(sent.failure_time).distance(*at) < NEAR)
        };
        let is_lost = |(n, (word, at)): &(usize, &(Word, Timestamp))| {
            *word == Word::Failed
                && !says(n + 1, Word::Ended)
                && !is_near(at)
                && self.alerter.held(HOST).is_empty()
        };
        let lost = self.said.iter().enumerate().filter(is_lost);
        wrong.extend(lost.map(|it| format!("a word that was lost: {it:?}")));
        wrong
    }

    /// It was sent to every route, by a mark of its own or by a word about the host near its beginning that was not taken back; or it is
    /// held; or an operator ended it, and nobody has said since that the host has failed.
    fn is_accounted_for(&self, outage: &Outage) -> bool {
        let end = outage.ended.unwrap_or(self.site.now);
        let is_near = |sent: Timestamp| outage.began.since(sent) < NEAR && sent < end + NEAR;
        let reached = |route: &str| {
            let is_it = |sent: &&crate::site::Notified| {
                sent.route == *route && is_near(Timestamp::from_seconds(sent.failure_time))
            };
            self.site.notified.iter().any(|sent| is_it(&sent))
        };
        let last_word = self.said.iter().rfind(|(_, at)| outage.began < *at && *at < end + NEAR);
        let was_ended = last_word.is_some_and(|(word, _)| *word == Word::Ended);
        ROUTES.iter().all(|route| reached(route)) || was_ended || !self.alerter.held(HOST).is_empty()
    }
}

fn played(steps: &[Step], clocks: [i64; 3]) -> Story {
    let mut story = Story::new(clocks);
    steps.iter().for_each(|step| story.take(*step));
    story.settle();
    story
}

#[track_caller]
fn assert_sound(story: &Story, steps: &impl Debug) {
    let wrong = [story.wrong_here.clone(), story.complaints()].concat();
    assert!(wrong.is_empty(), "{steps:?}\n{wrong:#?}\n{:?}\n{:#?}", story.said, story.site.notified);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(12), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn words_in_any_order_lose_no_failure(steps in prop::collection::vec(step(), 2..14), differ: bool) {
        let clocks = if differ { CLOCKS[1] } else { CLOCKS[0] };
        assert_sound(&played(&steps, clocks), &steps);
    }
}

/// A story that the rule before lost, and the broken variant of the oracle: it finds a failure that nobody sent. And one in which the alerter
/// moves before it has seen the failure: the broken variants judge Pacemaker's alert before they have taken in that a person made the mark,
/// or let it join that mark by its clock.
#[test]
fn a_failure_behind_a_word_that_was_taken_back_is_sent() {
    let (runs, fails) = (|seconds| Step::Runs { seconds }, Step::Fails { is_marked: true });
    let steps = [Step::Turns, Step::Says, runs(4), Step::Ends, Step::Turns, runs(20), fails, runs(40)];
    let mut story = played(&steps, CLOCKS[0]);
    assert_sound(&story, &steps);
    story.site.notified.clear();
    assert!(!story.complaints().is_empty());
    for clocks in &CLOCKS[..3] {
        let steps = [Step::Says, Step::Ends, fails, Step::Moves { to: 1 }];
        assert_sound(&played(&steps, *clocks), &(steps, clocks));
    }
}

async fn say_failed(server: &Server, host: &str, insist: bool) -> Result<String, String> {
    let path = format!("/v1/hosts/{host}?insist={insist}");
    let asked = json!({ "mark_unhealthy": true, "resource_status_reason": "I saw it" });
    server.daemon().patch(&path, asked).await.map(|answer| answer["message"].to_string())
}

/// A wrong digit would start the machines of a living host twice. The broken variants are the same words with `--insist`.
#[tokio::test]
async fn a_word_about_a_host_that_lives_or_that_nobody_knows_wants_insistence() {
    let mut site = Site::new(&[HOST, "compute2"]);
    site.die("compute2");
    site.hosts.get_mut("compute2").unwrap().fenced = site.now.seconds();
    let (server, alerter) = Server::beside(&site, "ctl1").await;
    let polls = alerter.poll_on_demand(true);
    for (host, why) in
        [(HOST, "alive"), ("COMPUTE1", "alive"), ("compte1", "unknown-host"), ("power", "unknown-host")]
    {
        assert_eq!(say_failed(&server, host, false).await.unwrap_err(), why, "{host}");
    }
    assert!(alerter.marks(HOST).is_empty());
    let said = say_failed(&server, "compute2", false).await.unwrap();
    assert!(said.contains("compute2 is marked") && !said.contains("could not be asked"), "{said}");
    assert!(say_failed(&server, HOST, true).await.unwrap().contains("compute1 is marked"));
    polls.abort();
    let said = say_failed(&server, "compute2", false).await.unwrap();
    assert!(said.contains("could not be asked"), "{said}");
}

/// The same of what lets a held mark go.
#[tokio::test]
async fn a_release_of_a_host_that_lives_wants_insistence() {
    let mut site = Site::new(&[HOST]);
    let said = Fencing { origin: Origin::Shell, ..site.fencing("ctl1", HOST) };
    site.mark("ctl1", &said);
    let (server, alerter) = Server::beside(&site, "ctl1").await;
    let _polls = alerter.poll_on_demand(true);
    assert_eq!(alerter.standings(HOST), ["unconfirmed"]);
    let release = async |insist: bool| {
        let asked = json!({ "target": HOST, "insist": insist, "reason": "I saw it" });
        server.daemon().post("/v1/release", asked).await.map(|answer| answer["changed"].clone())
    };
    assert_eq!(release(false).await, Err("alive".to_owned()));
    assert_eq!(alerter.standings(HOST), ["unconfirmed"]);
    assert_eq!(release(true).await, Ok(json!(1)));
    assert_eq!(alerter.standings(HOST), ["operator"]);
}

/// An answer of 200 means that the register has it. The broken variant is an engine that does not find it there.
#[tokio::test]
async fn a_word_is_answered_when_it_stands_in_the_register() {
    for finds_all in [true, false] {
        let (server, alerter) = Server::beside(&Site::new(&[HOST]), "ctl1").await;
        let _polls = alerter.poll_on_demand(finds_all);
        let daemon = server.daemon();
        let asked = json!({ "reason": "the switch is changed" });
        daemon.post("/v1/pause", asked).await.unwrap();
        assert_eq!(daemon.has_accepted_alone(), !finds_all);
    }
}

/// A pause of another controller, or a mark, may stand there. The broken variant answers that there is none.
#[tokio::test]
async fn what_is_not_found_before_the_register_was_read_is_not_known() {
    let site = Site::new(&[HOST]);
    let (server, mut alerter) = Server::before_a_poll(&site, "ctl1").await;
    let (daemon, _polls) = (server.daemon(), alerter.poll_on_demand(true));
    let asked = json!({ "target": HOST, "reason": "it lives" });
    let answer = async |path| daemon.post(path, asked.clone()).await;
    let unknown = || Err("register-unread".to_owned());
    let ended = json!({ "mark_unhealthy": false, "resource_status_reason": "it lives" });
    let host = format!("/v1/hosts/{HOST}");
    let all = tokio::join!(answer("/v1/maintenance/end"), answer("/v1/release"), daemon.patch(&host, ended));
    assert_eq!(all, (unknown(), unknown(), unknown()));
    alerter.take_in(&site);
    assert_eq!(answer("/v1/maintenance/end").await.map(|answer| answer["changed"].clone()), Ok(json!(0)));
    assert_eq!(answer("/v1/release").await, Err("not-found".to_owned()));
}
