//! The page with 0 and 50 open marks: what stands on the first screen of a telephone, and the pictures of the book.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tests::backlog::Backlog;
use tests::browser::Browser;
use tests::lab::wait;
use tests::programs::Site;
use tests::receiver::{Answer, Receiver, own_loopback};

use crate::Scenario;
use crate::story::{LIMIT, list, text};

pub(crate) const SCENARIOS: &[Scenario] =
    &[("page/screens_0", |_| shown_on_every_screen(0)), ("page/screens_50", |_| shown_on_every_screen(50))];

/// Where the pictures are written; without it none is.
const PICTURES: &str = "NHA_SCREENSHOTS";
/// Marks that were acknowledged, beside the open ones.
const DONE: usize = 12;
const PHONE: (i64, i64) = (390, 844);
const MONITOR: (i64, i64) = (1200, 800);

/// A daemon with so many open marks: a third are held by a pause, the others are rejected.
struct Crowd {
    site: Site,
    page: SocketAddr,
    open: usize,
    _receivers: [Receiver; 2],
}

impl Crowd {
    fn of(open: usize) -> anyhow::Result<Self> {
        let (mut recovery, mut wiki) = (Receiver::on_loopback()?, Receiver::on_loopback()?);
        let page = SocketAddr::new(own_loopback().into(), 7430);
        let mut site = Site::with(&format!(
            "[http.recovery]\nurl = \"http://{}/v1/host-failures\"\n\
             [http.wiki]\nurl = \"http://{}/\"\nrequired = false\n\
             [groups.rack1]\nhosts = [\"compute1*\"]\n\
             [page]\nuri = \"tcp://{page}\"\n",
            recovery.address(),
            wiki.address()
        ))?;
        // The alerter adds the deliveries of the other route.
        Backlog::of_marks(open + DONE, &["recovery"])?.lay_into(&site)?;
        recovery.down();
        if open > 0 {
            wiki.down();
        }
        site.start()?;
        if open > 0 {
            let words = ["pause", "--group", "rack1", "--reason", "new switch", "--for", "2h"];
            done(&site, &words)?;
        }
        (0..DONE).for_each(|_| recovery.answer_next(Answer::Status(200)));
        recovery.answer(Answer::Status(422));
        recovery.up()?;
        done(&site, &["retry", "--all"])?;
        let crowd = Self { site, page, open, _receivers: [recovery, wiki] };
        crowd.settle()?;
        Ok(crowd)
    }

    /// Until nothing is sent any more but now and then.
    fn settle(&self) -> anyhow::Result<()> {
        wait::until("each mark to be acknowledged, rejected or held", LIMIT, || {
            let mut states: BTreeMap<String, usize> = BTreeMap::new();
            for mark in list(&self.marks()?) {
                let is_open = mark["settled_at"].is_null();
                let is_held = !list(&mark["holds"]).is_empty();
                let of = |state: &str| list(&mark["deliveries"]).iter().any(|one| one["state"] == state);
                let state = match () {
                    () if !is_open => "acknowledged",
                    () if is_held => "held",
                    () if of("parked") => "parked",
                    () => "other",
                };
                *states.entry(state.to_owned()).or_default() += 1;
            }
            let count = |state: &str| states.get(state).copied().unwrap_or(0);
            ensure!(count("acknowledged") <= DONE, "{states:?}");
            let is_settled = count("acknowledged") == DONE && count("other") == 0;
            Ok((is_settled && count("held") + count("parked") == self.open).then_some(()))
        })
    }

    fn marks(&self) -> anyhow::Result<Value> {
        let said = self.site.alerter(&["list", "--all", "--json"])?;
        Ok(serde_json::from_slice(&said.stdout)?)
    }

    fn url(&self) -> String {
        format!("http://{}/", self.page)
    }

    /// Shown with figures that were counted after the last change.
    fn open_in(&self, browser: &Browser) -> anyhow::Result<()> {
        let url = self.url();
        wait::until("the page to show each mark", LIMIT, || {
            browser.go(&url)?;
            let shown = browser.run("return document.querySelectorAll('[data-mark]').length;")?;
            let title = browser.run("return document.title;")?;
            let is_counted = text(&title) == title_of(self.open);
            Ok((shown.as_u64() == u64::try_from(self.open + DONE).ok() && is_counted).then_some(()))
        })
    }

    fn end(mut self) -> anyhow::Result<()> {
        self.site.end(Signal::SIGKILL)
    }
}

fn done(site: &Site, words: &[&str]) -> anyhow::Result<()> {
    let output = site.alerter(words)?;
    ensure!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// What stands where, in pixels from the top.
const MEASURE: &str = r"
    const bottom = selector => document.querySelector(selector)?.getBoundingClientRect().bottom ?? null;
    const headline = document.getElementById('headline');
    return {
        lines: Math.round(headline.getBoundingClientRect().height / parseFloat(getComputedStyle(headline).lineHeight)),
        verdict: bottom('#verdict'), problem: bottom('#problems li p'), command: bottom('#problems li code'),
        wide: Math.max(document.documentElement.scrollWidth, document.body.scrollWidth) - document.documentElement.clientWidth,
        title: document.title, icon: document.getElementById('icon').getAttribute('href'),
        level: document.getElementById('verdict').className,
        elsewhere: performance.getEntriesByType('resource').map(one => one.name).filter(name => !name.startsWith(location.origin)),
    };";

fn shown_on_every_screen(open: usize) -> anyhow::Result<()> {
    let crowd = Crowd::of(open)?;
    let browser = Browser::open()?;
    for (device, (width, height)) in [("phone", PHONE), ("desktop", MONITOR)] {
        let screen =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": device == "phone"});
        browser.chrome("Emulation.setDeviceMetricsOverride", &screen)?;
        for scheme in ["light", "dark"] {
            let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
            browser.chrome("Emulation.setEmulatedMedia", &media)?;
            crowd.open_in(&browser)?;
            let measured = browser.run(MEASURE)?;
            judge(&measured, open, height).with_context(|| format!("{open} on a {device}: {measured}"))?;
            let is_of_the_book = open > 0 && (device == "desktop") == (scheme == "light");
            if let Some(directory) = std::env::var_os(PICTURES).filter(|_| is_of_the_book) {
                let file = format!("page-{device}-{scheme}.png");
                browser.screen(&PathBuf::from(directory).join(file))?;
            }
        }
    }
    let complaints = browser.complaints()?;
    ensure!(complaints.is_empty(), "{complaints:?}");
    crowd.end()
}

fn title_of(open: usize) -> String {
    if open == 0 { "nova-host-alerter".to_owned() } else { format!("({open}) nova-host-alerter") }
}

/// The verdict and the first cause with its command are on the first screen, and nothing is wider than it.
fn judge(measured: &Value, open: usize, height: i64) -> anyhow::Result<()> {
    let is_above = |what: &str| measured[what].as_f64().is_some_and(|bottom| bottom <= height as f64);
    ensure!(measured["wide"] == 0 && measured["lines"].as_u64().is_some_and(|lines| lines <= 2));
    ensure!(is_above("verdict") && list(&measured["elsewhere"]).is_empty());
    let level = if open == 0 { "ok" } else { "critical" };
    ensure!(measured["title"] == title_of(open) && measured["level"] == level);
    ensure!(measured["icon"] == format!("/icon.svg?{level}"));
    ensure!(open == 0 || is_above("problem") && is_above("command"));
    Ok(())
}
