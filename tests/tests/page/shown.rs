//! What the page shows is what the journal has, at once and as it changes, with scripts and without.

use anyhow::{Context, ensure};
use nix::sys::signal::{Signal, kill};
use serde_json::{Value, json};
use tests::browser::Browser;
use tests::lab::wait;

use crate::Scenario;
use crate::story::{LIMIT, Story, list, text};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("page/a_dead_route_that_is_not_required_is_no_alarm", a_dead_route_that_is_not_required_is_no_alarm),
    ("page/every_figure_is_the_journals", every_figure_is_the_journals),
    ("page/a_change_appears_in_the_same_document", a_change_appears_in_the_same_document),
    ("page/a_request_that_hangs_is_given_up", a_request_that_hangs_is_given_up),
    ("page/without_scripts_it_is_loaded_again", without_scripts_it_is_loaded_again),
    ("page/nothing_comes_from_elsewhere", nothing_comes_from_elsewhere),
];

/// Reads every figure from the document as it stands.
pub(crate) const READ: &str = r"
    const number = (one, selector) => Number(one.querySelector(selector)?.textContent ?? 0);
    const all = selector => [...document.querySelectorAll(selector)];
    const by = (ones, key, value) => Object.fromEntries(ones.map(one => [one.dataset[key], value(one)]));
    const inside = (one, selector) => [...one.querySelectorAll(selector)];
    return {
        marks: by(all('[data-mark]'), 'mark', one => ({
            host: one.cells[0].textContent,
            state: one.querySelector('.state').textContent.split(' ').pop(),
            hold: one.dataset.hold ?? null,
            deliveries: by(inside(one, '[data-delivery]'), 'delivery', way => ({
                state: way.querySelector('i').textContent, attempts: number(way, '[data-figure=attempts]') })),
        })),
    };";

fn until_shown(story: &Story, browser: &Browser) -> anyhow::Result<Value> {
    wait::until("the page to show what the journal has", LIMIT, || {
        let (wanted, shown) = (story.figures()?, browser.run(READ)?);
        ensure!(shown == wanted, "the page shows\n{shown}\nand the journal has\n{wanted}");
        Ok(Some(shown))
    })
}

/// An operator who is woken for it could do nothing that matters now. The broken variant is red for every dead route.
fn a_dead_route_that_is_not_required_is_no_alarm(story: &mut Story) -> anyhow::Result<()> {
    if story.is_thick()? {
        // The story has gone on, in another round.
        return Ok(());
    }
    let browser = Browser::open()?;
    browser.go(&story.url())?;
    let header =
        browser.run("const h = document.querySelector('header'); return [h.className, h.innerText];")?;
    ensure!(header[0] == "warning", "{header}");
    ensure!(text(&header[1]).starts_with("No fenced host waits to be reported."), "{header}");
    let problems = browser.run("return document.getElementById('problems').innerText;")?;
    ensure!(text(&problems).contains("wiki") && !text(&problems).contains("critical"), "{problems}");
    Ok(())
}

/// The broken variant has one figure that is another one's.
fn every_figure_is_the_journals(story: &mut Story) -> anyhow::Result<()> {
    story.thicken()?;
    let browser = Browser::open()?;
    browser.go(&story.url())?;
    let shown = until_shown(story, &browser)?;
    let states: Vec<&str> =
        shown["marks"].as_object().context("no marks")?.values().map(|mark| text(&mark["state"])).collect();
    ensure!(["held", "parked", "acknowledged"].iter().all(|state| states.contains(state)), "{shown}");
    let headline = browser.run("return document.getElementById('headline').textContent;")?;
    let open = states.iter().filter(|state| **state != "acknowledged").count();
    ensure!(
        text(&headline).starts_with(&format!("NOT EVERY FENCED HOST IS REPORTED: {open} wait")),
        "{headline}"
    );
    let said = story.json(&["status"])?["headline"].clone();
    let common = text(&headline).trim_end_matches('.');
    ensure!(text(&said).starts_with(common), "the terminal says {said}");
    let title = browser.run("return document.title;")?;
    ensure!(text(&title).starts_with(&format!("({open}) ")), "{title}");
    let alter = "document.querySelector('[data-mark] .state').textContent = 'lost';";
    let altered = browser.run(&format!("{alter}{READ}"))?;
    ensure!(altered != shown, "nothing is compared");
    Ok(())
}

/// The broken variant loads the page again: what was set in its window is gone.
fn a_change_appears_in_the_same_document(story: &mut Story) -> anyhow::Result<()> {
    story.thicken()?;
    let browser = Browser::open()?;
    browser.go(&story.url())?;
    let before = until_shown(story, &browser)?;
    browser.run("window.stays = true;")?;
    story.fence_another()?;
    wait::until("the mark to appear", LIMIT, || {
        Ok((browser.run(READ)?["marks"] != before["marks"]).then_some(()))
    })?;
    until_shown(story, &browser)?;
    ensure!(browser.run("return window.stays === true;")? == true, "the page was loaded again");
    browser.go(&story.url())?;
    ensure!(browser.run("return window.stays === true;")? == false, "a new document would not be noticed");
    Ok(())
}

/// A daemon that hangs takes the connection and never answers. The broken variant waits for it, and seems to be new.
fn a_request_that_hangs_is_given_up(story: &mut Story) -> anyhow::Result<()> {
    let browser = Browser::open()?;
    browser.go(&story.url())?;
    let read = "const at = document.getElementById('as-of');
        return [document.getElementById('live').textContent, at.className, getComputedStyle(at).color];";
    let fresh = browser.run(read)?;
    kill(story.pid, Signal::SIGSTOP)?;
    let given_up = wait::until("the page to say that it is old", LIMIT, || {
        let now = browser.run(read)?;
        Ok((now[1] == "old").then_some(now))
    });
    kill(story.pid, Signal::SIGCONT)?;
    let old = given_up?;
    ensure!(text(&old[0]).contains("does not answer") && old[2] != fresh[2], "{old}");
    wait::until("the page to be renewed", LIMIT, || Ok((browser.run(read)? == fresh).then_some(())))?;
    Ok(())
}

/// The document as the browser has it, without running anything in it.
pub(crate) fn document(browser: &Browser) -> anyhow::Result<(String, bool)> {
    let root = browser.chrome("DOM.getDocument", &json!({"depth": 0}))?["root"]["nodeId"].clone();
    let html = browser.chrome("DOM.getOuterHTML", &json!({"nodeId": root}))?;
    // Where scripts run, what stands in `noscript` is a text and no element.
    let refresh =
        browser.chrome("DOM.querySelector", &json!({"nodeId": root, "selector": "noscript > meta"}))?;
    Ok((text(&html["outerHTML"]).to_owned(), refresh["nodeId"] != 0))
}

/// The broken variant is a browser that runs scripts.
fn without_scripts_it_is_loaded_again(story: &mut Story) -> anyhow::Result<()> {
    story.thicken()?;
    let browser = Browser::without_scripts()?;
    browser.go(&story.url())?;
    story.fence_another()?;
    let newest = wait::until("the mark to be made", LIMIT, || {
        let all = story.json(&["list", "--host", "r1-another*"])?;
        Ok(list(&all).iter().map(|mark| text(&mark["id"]).to_owned()).max())
    })?;
    wait::until("the page to show it", LIMIT, || {
        let (html, loads_again) = document(&browser)?;
        ensure!(loads_again, "scripts run");
        Ok(html.contains(&format!("data-mark=\"{newest}\"")).then_some(()))
    })?;
    let with = Browser::open()?;
    with.go(&story.url())?;
    ensure!(!document(&with)?.1, "nobody would notice that scripts run");
    Ok(())
}

/// The broken variant is a picture from elsewhere and a script in the text: both are refused, and complained of.
fn nothing_comes_from_elsewhere(story: &mut Story) -> anyhow::Result<()> {
    story.thicken()?;
    let browser = Browser::open()?;
    browser.go(&story.url())?;
    until_shown(story, &browser)?;
    let loaded = browser.run("return performance.getEntriesByType('resource').map(one => one.name);")?;
    ensure!(list(&loaded).len() >= 3, "{loaded}");
    let own = story.url();
    ensure!(list(&loaded).iter().all(|name| text(name).starts_with(&own)), "{loaded}");
    let complaints = browser.complaints()?;
    ensure!(complaints.is_empty(), "{complaints:?}");
    let before = story.receiver.received().len();
    browser.run(&format!(
        "const i = new Image(); i.src = 'http://{}/picture'; document.body.append(i);
         const s = document.createElement('script'); s.textContent = 'window.ran = true'; document.body.append(s);",
        story.receiver.address()
    ))?;
    let mut complaints = Vec::new();
    wait::until("both complaints", LIMIT, || {
        complaints.extend(browser.complaints()?);
        let of = |word: &str| {
            complaints.iter().any(|line| line.contains(word) && line.contains("Content Security Policy"))
        };
        Ok((of("img-src") && of("script-src")).then_some(()))
    })?;
    ensure!(browser.run("return window.ran === undefined;")? == true, "a script in the text was run");
    let pictures = story.receiver.received();
    let asked = pictures[before..].iter().any(|request| request.first_line.contains("/picture"));
    ensure!(!asked, "a picture was asked for elsewhere");
    Ok(())
}
