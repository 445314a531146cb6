//! What units and pages name: programs, paths, exit codes and other pages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tests::installed;
use tests::trials::Named;

use super::options::options_on;
use super::pacemaker::on_the_resources_page;
use super::page::{plain, section};
use super::{pages, text};

/// Its tests.
pub(super) fn tests() -> Vec<Named> {
    tests::trials![
        the_unit_says_what_the_manual_says,
        every_path_in_the_manual_is_one_of_the_program,
        every_page_that_is_named_is_there
    ]
}

/// The words of a unit that the manual lacks.
fn undocumented(unit: &str, pages: &BTreeMap<String, String>) -> Vec<String> {
    let of =
        |key: &str| unit.lines().find_map(|line| line.strip_prefix(&format!("{key}="))).unwrap_or_default();
    let page = &pages["nova-host-alerter.8"];
    let options = options_on(page);
    let (program, words) = of("ExecStart").split_once(' ').unwrap_or_default();
    let words: Vec<&str> = words.split(' ').collect();
    let is_known = |at: usize, word: &str| match word.split('=').next().unwrap() {
        option if option.starts_with('-') => {
            options.iter().any(|(path, name)| name == option && (path.is_empty() || path == words[0]))
        }
        name => at > 0 || options.contains(&(String::new(), name.to_owned())),
    };
    let mut found: Vec<String> = words
        .iter()
        .enumerate()
        .filter(|(at, word)| !is_known(*at, word))
        .map(|(_, word)| format!("ExecStart: {word}"))
        .collect();
    let binary = format!("binary = {program}");
    if !on_the_resources_page(&pages["ocf_openstack_nova-host-alerter.7"]).contains(&binary) {
        found.push(format!("ExecStart: {program}"));
    }
    for named in of("Documentation").split(' ').filter_map(|word| word.strip_prefix("man:")) {
        if !pages.contains_key(&named.replace('(', ".").replace(')', "")) {
            found.push(format!("Documentation: {named}"));
        }
    }
    let (files, codes) = (section(page, "FILES"), section(page, "EXIT STATUS"));
    for (key, place) in [("StateDirectory", "/var/lib/"), ("RuntimeDirectory", "/run/")] {
        let path = format!("{place}{}/", of(key));
        if !files.contains(&path) {
            found.push(format!("{key}: {path}"));
        }
    }
    let code = of("RestartPreventExitStatus");
    if !codes.contains(&format!("\n{code}: ")) {
        found.push(format!("RestartPreventExitStatus: {code}"));
    }
    found
}

fn the_unit_says_what_the_manual_says() {
    let (unit, pages) = (text("packaging/systemd/nova-host-alerter.service"), pages());
    assert!(unit.contains("man:nova-host-alerter(8)"), "{unit}");
    assert_eq!(undocumented(&unit, &pages), [""; 0]);
    for (from, to) in [
        ("nova-host-alerter run", "nova-host-alerter start"),
        ("nova-host-alerter run", "nova-host-alerter run --fast"),
        ("/usr/sbin/nova", "/usr/bin/nova"),
        ("man:nova-host-alerter(8)", "man:nova-host-alerter(1)"),
        ("StateDirectory=nova-host-alerter", "StateDirectory=alerter"),
        ("RestartPreventExitStatus=78", "RestartPreventExitStatus=79"),
    ] {
        assert_eq!(undocumented(&unit.replacen(from, to, 1), &pages).len(), 1, "{to} must be seen");
    }
}

/// The paths below FILES of a page.
fn paths(page: &str) -> BTreeSet<String> {
    let text = section(page, "FILES");
    let words = text.split([' ', '\n', ',']).map(|word| word.trim_end_matches([':', '.']));
    words.filter(|word| word.starts_with('/')).map(str::to_owned).collect()
}

fn every_path_in_the_manual_is_one_of_the_program() {
    let journal = site::DEFAULT_STORE;
    let socket = alerter::config::control_socket(Path::new(journal));
    let known = [
        alerter::cli::DEFAULT_CONFIG.to_owned(),
        alerter::cli::DEFAULT_CONFIG.replace("alerter.toml", "alerter.d/*.toml"),
        site::own_keys(Path::new(alerter::cli::DEFAULT_CONFIG)).display().to_string(),
        site::CLUSTER_KEY.to_owned(),
        journal.to_owned(),
        format!("{journal}.lock"),
        format!("{}/", pacemaker::evidence::DIRECTORY),
        socket.display().to_string(),
        installed::OCF_AGENT.to_owned(),
        "/usr/share/doc/nova-host-alerter/".to_owned(),
    ];
    let known = BTreeSet::from(known);
    let pages = pages();
    for (name, page) in &pages {
        let paths = paths(page);
        assert!(!paths.is_empty() && paths.is_subset(&known), "{name}: {paths:?}");
    }
    let all: BTreeSet<String> = pages.values().flat_map(|page| paths(page)).collect();
    assert_eq!(all, known, "a path that is nowhere");
    let moved = pages["alert_mark.8"].replace("nova\\-host\\-alerter/evidence", "alerter/evidence");
    assert!(!paths(&moved).is_subset(&known), "a wrong path must be seen");
}

/// The pages that a page names: a word in bold, and a section.
fn named(page: &str) -> BTreeSet<String> {
    let spans = page.split("\\fB").skip(1).filter_map(|span| span.split_once("\\fR("));
    let of_sections = spans.filter(|(_, rest)| rest.as_bytes().get(1) == Some(&b')'));
    of_sections.map(|(name, rest)| format!("{}.{}", plain(name), &rest[..1])).collect()
}

fn every_page_that_is_named_is_there() {
    let pages = pages();
    let others = ["crm.8", "pcs.8"];
    for (name, page) in &pages {
        let named = named(page);
        assert!(named.len() >= 2, "{name}: {named:?}");
        let lost: Vec<&String> = named
            .iter()
            .filter(|named| !pages.contains_key(*named) && !others.contains(&named.as_str()))
            .collect();
        assert_eq!(lost, Vec::<&String>::new(), "{name}");
    }
    let renamed = pages["fence_mark.8"].replace("\\fBalert_mark\\fR(8)", "\\fBalertmark\\fR(8)");
    assert!(named(&renamed).contains("alertmark.8"), "a wrong name must be seen");
}
