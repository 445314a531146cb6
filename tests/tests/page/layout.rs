//! The page on a phone, at night, and how soon there is something to see.

use std::path::Path;

use anyhow::ensure;
use serde_json::{Value, json};
use tests::browser::Browser;
use tests::lab::wait;

use crate::Scenario;
use crate::story::{LIMIT, Story};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("page/a_phone_scrolls_in_one_direction", a_phone_scrolls_in_one_direction),
    ("page/night_and_day_differ", night_and_day_differ),
    ("page/something_is_seen_soon", something_is_seen_soon),
];

const WIDTH: i64 = 360;

/// Keeps a picture beside the built programs.
fn keep(browser: &Browser, name: &str) -> anyhow::Result<()> {
    browser.picture(&Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("page-{name}.png")))
}

/// By how many pixels the page is wider than the phone, whose browser would make everything smaller for it.
fn excess(browser: &Browser) -> anyhow::Result<i64> {
    let script = "return Math.max(document.documentElement.scrollWidth, document.body.scrollWidth);";
    Ok(browser.run(script)?.as_i64().unwrap_or(i64::MAX) - WIDTH)
}

/// The broken variant has a line that is as wide as a monitor.
fn a_phone_scrolls_in_one_direction(story: &mut Story) -> anyhow::Result<()> {
    story.thicken()?;
    let browser = Browser::open()?;
    let phone = json!({"width": WIDTH, "height": 740, "deviceScaleFactor": 2, "mobile": true});
    browser.chrome("Emulation.setDeviceMetricsOverride", &phone)?;
    browser.go(&story.url())?;
    ensure!(browser.run("return window.innerWidth;")? == WIDTH, "this is no phone");
    let more = excess(&browser)?;
    keep(&browser, "phone")?;
    ensure!(more == 0, "the page is {more} pixels too wide");
    browser
        .run("const p = document.createElement('p'); p.textContent = 'wide'; p.style.width = '2000px'; document.body.append(p);")?;
    ensure!(excess(&browser)? > 0, "nobody would notice");
    Ok(())
}

fn ground(browser: &Browser) -> anyhow::Result<Value> {
    browser.run("return getComputedStyle(document.body).backgroundColor;")
}

fn night_and_day_differ(story: &mut Story) -> anyhow::Result<()> {
    story.thicken()?;
    let browser = Browser::open()?;
    let mut grounds = Vec::new();
    for scheme in ["light", "dark"] {
        let wanted = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        browser.chrome("Emulation.setEmulatedMedia", &wanted)?;
        browser.go(&story.url())?;
        grounds.push(ground(&browser)?);
        keep(&browser, scheme)?;
    }
    ensure!(grounds[0] != grounds[1], "{grounds:?}");
    Ok(())
}

/// Printed and not asserted: this machine may be busy.
fn something_is_seen_soon(story: &mut Story) -> anyhow::Result<()> {
    story.thicken()?;
    let browser = Browser::open()?;
    browser.go(&story.url())?;
    let script = "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null;";
    let painted = wait::until("something to be painted", LIMIT, || Ok(browser.run(script)?.as_f64()))?;
    eprintln!("first contentful paint: {painted:.0} ms");
    Ok(())
}
