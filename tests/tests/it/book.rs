//! The book in `docs/` and the pages beside it: every page is in the contents, every link and every citation leads to a page, and
//! every alert and problem has a runbook.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path};

use alerter::policy::Hold;
use alerter::problem::Kind;
use regex_lite::Regex;
use tests::installed::source;
use tests::trials::Group;

use crate::papers::{at_the_root, files_below, page as text};

/// Its tests. They need nothing.
pub(crate) fn group() -> Group {
    Group::everywhere(tests::trials![
        every_page_is_in_the_contents,
        every_link_leads_somewhere,
        every_page_that_is_cited_is_there,
        every_alert_and_every_problem_has_a_runbook,
        every_runbook_url_leads_to_its_anchor,
        the_readme_is_short,
    ])
}

/// Where a package installs the runbooks; the project has no web site.
const RUNBOOKS: &str = "file:///usr/share/doc/nova-host-alerter/docs/runbooks.md";
/// The README is read in three minutes.
const README: usize = 5500;
/// Where files cite pages.
const CITING: [&str; 10] = [
    "alerter",
    "crates",
    "docs",
    "fence-agent",
    "manual/src",
    "manual/pages",
    "ocf",
    "packaging",
    "tests/src",
    "tests/tests",
];
/// Has variants that are broken on purpose.
const BROKEN: &str = "tests/tests/it/book.rs";

/// The path from the root of the source, with `..` resolved.
fn named(path: &Path) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.strip_prefix(source("")).unwrap_or(path).components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(name) => parts.push(name.to_str().unwrap()),
            _ => {}
        }
    }
    parts.join("/")
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|kind| kind == "md")
}

/// The pages of the book and those beside it, by their paths.
fn pages() -> Vec<String> {
    let all = at_the_root()
        .into_iter()
        .chain(files_below(&source("docs")))
        .chain(files_below(&source("manual/pages")));
    all.filter(|path| is_page(path)).map(|path| named(&path)).collect()
}

/// The lines that are no code.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The targets of the links on a page; what stands between backticks is no link.
fn links(page: &str) -> Vec<String> {
    let code = Regex::new("`[^`]*`").unwrap();
    let link = Regex::new(r"\]\(([^)\s]+)\)").unwrap();
    let lines = prose(page).map(|line| code.replace_all(line, "").into_owned()).collect::<Vec<_>>();
    link.captures_iter(&lines.join("\n")).map(|found| found[1].to_owned()).collect()
}

/// The anchors of a page: its headings as GitHub and mdBook name them.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = prose(page).filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#'));
    let letter = |c: char| match c {
        ' ' => Some('-'),
        _ if c.is_alphanumeric() || c == '-' || c == '_' => Some(c.to_ascii_lowercase()),
        _ => None,
    };
    headings.map(|heading| heading.trim().chars().filter_map(letter).collect()).collect()
}

/// The links of a page that lead nowhere.
fn dead(path: &str, page: &str) -> Vec<String> {
    let is_dead = |link: &&String| {
        if link.contains("://") {
            return false;
        }
        let (file, anchor) = link.split_once('#').map_or((link.as_str(), None), |(f, a)| (f, Some(a)));
        let target = match file {
            "" => path.to_owned(),
            file => named(&source(path).parent().unwrap().join(file)),
        };
        let has =
            |anchor: &str| fs::read_to_string(source(&target)).is_ok_and(|t| anchors(&t).contains(anchor));
        !source(&target).exists() || anchor.is_some_and(|anchor| !has(anchor))
    };
    links(page).iter().filter(is_dead).map(|link| format!("{path}: {link}")).collect()
}

/// The pages that the contents lack, and those that they have twice.
fn misplaced(summary: &str) -> Vec<String> {
    let listed = links(summary);
    let pages = pages().into_iter().filter_map(|path| path.strip_prefix("docs/").map(str::to_owned));
    let is_once = |page: &String| listed.iter().filter(|link| *link == page).count() == 1;
    pages.filter(|page| page != "SUMMARY.md" && !is_once(page)).collect()
}

fn every_page_is_in_the_contents() {
    let summary = text("docs/SUMMARY.md");
    assert_eq!(misplaced(&summary), [""; 0]);
    let without = summary.replace("- [Policy](policy.md)\n", "");
    assert_eq!(misplaced(&without), ["policy.md"], "the broken variant is seen");
    let pages = pages().into_iter().filter(|path| path.starts_with("docs/"));
    let untitled: Vec<String> = pages.filter(|path| !text(path).starts_with("# ")).collect();
    assert_eq!(untitled, [""; 0], "a page begins with its title");
}

fn every_link_leads_somewhere() {
    let found: Vec<String> = pages().iter().flat_map(|path| dead(path, &text(path))).collect();
    assert_eq!(found, [""; 0]);
    let broken = "[a](policy.md#chains) [b](policy.md#lanes) [c](gone.md) `[d](gone.md)`\n";
    assert_eq!(dead("docs/start.md", broken), ["docs/start.md: policy.md#lanes", "docs/start.md: gone.md"]);
}

/// The pages that a text cites and that are not there; a name in capitals stands for others.
fn gone(text: &str) -> Vec<String> {
    let page = Regex::new(r"docs/[A-Za-z0-9_./-]+\.(md|json)\b").unwrap();
    let cited = page.find_iter(text).map(|found| found.as_str());
    let is_pattern = |path: &str| ["WORD.md", "NAME.md"].iter().any(|name| path.ends_with(name));
    cited.filter(|path| !is_pattern(path) && !source(path).exists()).map(str::to_owned).collect()
}

fn every_page_that_is_cited_is_there() {
    let files = CITING.map(|place| files_below(&source(place))).concat();
    let files = files.into_iter().chain(at_the_root().into_iter().filter(|path| path.is_file()));
    let mut found = Vec::new();
    for file in files.filter(|file| named(file) != BROKEN) {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        found.extend(gone(&text).into_iter().map(|page| format!("{}: {page}", named(&file))));
    }
    assert_eq!(found, [""; 0]);
    assert_eq!(
        gone("see docs/policy.md and docs/police.md"),
        ["docs/police.md"],
        "the broken variant is seen"
    );
}

fn alerts() -> Vec<String> {
    let rules = text("packaging/prometheus/alerts.yml");
    rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).map(str::to_owned).collect()
}

/// The runbooks by name.
fn runbooks(page: &str) -> BTreeMap<&str, &str> {
    let parts = page.split("\n### ").skip(1).filter_map(|part| part.split_once('\n'));
    parts.map(|(name, text)| (name, text.split("\n## ").next().unwrap_or(text))).collect()
}

/// What a runbook lacks.
fn lacking(runbook: &str) -> Vec<&'static str> {
    let parts = ["Confirm", "Do", "Over"];
    parts.into_iter().filter(|part| !runbook.contains(&format!("\n**{part}.** "))).collect()
}

fn every_alert_and_every_problem_has_a_runbook() {
    let own = Kind::OWN.iter().map(|kind| kind.as_str().to_owned());
    let holds = Hold::ALL.iter().map(|hold| hold.as_str().to_owned());
    let wanted: BTreeSet<String> = alerts().into_iter().chain(own).chain(holds).collect();
    assert!(wanted.len() > 70, "{wanted:?}");
    let page = text("docs/runbooks.md");
    let there = runbooks(&page);
    let names: BTreeSet<String> = there.keys().map(|name| (*name).to_owned()).collect();
    assert_eq!(names, wanted, "a runbook for each, and none for nothing");
    for (name, runbook) in there {
        assert_eq!(lacking(runbook), [""; 0], "{name}");
        assert_eq!(lacking(&runbook.replace("**Do.**", "**Next.**")), ["Do"], "the broken variant");
    }
}

/// The rules whose URL is missing or does not lead to their own anchor.
fn without_runbook(rules: &str) -> Vec<String> {
    let (blocks, anchors) = (rules.split("- alert: ").skip(1), anchors(&text("docs/runbooks.md")));
    let is_wrong = |block: &&str| {
        let anchor = block.lines().next().unwrap().to_ascii_lowercase();
        !block.contains(&format!("runbook_url: '{RUNBOOKS}#{anchor}'")) || !anchors.contains(&anchor)
    };
    blocks.filter(is_wrong).map(|block| block.lines().next().unwrap().to_owned()).collect()
}

/// The URL is that of the installed page: `packaging/install.sh` says where that is.
fn every_runbook_url_leads_to_its_anchor() {
    let rules = text("packaging/prometheus/alerts.yml");
    assert_eq!(without_runbook(&rules), [""; 0]);
    let broken = rules.replacen("#novahostalerterstorm", "#storm", 1);
    assert_eq!(without_runbook(&broken), ["NovaHostAlerterStorm"], "the broken variant is seen");
    let installed = RUNBOOKS.strip_prefix("file://").unwrap().strip_suffix("/docs/runbooks.md").unwrap();
    assert!(text("packaging/install.sh").contains(&format!("docs=${{DOCS:-{installed}}}\n")));
    assert!(text("docs/runbooks.md").contains(&format!("`{RUNBOOKS}#NAME`")));
}

/// What is wrong with the README's length and its commands.
fn readme_faults(readme: &str) -> Vec<String> {
    let length = (readme.len() > README).then(|| format!("{} bytes", readme.len()));
    let lacks = ["make demo", "make test"].into_iter();
    let lacks = lacks.filter(|command| !readme.contains(&format!("\n    {command} ")));
    length.into_iter().chain(lacks.map(str::to_owned)).collect()
}

fn the_readme_is_short() {
    let readme = text("README.md");
    assert_eq!(readme_faults(&readme), [""; 0]);
    assert_eq!(readme_faults(&readme.repeat(2)).len(), 1, "a long one is seen");
    assert_eq!(readme_faults(&readme.replace("make demo", "make it")), ["make demo"]);
}
