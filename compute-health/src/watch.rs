//! The resident checker: looks at everything, publishes and counts, and answers the agent over a socket that is in memory alone.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};

use crate::checks::Check;
use crate::limit::{self, OK, Verdict, Words};
use crate::settings::{self, Settings};
use crate::tools::{self, ATTRD_UPDATER, Job, OWN, STONITH_ADMIN, Tools};

/// The attribute by which hosts hear of each other.
const ATTRIBUTE: &str = "host-health";
/// What is said is said again so often: Pacemaker forgets the words of a host whose connection was lost.
const AGAIN: Duration = Duration::from_secs(300);
/// How long hosts' words may be on their way.
const ON_THE_WAY: Duration = Duration::from_secs(3);
/// What the resident checker is started with.
pub(crate) const WATCH: &str = "watch";
/// The question that ends it.
pub(crate) const STOP: &str = "stop";
/// Exit codes of the OCF standard.
pub(crate) const SUCCESS: u8 = 0;
pub(crate) const FAILED: u8 = 1;
pub(crate) const DEGRADED: u8 = 190;

/// Who answered the agent.
#[derive(Debug)]
pub(crate) enum Answer {
    /// No checker runs.
    Nobody,
    /// The socket's name is taken by somebody else; who that is.
    Foreign(String),
    /// The checker with this process id does not answer.
    Silent(i32),
    /// The checker says this, with an exit code.
    Said(u8, String),
}

fn address() -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("compute-health/{}", settings::instance()))
}

/// Asks the checker, which answers in milliseconds, in seconds where the host has a load of fifty, and needs some to stop where the disk hangs.
pub(crate) fn ask(word: &str) -> Answer {
    let connected = address().and_then(|at| UnixStream::connect_addr(&at));
    let Ok(mut stream) = connected else { return Answer::Nobody };
    let Ok(peer) = getsockopt(&stream, PeerCredentials) else { return Answer::Nobody };
    let (pid, user) = (peer.pid(), peer.uid());
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    if user == 0 && line.is_empty() {
        // It has ended, and a child that it was just starting has the socket for a moment.
        return Answer::Silent(pid);
    }
    if user != 0 || line != format!("{OWN}\0{WATCH}\0").as_bytes() {
        return Answer::Foreign(format!(
            "the checker's socket is taken by process {pid} of user {user}: end it"
        ));
    }
    let mut said = String::new();
    let limit = Duration::from_secs(if word == STOP { 10 } else { 6 });
    let asked = stream.set_read_timeout(Some(limit)).and_then(|()| stream.write_all(word.as_bytes()));
    let answered = asked.and_then(|()| stream.read_to_string(&mut said));
    let answer = said.split_once(' ').and_then(|(code, text)| Some((code.parse().ok()?, text.to_owned())));
    match (answered, answer) {
        (Ok(_), Some((code, text))) => Answer::Said(code, text),
        _ => Answer::Silent(pid),
    }
}

/// What a program is asked for that runs at the moment.
#[derive(Debug)]
enum Task {
    Publish(String),
    Words,
    Fencings(Words),
}

/// All that the checker knows.
struct Watcher {
    settings: Settings,
    tools: Tools,
    checks: Vec<Check>,
    task: Option<(Task, Job)>,
    /// Programs that nobody waits for any more.
    late: Vec<Job>,
    /// The word that is published, since when, and when it was said last.
    word: (String, Instant, Instant),
    verdict: Option<Verdict>,
    /// The next look, and the next time that a program may be asked.
    due: (Instant, Instant),
    last: Instant,
}

/// Runs until it is told to stop.
///
/// # Errors
/// Its name is taken, or a parameter is wrong.
pub(crate) fn run() -> io::Result<()> {
    let settings = Settings::read().map_err(io::Error::other)?;
    let _there_is_none_already = nix::unistd::setsid();
    std::env::set_current_dir("/")?;
    let listener = UnixListener::bind_addr(&address()?)?;
    tools::outlive_others();
    let (tools, now) = (Tools::hold(), Instant::now());
    let checks = settings.targets.iter().cloned().map(Check::new).collect();
    let word = (String::new(), now, now);
    let mut watcher = Watcher {
        settings,
        tools,
        checks,
        task: None,
        late: Vec::new(),
        word,
        verdict: None,
        due: (now, now),
        last: now,
    };
    loop {
        watcher.step(Instant::now());
        let mut wanted = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        let asked = poll(&mut wanted, watcher.pause(Instant::now())).is_ok_and(|ready| ready > 0);
        let stream = if asked { listener.accept().ok() } else { None };
        if stream.is_some_and(|(stream, _)| watcher.answer(stream).is_ok_and(|stop| stop)) {
            return Ok(());
        }
    }
}

impl Watcher {
    fn step(&mut self, now: Instant) {
        if now.duration_since(self.last) > self.settings.interval + ON_THE_WAY {
            self.checks.iter_mut().for_each(|check| check.forget_time(now));
            self.verdict = None;
        }
        self.last = now;
        self.checks.iter_mut().for_each(Check::end);
        self.late.retain_mut(Job::is_there);
        if now >= self.due.0 {
            self.due.0 = now + self.settings.interval;
            self.checks.iter_mut().for_each(|check| check.begin(&self.settings.host, now));
        }
        if !self.fails_newly(now) {
            self.verdict = None;
        }
        self.proceed(now);
    }

    /// Until something may have to be done. A look mostly ends at once; one that hangs has to be published in time.
    fn pause(&self, now: Instant) -> PollTimeout {
        let soon = self.task.is_some() || self.checks.iter().any(|check| check.is_young(now));
        let due = self.due.0.saturating_duration_since(now) + Duration::from_millis(1);
        let pause = match self.checks.iter().any(|check| check.failing_for(now) > Duration::ZERO) {
            _ if soon => Duration::from_millis(20),
            true => due.min(Duration::from_secs(1)),
            false => due,
        };
        PollTimeout::try_from(pause).unwrap_or(PollTimeout::ZERO)
    }

    /// One program at a time: first what this host says, then what all say, then who was fenced.
    fn proceed(&mut self, now: Instant) {
        if let Some((task, mut job)) = self.task.take() {
            match job.end() {
                None => self.task = Some((task, job)),
                Some(printed) => {
                    self.late.push(job);
                    self.take(task, printed, now);
                }
            }
        }
        let suspect = self.checks.iter().find(|check| check.is_suspect(now));
        let word = suspect.map_or_else(|| OK.to_owned(), Check::word);
        let is_new = word != self.word.0;
        if self.task.is_some() || now < self.due.1 {
            return;
        }
        if is_new || now.duration_since(self.word.2) > AGAIN {
            self.due.1 = now + Duration::from_secs(1);
            self.begin(Task::Publish(word));
        } else if self.is_to_judge(now) {
            self.due.1 = now + self.settings.interval;
            self.begin(Task::Words);
        }
    }

    /// A host that fails counts the others once those with the same cause have had the time to say so.
    fn is_to_judge(&self, now: Instant) -> bool {
        let settled = now.duration_since(self.word.1) >= self.settings.interval + ON_THE_WAY;
        settled && self.fails_newly(now)
    }

    fn fails_newly(&self, now: Instant) -> bool {
        self.checks.iter().any(|check| check.counts(now) && check.was_good)
    }

    fn begin(&mut self, task: Task) {
        let job = match &task {
            Task::Publish(word) => self.tools.start(ATTRD_UPDATER, &["-n", ATTRIBUTE, "-U", word, "-p"]),
            Task::Words => self.tools.start(ATTRD_UPDATER, &["-n", ATTRIBUTE, "-Q", "-A"]),
            Task::Fencings(_) => {
                self.tools.start(STONITH_ADMIN, &["--history", "*", "--verbose", "--output-as=xml"])
            }
        };
        match job {
            Ok(job) => self.task = Some((task, job)),
            Err(_) => self.not_known(),
        }
    }

    fn not_known(&mut self) {
        let said = "what the other hosts say is not known; none is fenced";
        self.verdict = Some(Verdict::Hold(said.to_owned()));
    }

    fn take(&mut self, task: Task, printed: Option<String>, now: Instant) {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        match (task, printed) {
            (Task::Publish(word), Some(_)) => {
                let since = if word == self.word.0 { self.word.1 } else { now };
                self.word = (word, since, now);
            }
            (Task::Words, Some(printed)) => match limit::words(&printed) {
                Some(words) => self.begin(Task::Fencings(words)),
                None => self.not_known(),
            },
            (Task::Fencings(words), Some(printed)) => {
                let Some(fenced) = limit::fenced(&printed, since_epoch) else { return self.not_known() };
                let own = (self.settings.host.as_str(), self.word.0.as_str());
                self.verdict = Some(limit::judge(own, &words, &fenced, self.settings.limits));
                if !words.contains_key(own.0) {
                    // It is said once more.
                    self.word.0.clear();
                }
            }
            (_, None) => {
                self.due.1 = now + self.settings.interval;
                self.not_known();
            }
        }
    }

    /// Answers one question of root's; says whether the checker is to end.
    fn answer(&mut self, mut stream: UnixStream) -> io::Result<bool> {
        if getsockopt(&stream, PeerCredentials)?.uid() != 0 {
            return Ok(false);
        }
        stream.set_read_timeout(Some(Duration::from_millis(200)))?;
        let mut word = [0; 8];
        let length = stream.read(&mut word)?;
        if &word[..length] == STOP.as_bytes() {
            self.retract();
            stream.write_all(b"0 stopped")?;
            return Ok(true);
        }
        let (code, text) = self.says(Instant::now());
        stream.write_all(format!("{code} {text}").as_bytes())?;
        Ok(false)
    }

    /// The attribute goes with its checker.
    fn retract(&self) {
        let Ok(mut job) = self.tools.start(ATTRD_UPDATER, &["-n", ATTRIBUTE, "-D"]) else { return };
        while job.end().is_none() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// What the monitor says.
    fn says(&self, now: Instant) -> (u8, String) {
        let failed = self.checks.iter().filter(|check| check.counts(now));
        let (new, old): (Vec<&Check>, Vec<&Check>) = failed.partition(|check| check.was_good);
        let texts = |all: &[&Check]| all.iter().map(|check| check.text(now)).collect::<Vec<_>>().join(", ");
        let hint = || self.checks.iter().find_map(Check::hint).map(|text| (DEGRADED, text));
        let because = match &self.verdict {
            _ if new.is_empty() && old.is_empty() => return hint().unwrap_or((SUCCESS, String::new())),
            _ if new.is_empty() => "it did when the checker began; none is fenced",
            // The others are being asked, and Pacemaker keeps the first reason that it hears.
            None => return (SUCCESS, String::new()),
            Some(Verdict::Fence) if self.settings.fences => return (FAILED, texts(&new)),
            Some(Verdict::Fence) => "it would be fenced (reaction=observe)",
            Some(Verdict::Hold(reason)) => reason,
        };
        (DEGRADED, format!("{}; {because}", texts(if new.is_empty() { &old } else { &new })))
    }
}
