//! A daemon whose page has something of everything to show.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, ensure};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tests::lab::wait;
use tests::programs::Site;
use tests::receiver::{Answer, Receiver, own_loopback};

/// For what the daemon does by itself.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);
/// What somebody could type as a reason.
pub(crate) const HOSTILE: &str = "<script>alert(1)</script>";

/// The daemon with its endpoints.
pub(crate) struct Story {
    pub(crate) site: Site,
    pub(crate) receiver: Receiver,
    /// The daemon.
    pub(crate) pid: Pid,
    page: SocketAddr,
    fenced: u32,
    _dead: Receiver,
}

impl Story {
    /// Two hosts are reported, though a route that is not required is dead all the time.
    pub(crate) fn begin() -> anyhow::Result<Self> {
        let (receiver, mut dead) = (Receiver::on_loopback()?, Receiver::on_loopback()?);
        dead.down();
        let page = SocketAddr::new(own_loopback().into(), 7430);
        let (alive, gone) = (receiver.address(), dead.address());
        let tables = format!(
            "[http.recovery]\nurl = \"http://{alive}/v1/host-failures\"\n\
             [http.wiki]\nurl = \"http://{gone}/\"\nrequired = false\n\
             [http.late]\nurl = \"http://{gone}/\"\nhosts = [\"late*\"]\nstale-after = 1\n\
             [groups.rack1]\nhosts = [\"r1-*\"]\n\
             [page]\nuri = \"tcp://{page}\"\n"
        );
        let mut site = Site::with(&tables)?;
        let pid = Pid::from_raw(site.start()?.cast_signed());
        let mut story = Self { site, receiver, pid, page, fenced: 0, _dead: dead };
        for host in ["compute1", "compute2"] {
            story.fence(host)?;
        }
        story.until("both are reported", |story| {
            let all = story.json(&["list", "--all"])?;
            Ok(list(&all).iter().filter(|mark| word_of(mark) == "acknowledged").count() == 2)
        })?;
        story.until("the dead route is noticed", |story| {
            Ok(!story.route("wiki")?["failing_since"].is_null())
        })?;
        Ok(story)
    }

    /// Brings about what an operator would be woken for, once.
    pub(crate) fn thicken(&mut self) -> anyhow::Result<()> {
        if self.is_thick()? {
            return Ok(());
        }
        self.fence("late1")?;
        self.until("a route's terms hold late1", |story| story.is("late1", "late", "held"))?;
        self.receiver.answer(Answer::Status(422));
        self.fence("compute3")?;
        self.until("compute3 is parked", |story| story.is("compute3", "recovery", "parked"))?;
        self.done(&["maintenance", "begin", "compute4", "--reason", "new disk", "--for", "2h"])?;
        self.done(&["pause", "--group", "rack1", "--reason", HOSTILE])?;
        for host in ["compute4", "r1-1", "r1-2"] {
            self.fence(host)?;
        }
        self.until("three are held", |story| {
            let all = story.json(&["list"])?;
            let is_held = |mark: &&Value| mark["holds"].as_array().is_some_and(|holds| !holds.is_empty());
            Ok(all.as_array().is_some_and(|all| all.iter().filter(is_held).count() == 3))
        })
    }

    /// Whether it has come to that already.
    pub(crate) fn is_thick(&self) -> anyhow::Result<bool> {
        Ok(list(&self.json(&["list"])?).iter().any(|mark| mark["settled_at"].is_null()))
    }

    /// Fences another host, whose mark the pause holds.
    pub(crate) fn fence_another(&mut self) -> anyhow::Result<()> {
        let name = format!("r1-another{}", self.fenced);
        self.fence(&name)
    }

    fn fence(&mut self, host: &str) -> anyhow::Result<()> {
        self.fenced += 1;
        self.site.fence(host)
    }

    /// Where the page is.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.page)
    }

    /// What a command says.
    pub(crate) fn json(&self, words: &[&str]) -> anyhow::Result<Value> {
        let output = self.site.alerter(&[words, &["--json"]].concat())?;
        serde_json::from_slice(&output.stdout).with_context(|| format!("{words:?}: {output:?}"))
    }

    pub(crate) fn done(&self, words: &[&str]) -> anyhow::Result<()> {
        let output = self.site.alerter(words)?;
        ensure!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    fn route(&self, name: &str) -> anyhow::Result<Value> {
        let status = self.json(&["status"])?;
        let routes = status["daemon"]["routes"].as_array().context("no routes")?;
        Ok(routes.iter().find(|route| route["name"] == name).cloned().unwrap_or_default())
    }

    fn is(&self, host: &str, route: &str, state: &str) -> anyhow::Result<bool> {
        let shown = self.json(&["show", host])?;
        let deliveries = shown[0]["deliveries"].as_array().context("not marked yet")?;
        Ok(deliveries.iter().any(|one| one["route"] == route && one["state"] == state))
    }

    fn until(&self, what: &str, holds: impl Fn(&Self) -> anyhow::Result<bool>) -> anyhow::Result<()> {
        wait::until(what, LIMIT, || Ok(holds(self)?.then_some(())))
    }

    /// Every figure that the page has to show, counted from the journal's own rows as `list` gives them.
    pub(crate) fn figures(&self) -> anyhow::Result<Value> {
        let all = self.json(&["list", "--all"])?;
        let mut figures = json!({"marks": {}});
        for mark in list(&all) {
            figures["marks"][text(&mark["id"])] = of_mark(mark);
        }
        Ok(figures)
    }

    /// What is said where a scenario fails.
    pub(crate) fn explain(&self) -> String {
        let said = |words: &[&str]| match self.site.alerter(words) {
            Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
            Err(error) => error.to_string(),
        };
        said(&["status"]) + &said(&["list"])
    }
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The word for a whole mark, as the design's table has it.
fn word_of(mark: &Value) -> &str {
    if !mark["settled_at"].is_null() {
        return text(&mark["state"]);
    }
    let has = |state: &str| list(&mark["deliveries"]).iter().any(|one| one["state"] == state);
    match () {
        () if has("quarantined") => "quarantined",
        () if has("held") || !list(&mark["holds"]).is_empty() => "held",
        () if has("in-flight") => "in-flight",
        () if has("parked") => "parked",
        () => "pending",
    }
}

fn of_mark(mark: &Value) -> Value {
    let mut deliveries = json!({});
    for one in list(&mark["deliveries"]) {
        // One attempt is not said, nor how many it took in the end.
        let attempts = one["attempts"].as_u64().filter(|count| one["ended_at"].is_null() && *count > 1);
        deliveries[text(&one["route"])] = json!({"state": one["state"], "attempts": attempts.unwrap_or(0)});
    }
    let is_held = |one: &&Value| one["state"] == "held" && mark["settled_at"].is_null();
    let by_terms = list(&mark["deliveries"]).iter().find(is_held);
    let hold = list(&mark["holds"]).first().or(by_terms.map(|one| &one["last"]["kind"]));
    json!({"host": mark["host"], "state": word_of(mark), "hold": hold, "deliveries": deliveries})
}
