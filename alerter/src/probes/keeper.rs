//! Runs the probes of every mark that waits for them beside the daemon, and keeps their conclusions in memory.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use drivers::Named;
use marks::id::MarkId;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

use super::conclusion::{self, Answer, Conclusion, Decision, Said, State};
use super::confirm::Confirm;

/// So many hosts are asked at once; the others wait in the order in which they came.
pub const AT_ONCE: usize = 16;
/// A probe that does not know is asked again after this time, or after `again` where that is shorter.
const PAUSE: Duration = Duration::from_secs(10);

/// A round lasts so much longer than its limit: each try begins a little late, and the last answer of a silent host must still count.
const SLACK: Duration = Duration::from_secs(10);
/// After so many rounds without a decision the log says so, and again after as many.
const ROUNDS: u32 = 3;

/// All probing of a daemon. Nothing of it is stored: another daemon asks again.
pub struct Prober {
    asked: HashMap<MarkId, Asked>,
    board: Board,
    news: watch::Receiver<HashMap<MarkId, Standing>>,
    places: Arc<Semaphore>,
}

/// A mark whose host is asked about until this is dropped.
struct Asked {
    host: Named,
    confirm: Confirm,
    _asking: AbortOnDropHandle<()>,
}

/// What is known of a mark.
struct Standing {
    conclusion: Conclusion,
    /// Why it is open, as far as the probes say it.
    doubt: Option<String>,
}

type Board = Arc<watch::Sender<HashMap<MarkId, Standing>>>;

impl Default for Prober {
    fn default() -> Self {
        let (board, news) = watch::channel(HashMap::new());
        let places = Arc::new(Semaphore::new(AT_ONCE));
        Self { asked: HashMap::new(), board: Arc::new(board), news, places }
    }
}

impl Prober {
    /// Begins to ask about a mark's host. A mark that is asked about already goes on, unless its probes have changed. Needs a tokio
    /// runtime.
    pub fn want(&mut self, mark: MarkId, host: &Named, confirm: &Confirm) {
        let same = |asked: &Asked| asked.host == *host && asked.confirm == *confirm;
        if self.asked.get(&mark).is_some_and(same) {
            return;
        }
        // Answers of the old probes must not count for the new ones.
        self.asked.remove(&mark);
        let open = Standing { conclusion: Conclusion::Open, doubt: None };
        self.board.send_if_modified(|board| {
            board.insert(mark, open).is_some_and(|before| before.conclusion != Conclusion::Open)
        });
        let case = self.case(mark, host, confirm);
        let asking = AbortOnDropHandle::new(tokio::spawn(case.ask()));
        let asked = Asked { host: host.clone(), confirm: confirm.clone(), _asking: asking };
        self.asked.insert(mark, asked);
    }

    fn case(&self, mark: MarkId, host: &Named, confirm: &Confirm) -> Case {
        Case {
            mark,
            host: host.clone(),
            confirm: confirm.clone(),
            answers: vec![None; confirm.probes.len()],
            begun: None,
            undecided: 0,
            board: Arc::clone(&self.board),
            places: Arc::clone(&self.places),
        }
    }

    /// Lets go of every mark that is not wanted any more: its probes end where they are.
    pub fn keep_only(&mut self, wanted: &HashSet<MarkId>) {
        self.asked.retain(|mark, _| wanted.contains(mark));
        self.board.send_if_modified(|board| {
            board.retain(|mark, _| wanted.contains(mark));
            false
        });
    }

    /// The conclusion on every mark that is wanted.
    pub fn conclusions(&self) -> HashMap<MarkId, Conclusion> {
        self.board.borrow().iter().map(|(mark, standing)| (*mark, standing.conclusion.clone())).collect()
    }

    /// Why a mark's conclusion is open, one sentence; `None` while that is not known, or where it is not open.
    pub fn doubt(&self, mark: &MarkId) -> Option<String> {
        self.board.borrow().get(mark)?.doubt.clone()
    }

    /// Waits until a conclusion is another than it was at the last call's end. May be dropped and called again.
    pub async fn changed(&mut self) {
        self.news.changed().await.expect("the sender is kept beside the receiver");
    }
}

/// One mark while it is asked about.
struct Case {
    mark: MarkId,
    host: Named,
    confirm: Confirm,
    /// What each probe said in this round.
    answers: Vec<Option<Said>>,
    /// When this round began.
    begun: Option<Instant>,
    /// So many rounds in a row have ended without a decision.
    undecided: u32,
    board: Board,
    places: Arc<Semaphore>,
}

impl Case {
    /// Asks until the host is confirmed to be down.
    async fn ask(mut self) {
        loop {
            let conclusion = self.round().await;
            self.publish(&conclusion);
            match conclusion {
                Conclusion::Confirmed => return,
                Conclusion::Healthy(_) => {
                    self.forget();
                    self.undecided = 0;
                    sleep(self.confirm.again).await;
                }
                Conclusion::Open => sleep(self.confirm.again.min(PAUSE)).await,
            }
        }
    }

    /// Asks every probe that has not said what it knows, once it is this host's turn.
    async fn round(&mut self) -> Conclusion {
        let places = Arc::clone(&self.places);
        let _place = places.acquire().await.expect("nobody closes it");
        if self.begun.is_some_and(|begun| begun.elapsed() >= self.confirm.limit) {
            self.give_up();
        }
        let begun = *self.begun.get_or_insert_with(Instant::now);
        let _in_time = timeout_at(begun + self.confirm.limit + SLACK, self.ask_the_rest()).await;
        conclusion::conclusion(self.confirm.rule, &self.host.node, &self.said())
    }

    /// Begins a new round, since this one ended without a decision.
    fn give_up(&mut self) {
        self.undecided = self.undecided.saturating_add(1);
        if self.undecided.is_multiple_of(ROUNDS) {
            let (mark, node, rounds) = (&self.mark, &self.host.node, self.undecided);
            warn!(%mark, host = %node, "after {rounds} rounds of probes it is not known whether {node} is down: repair the probes, or release the mark");
        }
        self.forget();
    }

    /// Old answers do not count.
    fn forget(&mut self) {
        self.begun = None;
        self.answers.fill(None);
    }

    /// Ends as soon as the rule has decided; what still runs then is given up.
    async fn ask_the_rest(&mut self) {
        let mut asking = JoinSet::new();
        let is_open = |said: &Option<Said>| said.as_ref().is_none_or(|said| said.state == State::Unknown);
        for (at, _) in self.answers.iter().enumerate().filter(|(_, said)| is_open(said)) {
            let (probes, host) = (Arc::clone(&self.confirm.probes), self.host.clone());
            asking.spawn(async move { (at, probes[at].ask(&host).await) });
        }
        while let Some(ended) = asking.join_next().await {
            let (at, said) = ended.expect("a panic anywhere ends the whole daemon");
            self.answers[at] = Some(said);
            if self.confirm.rule.decide(&conclusion::states(&self.said())) != Decision::Open {
                return;
            }
        }
    }

    fn said(&self) -> Vec<Answer<'_>> {
        let names = self.confirm.probes.iter().map(|probe| probe.name.as_str());
        names.zip(self.answers.iter().map(Option::as_ref)).collect()
    }

    /// The conclusion of a mark that is not wanted any more is dropped.
    fn publish(&self, conclusion: &Conclusion) {
        let doubt = match conclusion {
            Conclusion::Open => conclusion::doubt(&self.host.node, &self.said()),
            Conclusion::Confirmed | Conclusion::Healthy(_) => None,
        };
        self.board.send_if_modified(|board| {
            let Some(standing) = board.get_mut(&self.mark) else { return false };
            let is_news = standing.conclusion != *conclusion;
            if is_news || standing.doubt != doubt {
                self.log(conclusion, doubt.as_deref());
            }
            *standing = Standing { conclusion: conclusion.clone(), doubt };
            is_news
        });
    }

    fn log(&self, conclusion: &Conclusion, doubt: Option<&str>) {
        let (mark, node) = (&self.mark, &self.host.node);
        match (conclusion, doubt) {
            (Conclusion::Confirmed, _) => {
                let known = conclusion::of_state(State::Unhealthy, &self.said());
                info!(%mark, host = %node, "{node} is down, as its group's probes confirm: {known}");
            }
            (Conclusion::Healthy(sentence), _) => warn!(%mark, host = %node, "{sentence}"),
            (Conclusion::Open, Some(doubt)) => warn!(%mark, host = %node, "{doubt}"),
            (Conclusion::Open, None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use marks::host::HostName;
    use reqwest::tls;

    use super::*;
    use crate::probes::{PollUrl, PollUrlOptions, Probe, Rule, Template, Tries, Way};

    /// A probe that takes its limit to the end.
    fn silent(port: u16, limit: Duration) -> Confirm {
        let options = PollUrlOptions {
            url: Template::parse(&format!("http://127.0.0.1:{port}/{{nodename}}")).unwrap(),
            healthy: "passing".to_owned(),
            tries: Tries { retries: 0, interval: Duration::ZERO, timeout: limit },
            conn_error_as_unhealthy: true,
            ca_file: None,
            identity: None,
            tls_min: tls::Version::TLS_1_2,
            verify: true,
        };
        let way = Way::PollUrl(Box::new(PollUrl::new(options).unwrap()));
        let probes = Arc::new([Probe { name: "poll-url.api".to_owned(), way }]);
        Confirm { rule: Rule::AllFailed, limit, again: limit, probes }
    }

    /// S0-11: a host that is silent to the end of the last try is down, also where the tries take the whole limit.
    ///
    /// The broken variant cuts the round at the limit itself: the answer comes some milliseconds later, in every round.
    #[tokio::test]
    async fn the_last_answer_of_a_round_is_heard() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let limit = Duration::from_secs(1);
        let confirm = silent(listener.local_addr().unwrap().port(), limit);
        let node = HostName::parse("compute1").unwrap();
        let mark = MarkId::of_node_fenced(&node, 1);
        let host = Named { fqdn: node.clone(), node };
        let mut case = Prober::default().case(mark, &host, &confirm);
        assert_eq!(case.round().await, Conclusion::Confirmed);
        let mut cut = Prober::default().case(mark, &host, &confirm);
        let _cut_at_the_limit = timeout_at(Instant::now() + limit, cut.ask_the_rest()).await;
        assert_eq!(cut.answers, [None]);
    }
}
