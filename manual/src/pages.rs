//! Which pages there are, and what each is made of: its sentences from `pages/`, the rest from tables.

use alerter::cli::Cli;
use anyhow::{Context as _, bail};
use clap::CommandFactory as _;
use fence_agent::table::Use;
use pulldown_cmark::HeadingLevel;

use crate::markdown::{self, to_roff};
use crate::roff::{Page, code, prose};
use crate::{Sources, agent, commands, ocf};

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
        "keys" => example(sources.text("packaging/alerter.toml")?),
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
