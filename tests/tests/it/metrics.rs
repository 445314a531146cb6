//! The scrape of a live daemon by Prometheus' own tools, and what is shipped for Prometheus and Grafana.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Command, Output, Stdio};

use alerter::surface::metrics::catalogue::{ALL, Kind};
use serde_json::Value;
use tempfile::TempDir;
use tests::installed::{self, source};
use tests::programs::Site;
use tests::receiver::{Answer, Receiver};
use tests::trials::Group;

use crate::path::{LIMIT, json, until, until_settled};

/// Those that ask `promtool`, and why they cannot run here, if they cannot.
pub(crate) fn group() -> Group {
    let tests = tests::trials![
        a_live_scrape_passes_the_lint,
        the_rules_do_as_their_tests_say,
        a_rule_fires_on_a_real_scrape,
    ];
    Group { cannot: installed::cannot(&["promtool"]), tests }
}

/// Those that run everywhere.
pub(crate) fn shipped() -> Group {
    Group::everywhere(tests::trials![
        an_acknowledgement_is_counted_once_also_after_a_retry,
        an_answer_that_comes_too_late_is_no_acknowledgement,
        every_rule_and_panel_asks_for_metrics_that_there_are,
        every_metric_has_its_panel,
    ])
}

fn site(receiver: &Receiver) -> Site {
    let site = Site::new(receiver.address()).unwrap();
    let socket = site.directory().join("metrics.sock");
    let table = format!("\n[metrics]\nuri = \"unix://{}\"\n", socket.display());
    fs::write(site.config(), fs::read_to_string(site.config()).unwrap() + &table).unwrap();
    site
}

/// Head and body of an answer.
fn scrape(site: &Site) -> (String, String) {
    let mut stream = UnixStream::connect(site.directory().join("metrics.sock")).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_ascii_lowercase(), body.to_owned())
}

/// A daemon that answers; the socket is there as soon as it does.
fn started(receiver: &Receiver) -> Site {
    let mut site = site(receiver);
    site.start().unwrap();
    until("the scrape is served", || UnixStream::connect(site.directory().join("metrics.sock")).is_ok());
    site
}

fn value(site: &Site, sample: &str) -> Option<f64> {
    let (_, text) = scrape(site);
    text.lines().find_map(|line| line.strip_prefix(sample)?.trim().parse().ok())
}

fn attempts(site: &Site, outcome: &str) -> Option<f64> {
    value(site, &format!("nova_host_alerter_attempts_total{{route=\"recovery\",outcome=\"{outcome}\"}} "))
}

fn acknowledged(site: &Site) -> Option<f64> {
    value(site, "nova_host_alerter_fencing_to_acknowledgement_seconds_count{route=\"recovery\"} ")
}

fn promtool(words: &[&str], input: &str) -> Output {
    let mut command = Command::new("promtool");
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut tool = command.spawn().unwrap();
    tool.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    tool.wait_with_output().unwrap()
}

/// In the form that the lint reads, in which a counter's family has the name of its samples.
fn older(text: &str) -> String {
    let counters = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"));
    counters.fold(text.to_owned(), |text, name| {
        let of = |what: &str, text: String| {
            text.replace(&format!("# {what} {name} "), &format!("# {what} {name}_total "))
        };
        of("HELP", of("TYPE", text))
    })
}

/// The broken variant has a metric whose unit is no base unit, and one without a meaning.
fn a_live_scrape_passes_the_lint() {
    let receiver = Receiver::on_loopback().unwrap();
    let site = started(&receiver);
    site.fence("compute1").unwrap();
    until_settled(&site);
    let (head, text) = scrape(&site);
    assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{head}");
    let text = older(&text);
    let output = promtool(&["check", "metrics"], &text);
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    let broken = text + "# TYPE nova_host_alerter_wait_minutes gauge\nnova_host_alerter_wait_minutes 1\n";
    assert!(!promtool(&["check", "metrics"], &broken).status.success());
}

/// S1-16: the same message twice is one acknowledgement.
fn an_acknowledgement_is_counted_once_also_after_a_retry() {
    let receiver = Receiver::on_loopback().unwrap();
    receiver.answer_next(Answer::Status(503));
    let site = started(&receiver);
    assert_eq!((attempts(&site, "retry"), acknowledged(&site)), (Some(0.0), Some(0.0)));
    site.fence("compute1").unwrap();
    receiver.wait_for(2, LIMIT).unwrap();
    until_settled(&site);
    assert_eq!(attempts(&site, "retry"), Some(1.0));
    assert_eq!((attempts(&site, "acknowledged"), acknowledged(&site)), (Some(1.0), Some(1.0)));
    until("the journal was counted", || {
        value(&site, "nova_host_alerter_marks{state=\"acknowledged\"} ") == Some(1.0)
    });
}

/// The operator ends the mark while its answer is awaited: what comes then is an attempt, and notifies nobody. The
/// broken variant is the other host's, whose mark nobody ends.
fn an_answer_that_comes_too_late_is_no_acknowledgement() {
    let mut receiver = Receiver::on_loopback().unwrap();
    receiver.answer_next(Answer::Silence);
    let site = started(&receiver);
    site.fence("compute1").unwrap();
    receiver.wait_for(1, LIMIT).unwrap();
    // By its id: of a host with an attempt under way nothing is changed by its name.
    let id = json(&site, &["show", "compute1"])[0]["id"].as_str().unwrap().to_owned();
    assert!(site.alerter(&["unmark", &id, "--reason", "reported by hand"]).unwrap().status.success());
    receiver.down();
    until("the answer is on record", || attempts(&site, "late") == Some(1.0));
    receiver.up().unwrap();
    assert_eq!(acknowledged(&site), Some(0.0));
    site.fence("compute2").unwrap();
    until("the other one is sent", || acknowledged(&site) == Some(1.0));
    assert_eq!(json(&site, &["show", "compute1"])[0]["state"], "dismissed");
}

fn rules() -> String {
    fs::read_to_string(source("packaging/prometheus/alerts.yml")).unwrap()
}

/// A directory with the rules, perhaps altered, and their tests.
fn beside_their_tests(rules: &str, tests: &str) -> Output {
    let room = TempDir::new().unwrap();
    fs::write(room.path().join("alerts.yml"), rules).unwrap();
    let file = room.path().join("alerts_test.yml");
    fs::write(&file, tests).unwrap();
    promtool(&["test", "rules", file.to_str().unwrap()], "")
}

/// The broken variants are a rule with another limit, and one that nobody tests.
fn the_rules_do_as_their_tests_say() {
    let tests = fs::read_to_string(source("packaging/prometheus/alerts_test.yml")).unwrap();
    let output = beside_their_tests(&rules(), &tests);
    assert!(output.status.success(), "{output:?}");
    let altered = rules().replace("route_trouble_age_seconds > 300", "route_trouble_age_seconds > 300000");
    assert!(!beside_their_tests(&altered, &tests).status.success());
    let names =
        rules().lines().filter_map(|line| line.trim().strip_prefix("- alert: ").map(str::to_owned)).collect();
    let tested = |text: &str| -> BTreeSet<String> {
        text.lines().filter_map(|line| line.trim().strip_prefix("alertname: ").map(str::to_owned)).collect()
    };
    let names: BTreeSet<String> = names;
    assert_eq!(tested(&tests), names, "each rule has its test");
}

/// The metrics of a real daemon whose endpoint refuses it, repeated for an hour.
fn a_rule_fires_on_a_real_scrape() {
    let receiver = Receiver::on_loopback().unwrap();
    let site = started(&receiver);
    let fires = |site: &Site| {
        let (_, text) = scrape(site);
        let lines = text.lines().filter(|line| !line.starts_with('#') && line.contains("_route_"));
        let series: String = lines
            .map(|line| {
                let (name, value) = line.rsplit_once(' ').unwrap();
                let name = name.replace('}', ",job=\"j\",instance=\"i\"}");
                format!("      - series: '{name}'\n        values: '{value}+0x60'\n")
            })
            .collect();
        let tests = format!(
            "rule_files: [alerts.yml]\ntests:\n  - interval: 1m\n    input_series:\n{series}    alert_rule_test:\n      - eval_time: 1h\n        alertname: NovaHostAlerterEndpointRefuses\n        exp_alerts: []\n"
        );
        !beside_their_tests(&rules(), &tests).status.success()
    };
    assert!(!fires(&site));
    receiver.answer(Answer::Status(401));
    site.fence("compute1").unwrap();
    let parked = "nova_host_alerter_route_endpoint{route=\"recovery\",state=\"parked\"} ";
    until("the endpoint refuses", || value(&site, parked) == Some(1.0));
    assert!(fires(&site));
}

/// The labels of every sample that there is.
fn samples() -> BTreeMap<String, BTreeSet<String>> {
    let mut all = BTreeMap::new();
    for metric in ALL {
        let labels = metric.labels.iter().chain(["job", "instance"].iter()).map(|&label| label.to_owned());
        let mut labels: BTreeSet<String> = labels.collect();
        if metric.kind == Kind::Histogram {
            labels.insert("le".to_owned());
        }
        all.extend(metric.samples().into_iter().map(|name| (name, labels.clone())));
    }
    all
}

/// The metrics of a query, each with the labels that it is asked for; and the labels that results are grouped by.
fn asked(query: &str) -> (Vec<(String, Vec<String>)>, Vec<String>) {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut metrics = Vec::new();
    for (at, _) in query.match_indices("nova_host_alerter_") {
        let rest = &query[at..];
        let name: String = rest.chars().take_while(|c| is_word(*c)).collect();
        let behind = &rest[name.len()..];
        let selector =
            behind.strip_prefix('{').and_then(|inner| inner.split_once('}')).map_or("", |(inner, _)| inner);
        metrics.push((name, labels(selector)));
    }
    let mut groupings = Vec::new();
    for word in ["by (", "on ("] {
        for (at, _) in query.match_indices(word) {
            let inner = query[at + word.len()..].split(')').next().unwrap();
            groupings.extend(inner.split(',').map(|label| label.trim().to_owned()));
        }
    }
    (metrics, groupings)
}

/// The names in front of `=`, `!=`, `=~` and `!~`, outside of quotes.
fn labels(selector: &str) -> Vec<String> {
    let outside: String = selector.split('"').step_by(2).collect();
    let names =
        outside.split(',').map(|part| part.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// What is wrong with a query.
fn faults(query: &str) -> Vec<String> {
    let all = samples();
    let (metrics, groupings) = asked(query);
    let mut faults = Vec::new();
    let mut usable: BTreeSet<String> = ["job", "instance"].map(str::to_owned).into();
    for (name, wanted) in &metrics {
        let Some(known) = all.get(name) else {
            faults.push(format!("there is no {name}"));
            continue;
        };
        usable.extend(known.iter().cloned());
        faults.extend(
            wanted
                .iter()
                .filter(|label| !known.contains(*label))
                .map(|label| format!("{name} has no {label}")),
        );
    }
    faults.extend(
        groupings
            .into_iter()
            .filter(|label| !usable.contains(label))
            .map(|label| format!("nothing has {label}")),
    );
    faults
}

fn expressions() -> Vec<String> {
    let rules = rules();
    let lines = rules.lines().filter_map(|line| line.trim().strip_prefix("expr: '")?.strip_suffix('\''));
    lines.map(|expression| expression.replace("''", "'")).collect()
}

fn dashboard() -> Value {
    serde_json::from_slice(&fs::read(source("packaging/grafana/nova-host-alerter.json")).unwrap()).unwrap()
}

fn panels(dashboard: &Value) -> Vec<Value> {
    dashboard["panels"].as_array().unwrap().clone()
}

fn queries(dashboard: &Value) -> Vec<String> {
    let targets = panels(dashboard)
        .into_iter()
        .flat_map(|panel| panel["targets"].as_array().cloned().unwrap_or_default());
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

/// The broken variants are a name, a label and a grouping that nothing has.
fn every_rule_and_panel_asks_for_metrics_that_there_are() {
    let all: Vec<String> = expressions().into_iter().chain(queries(&dashboard())).collect();
    assert!(all.len() > 40, "{}", all.len());
    for query in all {
        assert_eq!(faults(&query), Vec::<String>::new(), "{query}");
    }
    assert_eq!(faults("nova_host_alerter_mark"), ["there is no nova_host_alerter_mark"]);
    assert_eq!(faults("nova_host_alerter_marks{route=\"a,b\"}"), ["nova_host_alerter_marks has no route"]);
    assert_eq!(faults("sum by (route) (nova_host_alerter_marks)"), ["nothing has route"]);
}

fn every_metric_has_its_panel() {
    let queries = queries(&dashboard());
    let shown: BTreeSet<String> =
        queries.iter().flat_map(|query| asked(query).0).map(|(name, _)| name).collect();
    let all: BTreeSet<String> = samples().into_keys().collect();
    assert_eq!(all.difference(&shown).collect::<Vec<_>>(), Vec::<&String>::new());
}
