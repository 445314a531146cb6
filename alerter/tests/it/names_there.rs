//! What Nova and Masakari call the hosts, where Pacemaker calls them otherwise: each mixture can be configured, the preflight
//! names the setting that works, and every advice in a message is accepted where it is typed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use alerter::commands::online::{self, Answers};
use pacemaker::cib::Cib;

use crate::config;
use crate::openstack::Site;

const NODES: [&str; 4] = ["compute1", "compute2.my.cloud.com", "Compute3", "remote-compute4"];

fn cib(nodes: &[&str]) -> Cib {
    let remote =
        |node: &&str| format!(r#"<primitive id="{node}" class="ocf" provider="pacemaker" type="remote"/>"#);
    let remote: String = nodes.iter().map(remote).collect();
    let xml = format!(
        r#"<cib><configuration><crm_config/><nodes/><resources>{remote}</resources><constraints/></configuration><status/></cib>"#
    );
    Cib::parse(&xml).unwrap()
}

/// The keys of the route, and the entries of its table `host-names`.
#[derive(Clone, Debug, Default)]
struct Settings {
    word: Option<String>,
    own: Vec<String>,
}

impl Settings {
    fn text(&self, cloud: &Site) -> String {
        let word = self.word.iter().map(|word| format!("host-name = \"{word}\"\n")).collect::<String>();
        format!(
            "[hosts]\ndomain = \"my.cloud.com\"\non-shared-storage = true\n[masakari.cloud]\nclouds-file = \"{}\"\n{word}[masakari.cloud.host-names]\n{}\n",
            cloud.files.path("clouds.yaml").display(),
            self.own.join("\n")
        )
    }

    /// Does what a message says; whether it said anything.
    fn follow(&mut self, detail: &str) -> bool {
        let Some((_, advice)) = detail.split_once("there, set ") else { return false };
        match advice.strip_prefix("host-name = ") {
            Some(word) => self.word = Some(word.trim_matches('"').to_owned()),
            None => {
                let (entry, table) = advice.split_once(" in ").unwrap();
                assert_eq!(table, "[masakari.cloud.host-names]");
                self.own.push(entry.to_owned());
            }
        }
        true
    }
}

async fn ask(cloud: &Site, settings: &Settings, nodes: &[&str]) -> Answers {
    let site = config::Site::new("").with("alerter.toml", settings.text(cloud));
    online::ask(&site.settings(), Ok(cib(nodes))).await
}

/// From the defaults on the advice alone leads to a configuration that reports all four, whatever the services call them. The
/// broken variant advises `[hosts.names]`, which takes full names alone.
#[tokio::test]
async fn the_advice_leads_to_a_configuration_that_reports_every_host() {
    for known in [
        ["compute1", "compute2", "compute3", "compute4"],
        ["compute1", "compute2.my.cloud.com", "Compute3", "compute4"],
        ["compute1.my.cloud.com", "compute2", "COMPUTE3", "remote-compute4"],
        ["Compute1", "Compute2", "Compute3", "Compute4"],
    ] {
        let cloud = Site::new().await;
        cloud.state().hosts = known.to_vec();
        let mut settings = Settings::default();
        for _round in 0..=NODES.len() {
            let answers = ask(&cloud, &settings, &NODES).await;
            let findings = &answers.routes[0].findings;
            assert!(answers.findings.is_empty(), "{answers:?}");
            assert!(findings.iter().all(|one| one.kind == "unknown-host"), "{findings:?}");
            let Some(one) = findings.first() else { break };
            assert!(settings.follow(&one.detail), "{known:?}: {}", one.detail);
        }
        assert!(ask(&cloud, &settings, &NODES).await.is_clear(), "{known:?} {settings:?}");
    }
}

/// A name that resembles nothing gets no guess, and the table is named all the same.
#[tokio::test]
async fn a_name_that_nobody_can_guess_is_not_guessed() {
    let cloud = Site::new().await;
    cloud.state().hosts = vec!["rack7-u12"];
    let mut settings = Settings::default();
    let answers = ask(&cloud, &settings, &["compute1"]).await;
    let detail = &answers.routes[0].findings[0].detail;
    assert!(
        detail.ends_with("add it there, or set its name there in [masakari.cloud.host-names]"),
        "{detail}"
    );
    settings.own.push("compute1 = \"rack7-u12\"".to_owned());
    assert!(ask(&cloud, &settings, &["compute1"]).await.is_clear());
}

/// Two hosts with one name there: a mark of the one would report the other, which is alive. It is never sent, and the preflight
/// says so. The broken variant compares full names alone: these differ.
#[tokio::test]
async fn one_name_for_two_hosts_is_refused_there_too() {
    let cloud = Site::new().await;
    cloud.state().hosts = vec!["compute1"];
    let nodes = ["compute1.east.example", "compute1.west.example"];
    let short = Settings { word: Some("short".to_owned()), own: Vec::new() };
    let entry = |entry: &str| Settings { word: None, own: vec![entry.to_owned()] };
    let live = entry("\"compute1.east.example\" = \"compute1.west.example\"");
    for settings in [short, live] {
        let answers = ask(&cloud, &settings, &nodes).await;
        assert!(answers.findings.iter().any(|one| one.kind == "no-fqdn"), "{settings:?} {answers:?}");
        let detail = &answers.findings[0].detail;
        assert!(detail.contains("correct host-name or [masakari.cloud.host-names]"), "{detail}");
    }
    let twice = "[hosts]\ndomain = \"x\"\n[masakari.cloud.host-names]\na = \"c\"\nb = \"C\"\n";
    let said = config::Site::new("").with("alerter.toml", twice).load().unwrap_err().to_string();
    assert!(said.contains("b has the same name as another node"), "{said}");
}

/// Where a setting of names is advised, and what is typed then.
const ADVISED: [(&str, &str); 5] = [
    ("[hosts] domain", "[hosts]\ndomain = \"my.cloud.com\"\n"),
    ("[hosts.names]", "[hosts.names]\ncompute1 = \"compute1.my.cloud.com\"\n"),
    ("[hosts] match", "[hosts]\nmatch = [\"compute*\"]\n"),
    ("host-name ", "host-name = \"short\"\n"),
    ("host-names", "[DRIVER.cloud.host-names]\n\"compute2.my.cloud.com\" = \"compute2\"\n"),
];

fn sources(place: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(place).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push((path.display().to_string(), fs::read_to_string(path).unwrap()));
        }
    }
}

/// Every setting of names that a sentence of the program advises is accepted, with a short name too where a service is what
/// is asked: no driver sends anybody to `[hosts.names]`, which takes full names alone.
#[test]
fn every_advised_setting_of_names_is_accepted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut all, mut seen) = (Vec::new(), BTreeSet::new());
    ["alerter/src", "crates/drivers/src"].iter().for_each(|place| sources(&root.join(place), &mut all));
    for (file, text) in &all {
        let sentences =
            text.lines().filter(|line| line.contains('"') && !line.trim_start().starts_with("//"));
        for line in
            sentences.filter(|line| ["set ", "correct ", "check "].iter().any(|verb| line.contains(verb)))
        {
            let advised = ADVISED.iter().filter(|(setting, _)| line.contains(setting));
            for (setting, _) in advised {
                seen.insert(*setting);
                let is_of_service = file.contains("crates/drivers");
                assert!(!is_of_service || *setting != "[hosts.names]", "{file}: {line}");
            }
        }
    }
    assert!(seen.len() >= 4, "the sentences are found: {seen:?}");
    let clouds = crate::nova_config::beside_a_cloud("masakari.a", "");
    let routes = [
        ("masakari", ""),
        ("nova", ""),
        ("heat", "stacks = [\"a/3b5c6d7e-0000-4000-8000-000000000001\"]\n"),
        ("senlin", "operation = \"rebuild\"\nnodes = { c = [\"3b5c6d7e-0000-4000-8000-000000000001\"] }\n"),
    ];
    for (driver, keys) in routes {
        for (setting, typed) in ADVISED {
            let (own, before) = if setting == "host-name " { (typed, "") } else { ("", typed) };
            let route = format!(
                "[{driver}.cloud]\nclouds-file = \"{}\"\n{keys}{own}{}",
                clouds.path("clouds.yaml").display(),
                before.replace("DRIVER", driver)
            );
            let loaded = config::Site::new("").with("alerter.toml", &route).load();
            assert!(loaded.is_ok(), "{driver} {setting}: {}", loaded.unwrap_err());
        }
    }
}
