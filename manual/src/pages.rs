//! Which pages there are, and what each is made of: its sentences from `pages/`, the rest from tables.

use alerter::cli::Cli;
use alerter::config::ROUTE_KEYS;
use anyhow::{Context as _, bail};
use clap::CommandFactory as _;
use drivers::KINDS;
use fence_agent::table::Use;
use pulldown_cmark::HeadingLevel;

use crate::keys::{self, Entry, Key, Table};
use crate::markdown::{self, to_roff};
use crate::roff::{Page, bold, code, italic, prose};
use crate::{Sources, agent, commands, docs, ocf};

/// The day of the release: the same source gives the same pages.
const DATE: &str = "2026-11-25";

/// Pages with sentences of their own.
const OWN: [&str; 5] = [
    include_str!("../pages/fence_mark.md"),
    include_str!("../pages/alert_mark.md"),
    include_str!("../pages/nova-host-alerter.md"),
    include_str!("../pages/alerter.toml.md"),
    include_str!("../pages/ocf_openstack_nova-host-alerter.md"),
];

/// Every page: the name of its file, and its text.
pub(crate) fn all(sources: &Sources) -> anyhow::Result<Vec<(String, String)>> {
    OWN.iter().map(|template| page(template, sources)).collect()
}

/// A page of a template: its first line is `NAME(SECTION) - what it is`; a line `<!-- insert: WORDS -->` is replaced.
fn page(template: &str, sources: &Sources) -> anyhow::Result<(String, String)> {
    let (first, rest) = template.split_once('\n').context("a page has no first line")?;
    let (name, what) = first.split_once(" - ").context("a page's first line does not say what it is")?;
    let (name, section) = name.trim_end_matches(')').split_once('(').context("a page has no section")?;
    let digit = section.chars().next().context("a page has no section")?;
    let mut page = Page::titled(name, digit, DATE, concat!("nova-host-alerter ", env!("CARGO_PKG_VERSION")));
    page.section("Name");
    page.paragraph(&format!("{} \\- {}", code(name), prose(what)));
    let mut sentences = String::new();
    for line in rest.lines() {
        match line.strip_prefix("<!-- insert: ").and_then(|line| line.strip_suffix(" -->")) {
            Some(words) => {
                page.add(&to_roff(&std::mem::take(&mut sentences), HeadingLevel::H1));
                page.add(&insert(words, sources)?);
            }
            None => sentences = sentences + line + "\n",
        }
    }
    page.add(&to_roff(&sentences, HeadingLevel::H1));
    Ok((format!("{name}.{section}"), page.into_text()))
}

/// What replaces an insert.
fn insert(words: &str, sources: &Sources) -> anyhow::Result<String> {
    let (what, which) = words.split_once(' ').unwrap_or((words, ""));
    let metadata = || ocf::metadata(sources.text("ocf/nova-host-alerter")?);
    Ok(match what {
        "agent-description" => agent::description()?,
        "agent-options" => agent::options(usage(which)?),
        "synopsis" => commands::synopsis(&Cli::command()),
        "options" => commands::options(&Cli::command()),
        "commands" => commands::commands(&Cli::command()),
        "ocf-description" => ocf::description(&metadata()?)?,
        "ocf-parameters" => ocf::parameters(&metadata()?)?,
        "ocf-actions" => ocf::actions(&metadata()?)?,
        "keys-of-all" => all_keys(&tables(sources)?),
        "keys-of-routes" => keys_of_routes(&tables(sources)?)?,
        "section" => to_roff(section(sources, which)?, HeadingLevel::H1),
        "crmsh" => example(&blocks(sources.text("packaging/examples/crmsh.txt")?, which)),
        "pcs" => example(&blocks(sources.text("packaging/examples/pcs.sh")?, which)),
        _ => bail!("a page wants {words}, which nobody makes"),
    })
}

fn usage(word: &str) -> anyhow::Result<Use> {
    let known = [("Mark", Use::Mark), ("Call", Use::Call), ("Compatibility", Use::Compatibility)];
    known.iter().find(|(name, _)| *name == word).map(|(_, usage)| *usage).context("no such use of an option")
}

fn example(text: &str) -> String {
    let mut page = Page::default();
    page.example(text);
    page.into_text()
}

/// `PAGE HEADING`: what stands below that heading.
fn section<'s>(sources: &'s Sources, words: &str) -> anyhow::Result<&'s str> {
    let (page, heading) = words.split_once(' ').context("a section has a page and a heading")?;
    markdown::section(sources.text(page)?, heading)
}

/// The paragraphs of an example that name one of these; all of them where nothing is named.
fn blocks(text: &str, names: &str) -> String {
    let is_about = |block: &&str| names.is_empty() || names.split(' ').any(|name| block.contains(name));
    text.split("\n\n").filter(is_about).collect::<Vec<_>>().join("\n\n")
}

fn tables(sources: &Sources) -> anyhow::Result<Vec<Table>> {
    Ok(keys::read(sources.text("packaging/alerter.toml")?))
}

fn of<'t>(tables: &'t [Table], title: &str) -> anyhow::Result<&'t Table> {
    let found = tables.iter().find(|table| table.title == title);
    found.with_context(|| format!("packaging/alerter.toml has no [{title}]"))
}

/// Every table; of a route's what not every route has.
fn all_keys(tables: &[Table]) -> String {
    let mut page = Page::default();
    for table in tables {
        let is_of_a_route = KINDS.iter().any(|kind| table.title == format!("{}.NAME", kind.word));
        let is_own = |name: &str| !is_of_a_route || !ROUTE_KEYS.contains(&name);
        let entries: Vec<Entry> = table.entries.iter().filter_map(|entry| entry.only(is_own)).collect();
        page.part(&format!("[{}]", table.title));
        page.paragraph(&sentences(&table.about));
        add(&mut page, &entries);
    }
    page.into_text()
}

/// The keys of every route, whatever its driver.
fn keys_of_routes(tables: &[Table]) -> anyhow::Result<String> {
    let entries = of(tables, "exec.NAME")?.entries.iter();
    let entries: Vec<Entry> =
        entries.filter_map(|entry| entry.only(|name| ROUTE_KEYS.contains(&name))).collect();
    let mut page = Page::default();
    add(&mut page, &entries);
    Ok(page.into_text())
}

fn add(page: &mut Page, entries: &[Entry]) {
    for entry in entries {
        let heads: Vec<String> = entry.keys.iter().map(head).collect();
        page.item(&heads, &[sentences(&entry.about)]);
    }
}

fn head(key: &Key) -> String {
    let example = if key.is_example { format!("  {}", italic("(example)")) } else { String::new() };
    format!("{} = {}{example}", bold(&key.name), code(&key.value))
}

/// Text between backticks is typed.
fn sentences(text: &str) -> String {
    let part = |(at, part): (usize, &str)| if at % 2 == 1 { bold(part) } else { prose(part) };
    text.split('`').enumerate().map(part).collect()
}
