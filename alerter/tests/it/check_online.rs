//! `check-config --online`: what an endpoint and the cluster's hosts have against each other, before any mark is made.

use std::path::{Path, PathBuf};
use std::process::Output;

use alerter::commands::online;
use drivers::http::{self, Http};
use drivers::{Driver, Named};
use marks::host::HostName;
use pacemaker::cib::Cib;
use reqwest::Url;
use serde_json::Value;

use crate::certificates::{Ca, Peculiar};
use crate::check_config::{alerter, text};
use crate::config;
use crate::endpoint::{Endpoint, OK};
use crate::openstack::Site;
use crate::route::{SECRET, SHORT};

pub(crate) fn named(node: &str, fqdn: &str) -> Named {
    Named { node: HostName::parse(node).unwrap(), fqdn: HostName::parse(fqdn).unwrap() }
}

/// The words of what stands in the way, each behind its host.
pub(crate) async fn found(driver: &dyn Driver, hosts: &[Named]) -> Vec<String> {
    let findings = driver.check(hosts).await.unwrap();
    let shown = format!("{findings:?}");
    assert!(!shown.contains(SECRET), "{shown}");
    let word = |finding: drivers::Finding| {
        let host = finding.host.map(|host| format!("{host} ")).unwrap_or_default();
        format!("{host}{}", finding.why.kind)
    };
    findings.into_iter().map(word).collect()
}

/// An endpoint of `http` is checked: its name, a connection, and TLS. The broken variants do not ask
/// it, or send it a mark.
#[tokio::test]
async fn an_http_endpoint_is_checked_and_sent_nothing() {
    let (ours, theirs) = (Ca::new("ours"), Ca::new("theirs"));
    for (acceptor, words) in [
        (ours.endpoint(Peculiar::Nothing), vec![]),
        (ours.endpoint(Peculiar::Expired), vec!["tls-expired"]),
        (ours.endpoint(Peculiar::OtherName), vec!["tls-name"]),
        (theirs.endpoint(Peculiar::Nothing), vec!["tls-unknown-ca"]),
    ] {
        let endpoint = Endpoint::saying_over_tls(acceptor, OK).await;
        let url = format!("https://{}/v1/host-failures", endpoint.address);
        let configuration = format!(
            "[store]\nregister = \"none\"\n[http.oncall]\nurl = \"{url}?token={SECRET}\"\nca-file = \"{}\"\n",
            ours.file().display()
        );
        let site = config::Site::new("").with("alerter.toml", configuration);
        let answers = online::ask(&site.settings(), Err("no cluster is asked".to_owned())).await;
        let oncall = &answers.routes[0];
        let found: Vec<_> = oncall.findings.iter().map(|one| one.kind).collect();
        assert_eq!((oncall.asked, &found), (true, &words));
        assert_eq!(answers.is_clear(), words.is_empty(), "{words:?}");
        let asked = endpoint.requests();
        assert_eq!(asked.len(), usize::from(words.is_empty()));
        for request in asked {
            let request = text(&request);
            assert!(request.starts_with("HEAD /v1/host-failures HTTP/1.1\r\n"), "{request}");
            assert!(request.ends_with("\r\n\r\n") && !request.contains(SECRET), "{request}");
        }
    }
    for (url, word) in [("http://127.0.0.1:1/", "connect"), ("http://recovery.invalid/", "dns")] {
        let driver = Http::new(http::Options::to(Url::parse(url).unwrap())).unwrap();
        assert_eq!(found(&driver, &[]).await, [word]);
    }
}

/// What a receiver says to `HEAD`, and what is made of it: a live one, what was seen, or nothing. The broken variant takes each answer
/// for a live one.
#[tokio::test]
async fn what_an_http_endpoint_answers_is_said() {
    let silent = |answer: &'static [u8]| async move {
        Endpoint::acting(move |mut peer| async move {
            peer.request().await;
            peer.say(answer).await;
            if answer.is_empty() {
                peer.gone().await;
            }
        })
        .await
    };
    let one =
        "misconfigured asked with HEAD: the endpoint answered 404 Not Found: check url, and what runs there";
    for (answer, query, words) in [
        (&b"HTTP/1.1 204 No Content\r\n\r\n"[..], "", Some("")),
        (b"HTTP/1.1 405 Method Not Allowed\r\n\r\n", "", Some("")),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "", Some("")),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", "", Some(one)),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", "?token=1", None),
        (b"HTTP/1.1 401 Unauthorized\r\n\r\n", "", Some("credentials ")),
        (b"HTTP/1.1 500 Internal Server Error\r\n\r\n", "?token=1", Some("unavailable ")),
        (b"HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", "", Some("redirect ")),
        (b"220 mail.example ESMTP\r\n", "", Some("protocol ")),
        (b"", "", Some("timeout ")),
    ] {
        let endpoint = silent(answer).await;
        let mut options = http::Options::to(Url::parse(&format!("{}{query}", endpoint.url())).unwrap());
        if answer.is_empty() {
            options.client.timeout = SHORT;
        }
        let found = Http::new(options).unwrap().check(&[]).await;
        let said = found.map(|all| {
            all.iter().map(|one| format!("{} {}", one.why.kind, one.why.detail)).collect::<String>()
        });
        let shown = String::from_utf8_lossy(answer);
        match (said, words) {
            (Some(said), Some("")) => assert_eq!(said, "", "{shown}"),
            (Some(said), Some(words)) => assert!(said.starts_with(words), "{shown}: {said}"),
            (said, words) => assert_eq!(said.as_deref(), words, "{shown}"),
        }
    }
}

/// Only the cluster knows that a host is a virtual machine of its own. The broken variant takes it for a compute host.
#[tokio::test]
async fn a_guest_among_the_hosts_is_named() {
    let guest = r#"<primitive id="vm" class="ocf" provider="heartbeat" type="VirtualDomain"><meta_attributes id="m">
        <nvpair id="n" name="remote-node" value="guest1"/></meta_attributes></primitive>"#;
    let xml = format!(
        r#"<cib><configuration><crm_config/><nodes/><resources>{guest}</resources><constraints/></configuration><status/></cib>"#
    );
    for (matching, kinds) in [("\"compute*\", \"guest1\"", vec!["guest-node"]), ("\"*\"", vec![])] {
        let text = format!(
            "[hosts]\ndomain = \"x.org\"\non-shared-storage = true\nmatch = [{matching}]\n[exec.oncall]\ncommand = [\"/bin/true\"]\n"
        );
        let site = config::Site::new("").with("alerter.toml", text);
        let answers = online::ask(&site.settings(), Ok(Cib::parse(&xml).unwrap())).await;
        let found: Vec<_> = answers.findings.iter().map(|one| one.kind).collect();
        assert_eq!(found, kinds, "{matching}: a pattern means the others");
    }
}

/// A cluster of compute1 with power and this mark device in its level.
fn with_device(parameters: &[(&str, &str)]) -> String {
    let pair =
        |(name, value): &(&str, &str)| format!(r#"<nvpair id="p-{name}" name="{name}" value="{value}"/>"#);
    let parameters: String = parameters.iter().map(pair).collect();
    format!(
        r#"<cib><configuration><crm_config/><nodes/><resources>
            <primitive id="compute1" class="ocf" provider="pacemaker" type="remote"/>
            <primitive id="power" class="stonith" type="fence_ipmilan"/>
            <primitive id="mark" class="stonith" type="fence_mark"><instance_attributes id="a">{parameters}</instance_attributes></primitive>
            </resources><constraints/><fencing-topology>
            <fencing-level id="l" index="1" target="compute1" devices="power,mark"/></fencing-topology></configuration><status/></cib>"#
    )
}

/// S1-38: what nobody says is found before the first mark is held. A host that only the agent's option speaks for is no finding, and
/// the configuration goes before it; a value that the agent does not understand says nothing.
#[tokio::test]
async fn a_host_of_which_nobody_says_the_storage_is_named() {
    for (said, device, found) in [
        ("", &[][..], vec!["no-storage"]),
        ("", &[("no_shared_storage", "perhaps")], vec!["no-storage"]),
        ("", &[("no_shared_storage", "1")], vec![]),
        ("", &[("no-shared-storage", "False")], vec![]),
        ("on-shared-storage = false\n", &[], vec![]),
    ] {
        let text = format!("[hosts]\ndomain = \"x.org\"\n{said}[exec.oncall]\ncommand = [\"/bin/true\"]\n");
        let site = config::Site::new("").with("alerter.toml", text);
        let cib = Cib::parse(&with_device(device)).map_err(|why| why.to_string());
        let answers = online::ask(&site.settings(), cib).await;
        let kinds: Vec<_> = answers.findings.iter().map(|one| one.kind).collect();
        assert_eq!((kinds, answers.is_clear()), (found.clone(), found.is_empty()), "{said} {device:?}");
    }
}

/// A configuration with a route to the cloud for some hosts, and another one that cannot be asked.
fn configured(cloud: &Site, more: &str) -> (config::Site, PathBuf) {
    let clouds = cloud.files.path("clouds.yaml");
    let text = format!(
        "[hosts]\ndomain = \"my.cloud.com\"\non-shared-storage = true\n[masakari.cloud]\nclouds-file = \"{}\"\nhosts = [\"compute*\"]\n[exec.oncall]\ncommand = [\"/bin/true\"]\n{more}",
        clouds.display()
    );
    let site = config::Site::new("").with("alerter.toml", text);
    let file = site.path("alerter.toml");
    (site, file)
}

/// A script that reads the exit code alone takes it for "every host was checked". The broken variant reads the findings
/// alone: it reports success where no host was checked.
#[tokio::test]
async fn hosts_that_nobody_checked_are_not_well() {
    let cloud = Site::new().await;
    let (site, _) = configured(&cloud, "");
    let nothing = |answers: &online::Answers| {
        answers.findings.is_empty() && answers.routes.iter().all(|route| route.findings.is_empty())
    };
    let silent = online::ask(&site.settings(), Err("the cluster is down".to_owned())).await;
    assert_eq!((silent.is_clear(), nothing(&silent)), (false, true), "the broken variant");
    let (alone, _) = configured(&cloud, "[store]\nregister = \"none\"\n");
    let alone = online::ask(&alone.settings(), Err("no cluster is asked".to_owned())).await;
    assert!(alone.is_clear(), "there is none to ask");

    let xml = r#"<cib><configuration><crm_config/><nodes/><resources>
        <primitive id="storage1" class="ocf" provider="pacemaker" type="remote"/>
        </resources><constraints/></configuration><status/></cib>"#;
    let cib = || Cib::parse(xml).map_err(|why| why.to_string());
    assert!(online::ask(&site.settings(), cib()).await.is_clear(), "no route of a cloud is for it");
    let clouds = cloud.files.path("clouds.yaml");
    let text = format!(
        "[hosts]\non-shared-storage = true\n[masakari.cloud]\nclouds-file = \"{}\"\n",
        clouds.display()
    );
    let nameless = config::Site::new("").with("alerter.toml", text);
    let unnamed = online::ask(&nameless.settings(), cib()).await;
    assert_eq!(unnamed.unnamed.len(), 1);
    assert_eq!((unnamed.is_clear(), nothing(&unnamed)), (false, true), "the broken variant");
}

async fn run(config: &Path, words: &'static [&'static str]) -> Output {
    let config = config.to_owned();
    tokio::task::spawn_blocking(move || alerter(&config, words)).await.unwrap()
}

/// Nothing is asked without the option. Without a cluster that is said, and the endpoints are asked all the same.
#[tokio::test]
async fn the_command_asks_only_with_its_option() {
    let cloud = Site::new().await;
    let journal = tempfile::tempdir().unwrap();
    let store = format!("[store]\npath = \"{}/marks.db\"\nregister = \"none\"\n", journal.path().display());
    let (_site, file) = configured(&cloud, &store);
    let offline = run(&file, &["check-config"]).await;
    assert_eq!((offline.status.code(), text(&offline.stdout).lines().count()), (Some(0), 1));
    assert_eq!(cloud.state().tokens_asked, 0);

    let good = run(&file, &["check-config", "--online"]).await;
    let said = text(&good.stdout);
    assert_eq!(good.status.code(), Some(0), "{said}");
    for line in ["no cluster is asked", "cloud: the endpoint Masakari", "oncall: not checked"] {
        assert!(said.contains(line), "{said}");
    }
    cloud.state().is_reader = true;
    let bad = run(&file, &["check-config", "--online", "--json"]).await;
    let json: Value = serde_json::from_slice(&bad.stdout).unwrap();
    assert_eq!((bad.status.code(), &json["valid"]), (Some(1), &true.into()));
    let cloud =
        &json["online"]["routes"].as_array().unwrap().iter().find(|one| one["route"] == "cloud").unwrap();
    assert_eq!((&cloud["asked"], &cloud["findings"][0]["kind"]), (&true.into(), &"forbidden".into()));
}
