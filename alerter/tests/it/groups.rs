//! Groups of hosts: what may be said of them, who is notified of a host by its group, and what an operator is warned of.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use alerter::base::Base;
use alerter::base::store::Store;
use alerter::cluster::{Cluster, Kept, View};
use alerter::commands::online;
use alerter::config::rules::{Amount, Limit, Rules};
use alerter::config::{Group, Link, Members, NamedRecipients, Recipients, RouteName, Settings};
use alerter::intake::{apply, start};
use alerter::state::Shared;
use journal::{Journal, Role};
use marks::host::{HostName, HostPatterns};
use marks::id::MarkId;
use marks::register::{Entries, Register};
use marks::time::Timestamp;
use pacemaker::cib::Cib;
use pacemaker::register::Tools;
use serde_json::Value;

use crate::config::Site;
use crate::routes::{Daemon, Place, route};
use crate::warnings::Warnings;

const HOUR: Duration = Duration::from_secs(3600);

fn host(name: &str) -> HostName {
    HostName::parse(name).unwrap()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn name(route: &str) -> RouteName {
    RouteName::parse(route).unwrap()
}

/// Nobody knows a node's attributes.
fn unknown(_: &HostName, _: &str) -> Option<String> {
    None
}

/// Who is notified of a host where no attribute is known.
fn notified<'s>(settings: &'s Settings, node: &str) -> Vec<&'s str> {
    let routes = settings.routes_for(&host(node), &unknown).routes();
    routes.into_iter().map(|route| route.name.as_str()).collect()
}

/// The problems of a group with this text, beside a good route.
fn problems_in_group(text: &str) -> Vec<String> {
    Site::new(&format!("[groups.a]\n{text}\n{}", route("all", ""))).problems()
}

/// S0-44, S0-48, S4-2, S4-3, S4-11, S4-13, S4-21: everything that can be said of a group.
#[test]
fn every_key_of_a_group_is_read() {
    let text = r#"
        [groups.rack1]
        hosts = ["r1-*", "Compute7"]
        chain = [{ route = "masakari", timeout = 600 }, { route = "pager", timeout = 60 }]
        on-shared-storage = false
        max-unhealthy = 4
        window = 86400
        cooldown = 300
        max-hold = 1800
        deliver-after = 5
        healthy-delay = 6
        max-in-flight = 10
        serial = true
        [groups.zone1]
        attribute = "zone=1"
        routes = ["oncall", "wiki"]
        max-unhealthy = "40%"
        [groups.default]
        unhealthy-range = "[1-4]"
    "#;
    let names = ["all", "masakari", "oncall", "pager", "wiki"];
    let routes: String = names.iter().map(|name| route(name, "")).collect();
    let settings = Site::new(&format!("{text}{routes}")).settings();
    let link = |route: &str, timeout| Link { route: name(route), timeout: seconds(timeout) };
    let rack1 = Group {
        name: "rack1".into(),
        members: Members::Hosts(HostPatterns::parse("r1-*,compute7").unwrap()),
        recipients: NamedRecipients::Chain(vec![link("masakari", 600), link("pager", 60)]),
        on_shared_storage: Some(false),
        rules: Rules {
            limit: Limit::AtMost(Amount::Hosts(4)),
            window: Some(seconds(86_400)),
            cooldown: seconds(300),
            max_hold: seconds(1800),
            deliver_after: seconds(5),
            healthy_delay: seconds(6),
            max_in_flight: Some(10),
            serial: true,
        },
        confirm: None,
    };
    let share = Amount::Percent(40);
    let zone1 = Group {
        name: "zone1".into(),
        members: Members::Attribute { name: "zone".into(), value: "1".into() },
        recipients: NamedRecipients::Each(vec![name("oncall"), name("wiki")]),
        rules: Rules { limit: Limit::AtMost(share), ..Rules::default() },
        ..Group::rest()
    };
    let limit = Limit::Range { low: 1, high: 4 };
    let rest = Group { rules: Rules { limit, ..Rules::default() }, ..Group::rest() };
    assert_eq!(settings.groups, [rack1, zone1, rest]);
    assert!(settings.warnings.is_empty());
}

/// S4-1, S4-16: nothing is held unless it was asked for, and a host in no group is reported as before.
#[test]
fn without_groups_there_is_the_one_of_all_hosts() {
    let settings = Site::new(&route("all", "")).settings();
    assert_eq!(settings.groups, [Group::rest()]);
    assert_eq!(settings.groups[0].rules.limit, Limit::None);
    assert_eq!(settings.group_of(&host("c1"), &unknown).name, "default");
    assert_eq!(notified(&settings, "c1"), ["all"]);
}

/// S4-23, S4-24: what other systems take by accident is refused, each at its place.
#[test]
fn a_limit_is_strict() {
    let hosts = "hosts = [\"c1\", \"c2\"]\n";
    let number = "must be a number of hosts such as 4, or a whole percentage in quotes such as \"40%\"";
    let range = "must be a range of whole numbers such as \"[1-4]\"";
    for (key, place, expected) in [
        ("max-unhealthy = \"150%\"", 17, number),
        ("max-unhealthy = \"-3%\"", 17, number),
        ("max-unhealthy = \"2\"", 17, number),
        ("max-unhealthy = \"33.3%\"", 17, number),
        ("max-unhealthy = \" 5%\"", 17, number),
        ("max-unhealthy = -3", 17, "must be from 0 to 4294967295"),
        ("max-unhealthy = 4294967296", 17, "must be from 0 to 4294967295"),
        ("max-unhealthy = 0.4", 17, "must be a whole number, or text in quotes, not a fraction"),
        ("unhealthy-range = \"1-4\"", 19, range),
        ("unhealthy-range = \"[1-4294967296]\"", 19, range),
        ("unhealthy-range = \"[4-3]\"", 19, "the first number must not be greater than the second"),
        ("unhealthy-range = 4", 19, "must be text in quotes, not a whole number"),
        ("window = 0", 10, "must be from 1 to 2678400"),
        ("max-hold = 0", 12, "must be from 1 to 86400"),
        ("max-in-flight = 0", 17, "must be from 1 to 100000"),
        ("cooldown = -1", 12, "must be from 0 to 86400"),
        ("serial = 1", 10, "must be true or false, not a whole number"),
    ] {
        assert_eq!(
            problems_in_group(&format!("{hosts}{key}")),
            [format!("alerter.toml:3:{place}: {expected}")],
            "{key}"
        );
    }
    Site::new(&format!("[groups.a]\n{hosts}max-unhealthy = 0\n{}", route("all", ""))).settings();
}

fn warnings(text: &str) -> Vec<String> {
    let settings = Site::new(&format!("{text}\n{}", route("all", ""))).settings();
    let shown = |warning: &site::Problem| format!("{}:{}: {}", warning.line, warning.column, warning.message);
    settings.warnings.iter().map(shown).collect()
}

/// S4-12: the range counts, and an operator who thinks otherwise is warned.
#[test]
fn the_range_goes_before_the_number() {
    let both = "[groups.a]\nhosts = [\"c1\"]\nmax-unhealthy = 1\nunhealthy-range = \"[2-3]\"";
    let settings = Site::new(&format!("{both}\n{}", route("all", ""))).settings();
    assert_eq!(settings.groups[0].rules.limit, Limit::Range { low: 2, high: 3 });
    let says = "3:17: unhealthy-range overrides max-unhealthy: remove one";
    assert_eq!(warnings(both), [says]);
    assert!(warnings("[groups.a]\nhosts = [\"c1\"]\nunhealthy-range = \"[2-3]\"").is_empty());
}

/// S4-24: a share of zero hosts holds every host of the group. The broken variants are a number, and a group
/// whose size only the cluster knows.
#[test]
fn a_share_that_is_nobody_is_warned_of() {
    let group = |hosts: &str, rest: &str| warnings(&format!("[groups.a]\nhosts = [{hosts}]\n{rest}"));
    let three = "\"c1\", \"c2\", \"c3\", \"C3\"";
    assert_eq!(
        group(three, "max-unhealthy = \"33%\""),
        [
            "3:17: 33% of 3 host(s) is none, so every mark is held at first: raise max-unhealthy, or set it to a number"
        ]
    );
    for (hosts, rest) in [
        (three, "max-unhealthy = \"34%\""),
        (three, "max-unhealthy = 0"),
        ("\"c*\"", "max-unhealthy = \"33%\""),
    ] {
        assert!(group(hosts, rest).is_empty(), "{hosts} {rest}");
    }
}

/// It would be a share of an unknown number of hosts.
#[test]
fn without_a_cluster_a_share_wants_a_list_of_hosts() {
    let site = |group: &str| {
        let routes = route("all", "");
        Site::new(&format!("[store]\nregister = \"none\"\n{group}\n{routes}"))
    };
    let size = "[store] register = \"none\" has no cluster that knows how many hosts are in this group: name each host in hosts, or set max-unhealthy to a number";
    for (group, expected) in [
        ("[groups.a]\nhosts = [\"c*\"]\nmax-unhealthy = \"40%\"", format!("5:17: {size}")),
        ("[groups.a]\nhosts = [\"c*\"]\nunhealthy-range = \"[1-4]\"", format!("5:19: {size}")),
        ("[groups.default]\nmax-unhealthy = \"40%\"", format!("4:17: {size}")),
        (
            "[groups.a]\nattribute = \"zone=1\"",
            "4:13: [store] register = \"none\" has no cluster that knows a node's attributes: name hosts"
                .into(),
        ),
    ] {
        assert_eq!(site(group).problem(), format!("alerter.toml:{expected}"), "{group}");
    }
    for good in [
        "[groups.a]\nhosts = [\"c1\", \"c2\", \"c3\"]\nmax-unhealthy = \"40%\"",
        "[groups.a]\nhosts = [\"c1\"]\nunhealthy-range = \"[1-4]\"",
        "[groups.a]\nhosts = [\"c*\"]\nmax-unhealthy = 4",
    ] {
        site(good).settings();
    }
}

#[test]
fn who_is_in_a_group_is_said_once() {
    for (text, expected) in [
        ("", "1:9: [groups.a] has no hosts: name them or give it an attribute, or remove the table"),
        (
            "hosts = [\"c1\"]\nattribute = \"zone=1\"",
            "3:13: a group has hosts or attribute: remove one of them",
        ),
        (
            "attribute = \"zone\"",
            "2:13: must be NAME=VALUE, a permanent attribute of nodes such as \"zone=1\"",
        ),
        ("attribute = 1", "2:13: must be text in quotes, not a whole number"),
    ] {
        assert_eq!(problems_in_group(text), [format!("alerter.toml:{expected}")], "{text}");
    }
    for (key, column) in [("hosts = [\"c1\"]", 9), ("attribute = \"zone=1\"", 13)] {
        let word = key.split(' ').next().unwrap();
        let site = Site::new(&format!("[groups.default]\n{key}\n{}", route("all", "")));
        let says = format!("[groups.default] is for every host in no other group: remove {word}");
        assert_eq!(site.problem(), format!("alerter.toml:2:{column}: {says}"));
    }
}

/// S0-2, S0-25: at least a minute for each step, a route that is there, and each once.
#[test]
fn each_mistake_in_who_is_notified_has_its_sentence() {
    let step = "a step is { route = \"NAME\", timeout = 600 }";
    for (text, expected) in [
        ("routes = []", vec!["3:10: the list is empty: name routes, or remove the key".to_owned()]),
        ("routes = [\"all\", \"x\"]", vec!["3:18: there is no route of this name".into()]),
        ("routes = [\"all\", \"a b\"]", vec!["3:18: must be the name of a route".into()]),
        ("routes = [\"all\", \"b\", \"all\"]", vec!["3:23: all is here twice".into()]),
        (
            "routes = [\"b\"]\nchain = [{ route = \"b\", timeout = 60 }]",
            vec!["4:9: a group has routes or a chain: remove one of them".into()],
        ),
        (
            "chain = []",
            vec!["3:9: the list is empty: name a route with its timeout, or remove the key".into()],
        ),
        ("chain = [{ route = \"b\", timeout = 59 }]", vec!["3:35: must be from 60 to 86400".into()]),
        ("chain = [{ route = \"b\" }]", vec![format!("3:10: timeout is missing: {step}")]),
        ("chain = [{ timeout = 60 }]", vec![format!("3:10: route is missing: {step}")]),
        (
            "chain = [{ route = \"b\", timeout = 60 }, { route = \"x\", timeout = 60 }]",
            vec!["3:51: there is no route of this name".into()],
        ),
        (
            "chain = [{ route = \"b\", timeout = 60 }, { route = \"b\", timeout = 90 }]",
            vec!["3:51: b is here twice".into()],
        ),
        (
            "chain = [{ route = \"b\", timeout = 60, order = 1 }]",
            vec!["3:39: unknown key order in [groups.a.chain]; known are: route, timeout".into()],
        ),
        (
            "chain = [\"b\", 1]",
            vec![
                "3:10: must be a table such as { route = \"NAME\", timeout = 600 }, not text".into(),
                "3:15: must be a table such as { route = \"NAME\", timeout = 600 }, not a whole number"
                    .into(),
            ],
        ),
        (
            "chain = \"b\"",
            vec!["3:9: must be a list such as [{ route = \"NAME\", timeout = 600 }], not text".into()],
        ),
        (
            "chain = { route = \"b\", timeout = 60 }",
            vec!["3:1: must be a list of tables: write [{ route = \"NAME\", timeout = 600 }]".into()],
        ),
    ] {
        let text = format!("[groups.a]\nhosts = [\"c1\"]\n{text}\n{}{}", route("all", ""), route("b", ""));
        let found: Vec<String> = Site::new(&text).problems();
        let found: Vec<String> =
            found.into_iter().filter(|line| !line.contains("could end without an acknowledgement")).collect();
        let expected: Vec<String> = expected.iter().map(|line| format!("alerter.toml:{line}")).collect();
        assert_eq!(found, expected, "{text}");
    }
}

/// Chains may also be written as a list of tables, and a later file counts.
#[test]
fn a_chain_is_read_from_every_shape_of_a_list() {
    let tables = "[groups.a]\nhosts = [\"c1\"]\n[[groups.a.chain]]\nroute = \"b\"\ntimeout = 60\n[[groups.a.chain]]\nroute = \"c\"\ntimeout = 70\n";
    let routes = route("all", "") + &route("b", "") + &route("c", "");
    let link = |route: &str, timeout| Link { route: name(route), timeout: seconds(timeout) };
    let settings = Site::new(&format!("{tables}{routes}")).settings();
    assert_eq!(settings.groups[0].recipients, NamedRecipients::Chain(vec![link("b", 60), link("c", 70)]));
    let later = "[groups.a]\nchain = [{ route = \"c\", timeout = 80 }]\n";
    let settings = Site::new(&format!("{tables}{routes}")).with("alerter.d/1.toml", later).settings();
    assert_eq!(settings.groups[0].recipients, NamedRecipients::Chain(vec![link("c", 80)]));
    let broken = Site::new(&format!("{}{routes}", tables.replace("60", "6"))).with("alerter.d/1.toml", later);
    assert_eq!(broken.problem(), "alerter.toml:5:11: must be from 60 to 86400", "none may be wrong");
}

/// S0-24, S4-3: a route that a group names is that group's alone, and another takes who it took before.
#[test]
fn a_route_that_a_group_names_gets_no_other_hosts() {
    let groups =
        "[groups.a]\nhosts = [\"a*\"]\nroutes = [\"mine\", \"side\"]\n[groups.b]\nhosts = [\"b*\"]\n";
    let routes = [
        route("all", ""),
        route("mine", ""),
        route("side", "required = false"),
        route("of-b", "groups = [\"b\"]"),
        route("of-rest", "groups = [\"default\"]"),
    ];
    let settings = Site::new(&format!("{groups}{}", routes.concat())).settings();
    assert_eq!(notified(&settings, "a1"), ["mine", "side"]);
    assert_eq!(notified(&settings, "b1"), ["all", "of-b"]);
    assert_eq!(notified(&settings, "c1"), ["all", "of-rest"]);
    let chained = groups.replace(
        "routes = [\"mine\", \"side\"]",
        "chain = [{route=\"side\",timeout=60},{route=\"mine\",timeout=90}]",
    );
    let settings = Site::new(&format!("{chained}{}", routes.concat())).settings();
    let attempt = settings.routes_for(&host("a1"), &unknown);
    let Recipients::Chain(links) = attempt else { panic!("no chain") };
    let links: Vec<(&str, u64)> =
        links.into_iter().map(|(route, limit)| (route.name.as_str(), limit.as_secs())).collect();
    assert_eq!(links, [("side", 60), ("mine", 90)]);

    let own = route("mine", "hosts = [\"c1\"]\ngroups = [\"c\"]");
    let groups = "[groups.b]\nhosts = [\"b*\"]\nroutes = [\"mine\"]\n[groups.c]\nhosts = [\"c2\"]\n";
    let site = Site::new(&format!("{groups}{}{own}", route("all", "")));
    let says =
        |key: &str| format!("[groups.b] names this route, so it gets only that group's hosts: remove {key}");
    assert_eq!(
        site.problems(),
        [format!("alerter.toml:11:9: {}", says("hosts")), format!("alerter.toml:12:10: {}", says("groups"))]
    );
}

/// Else it would never be notified, and nobody would know why.
#[test]
fn a_route_cannot_join_a_group_that_names_its_routes() {
    for notified in ["routes = [\"mine\"]", "chain = [{ route = \"mine\", timeout = 60 }]"] {
        let group = format!("[groups.a]\nhosts = [\"c1\"]\n{notified}\n[groups.b]\nhosts = [\"c2\"]\n");
        let site = |groups: &str| {
            let joins = route("joins", &format!("groups = [{groups}]"));
            Site::new(&format!("{group}{joins}{}{}", route("mine", ""), route("all", "")))
        };
        assert_eq!(
            site("\"b\", \"a\"").problem(),
            "alerter.toml:8:16: [groups.a] names its own routes: add this route there, or leave the group out here"
        );
        assert_eq!(notified_of_both(&site("\"b\"").settings()), [vec!["mine"], vec!["all", "joins"]]);
    }
}

fn notified_of_both(settings: &Settings) -> [Vec<&str>; 2] {
    ["c1", "c2"].map(|node| notified(settings, node))
}

/// S1-15: somebody is surely notified of every group.
#[test]
fn every_group_has_a_required_route() {
    let rest = "1:1: no required route covers the hosts that are in no group, so a mark could end without an acknowledgement: name one in [groups.default] routes; or leave hosts, groups and required = false out of one that no group names";
    let plain = "1:1: no required route covers every host, so a mark could end without an acknowledgement: leave hosts, groups and required = false out of one route";
    let side = route("side", "required = false");
    let a = "[groups.a]\nhosts = [\"a*\"]\n";
    for (text, expected) in [
        (format!("{a}routes = [\"all\"]\n{}", route("all", "")), rest),
        (format!("{a}chain = [{{ route = \"all\", timeout = 60 }}]\n{}", route("all", "")), rest),
        (
            format!("{a}routes = [\"side\"]\n{}{side}", route("all", "")),
            "1:9: no route that [groups.a] names is required, so a mark could end without an acknowledgement: remove required = false from one",
        ),
        (
            format!("{a}[groups.default]\nroutes = [\"all\"]\n{}{side}", route("all", "")),
            "1:9: no required route covers every host of [groups.a], so a mark could end without an acknowledgement: name one in its routes",
        ),
        (
            format!("[groups.default]\nroutes = [\"side\"]\n{}{side}", route("all", "")),
            "1:1: no route that [groups.default] names is required, so a mark could end without an acknowledgement: remove required = false from one",
        ),
        (format!("{a}{}", route("of-a", "groups = [\"a\"]")), plain),
    ] {
        assert_eq!(Site::new(&text).problem(), format!("alerter.toml:{expected}"), "{text}");
    }
    for good in [
        format!("{a}routes = [\"mine\", \"side\"]\n{}{side}{}", route("mine", ""), route("all", "")),
        format!("{a}chain = [{{ route = \"side\", timeout = 60 }}]\n{side}{}", route("all", "")),
        format!("{a}routes = [\"all\"]\n[groups.default]\nroutes = [\"all\"]\n{}", route("all", "")),
        format!("{a}{}{}", route("of-a", "groups = [\"a\"]"), route("rest", "groups = [\"default\"]")),
    ] {
        Site::new(&good).settings();
    }
}

/// S4-44: whatever one name could match twice is refused. The broken variant, which compares the texts alone, takes all but the
/// first.
#[test]
fn groups_do_not_overlap() {
    let site = |one: &str, other: &str| {
        Site::new(&format!(
            "[groups.a]\nhosts = [{one}]\n[groups.b]\nhosts = [\"x\", {other}]\n{}",
            route("all", "")
        ))
    };
    let says = "a host could be in [groups.a] and in [groups.b]: leave it in one of them";
    for (one, other) in [
        ("\"c1\"", "\"C1\""),
        ("\"c*\", \"d\"", "\" c* \""),
        ("\"c*\"", "\"c1\""),
        ("\"r1-*\"", "\"r?-7\""),
        ("\"*.east\"", "\"c*\""),
    ] {
        assert_eq!(site(one, other).problem(), format!("alerter.toml:4:15: {says}"), "{one} {other}");
    }
    site("\"r1-*\", \"c1\"", "\"r2-*\", \"c2\"").settings();
    let corrected =
        site("\"c1\"", "\"c1\"").with("alerter.d/1.toml", "[groups.a]\nhosts = [\"c2\"]\n").settings();
    let own = corrected.groups_of(&host("c1"), &unknown);
    assert_eq!((own.len(), own[0].name.as_str()), (1, "b"), "what a later file overrides does not count");

    let zones = |one: &str, other: &str| {
        Site::new(&format!(
            "[groups.a]\nattribute = \"{one}\"\n[groups.b]\nattribute = \"{other}\"\n{}",
            route("all", "")
        ))
    };
    assert_eq!(zones("zone=1", "zone=1").problem(), format!("alerter.toml:4:13: {says}"));
    zones("zone=1", "zone=2").settings();
    zones("zone=1", "rack=1").settings();
}

/// The same on every controller: the order of the files and of the places in them, whatever the names.
#[test]
fn of_two_groups_the_first_counts() {
    let zone = |_: &HostName, name: &str| (name == "zone").then(|| "1".to_owned());
    let (hosts, by_zone) = ("hosts = [\"c1\"]", "attribute = \"zone=1\"");
    for (first, other) in [(hosts, by_zone), (by_zone, hosts)] {
        let text =
            format!("[groups.default]\n[groups.z]\n{first}\n[groups.a]\n{other}\n{}", route("all", ""));
        let settings = Site::new(&text).settings();
        assert_eq!(settings.group_of(&host("c1"), &zone).name, "z");
        let all: Vec<&str> =
            settings.groups_of(&host("c1"), &zone).iter().map(|group| group.name.as_str()).collect();
        assert_eq!(all, ["z", "a"]);
        let last = settings.groups.last().unwrap();
        assert_eq!(last.name, "default", "it comes last wherever it stands");
    }
}

const TWO: &str = "[groups.rack]\nhosts = [\"c1\", \"c2\"]\nroutes = [\"oncall\"]\nmax-unhealthy = \"40%\"\n[groups.east]\nattribute = \"zone=east\"\nchain = [{ route = \"first\", timeout = 60 }, { route = \"last\", timeout = 90 }]\nunhealthy-range = \"[0-3]\"\n";

fn two() -> String {
    let routes: String = ["all", "oncall", "first", "last"].iter().map(|name| route(name, "")).collect();
    format!("{TWO}{routes}")
}

fn check(site: &Site, words: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nova-host-alerter"));
    command.arg("check-config").args(words).arg("--config").arg(site.path("alerter.toml"));
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

/// S4-12, S4-13: what an operator sees of groups, and that a warning refuses nothing.
#[test]
fn check_config_shows_each_group_in_a_line() {
    let site = Site::new(&format!("{}[hosts]\non-shared-storage = true\n", two())).with_own_journal();
    let (code, said) = check(&site, &[]);
    let lines: Vec<&str> = said.lines().skip(1).collect();
    let warned = format!(
        "warning: {}:4:17: 40% of 2 host(s) is none, so every mark is held at first: raise max-unhealthy, or set it to a number",
        site.path("alerter.toml").display()
    );
    assert_eq!(
        lines,
        [
            "group rack: hosts c1, c2; notified: each of oncall; held above 40% unhealthy, rounded down",
            "group east: nodes with zone=east; notified: first (60 s), then last (90 s); held outside of 0 to 3 unhealthy",
            "group default: every other host; notified: every route that covers the host; no limit",
            warned.as_str(),
        ]
    );
    assert_eq!(code, Some(0));
    let json: Value = serde_json::from_str(&check(&site, &["--json"]).1).unwrap();
    assert_eq!(
        (&json["groups"][1]["name"], &json["groups"][2]["limit"]),
        (&"east".into(), &"no limit".into())
    );
    assert_eq!(json["warnings"][0]["line"], 4);
}

/// Three remote nodes; c1 and c3 are in the zone.
fn cluster() -> String {
    let node = |name: &str, zone: &str| {
        format!(
            r#"<node id="{name}" uname="{name}" type="remote"><instance_attributes id="i-{name}">
               <nvpair id="z-{name}" name="zone" value="{zone}"/></instance_attributes></node>"#
        )
    };
    let remote =
        |node: &str| format!(r#"<primitive id="{node}" class="ocf" provider="pacemaker" type="remote"/>"#);
    let nodes = node("c1", "east") + &node("c2", "west") + &node("c3", "east");
    let resources: String = ["c1", "c2", "c3", "c4"].map(remote).concat();
    format!(
        r#"<cib have-quorum="1"><configuration><crm_config/><nodes><node id="1" uname="ctl1"/>{nodes}</nodes>
           <resources>{resources}</resources><constraints/></configuration><status/></cib>"#
    )
}

/// S4-44: what only the cluster can say of groups: how many hosts each has, and which host is in two.
#[tokio::test]
async fn the_cluster_says_who_is_in_which_group() {
    let share = "[groups.rest]\nhosts = [\"c4*\"]\nmax-unhealthy = \"33%\"\n";
    let site = Site::new(&format!("[hosts]\ndomain = \"x.y\"\non-shared-storage = true\n{share}{}", two()));
    let cib = || Cib::parse(&cluster()).map_err(|why| why.to_string());
    let answers = online::ask(&site.settings(), cib()).await;
    let sizes: Vec<(&str, usize)> = answers.groups.iter().map(|of| (of.group.as_str(), of.hosts)).collect();
    assert_eq!(sizes, [("rest", 1), ("rack", 2), ("east", 1), ("default", 0)]);
    assert_eq!(
        answers.warnings,
        [
            "[groups.rest]: 33% of 1 host(s) is none, so every mark is held at first: raise max-unhealthy, or set it to a number"
        ]
    );
    // The routes of these groups lead to no endpoint, which is said beside it.
    let of_groups = |answers: &online::Answers| {
        let found = answers.findings.iter().filter(|one| one.kind == "groups");
        found.map(|one| (one.host.as_ref().unwrap().to_string(), one.detail.clone())).collect::<Vec<_>>()
    };
    let [(host, detail)] = &of_groups(&answers)[..] else { panic!("{:?}", answers.findings) };
    assert!(host == "c1" && detail.contains("(rack, east)") && !answers.is_clear());

    let corrected = site.with("alerter.d/1.toml", "[groups.rack]\nhosts = [\"c2\", \"c5\", \"c6\"]\n");
    assert_eq!(of_groups(&online::ask(&corrected.settings(), cib()).await), []);
}

/// A daemon at its start in a cluster, without its engine; it has not polled the cluster yet.
fn start_in_cluster(site: &Site) -> Daemon {
    let settings = site.settings();
    let open = || Journal::open(&settings.store.path, Role::Alerter).unwrap();
    let (mut journal, (store, _thread)) = (open(), Store::start(open()).unwrap());
    let cluster = Cluster::start(Register::Attrd, Tools::default(), PathBuf::new()).unwrap();
    let shared = Shared::new(Base::new(settings, store, cluster));
    start::catch_up(&mut journal, &shared.base, Timestamp::now()).unwrap();
    start::serve_unserved(&mut journal, &shared.base, Timestamp::now()).unwrap();
    Daemon { journal, shared }
}

fn poll(daemon: &mut Daemon) {
    let view = Arc::new(View {
        taken: Instant::now(),
        quorum: Ok(true),
        entries: Ok(Entries::default()),
        known: None,
        kept: Kept::default(),
        cib: Ok(Arc::new(Cib::parse(&cluster()).unwrap())),
        history: None,
    });
    daemon.shared.base.seen().note(&view);
    apply::take_in(&mut daemon.journal, (&daemon.shared.base, &daemon.shared.accounts), Some(&view)).unwrap();
}

fn in_cluster(text: &str) -> Site {
    let site = Site::new("");
    let store = site.path("state/marks.db");
    site.with(
        "alerter.toml",
        format!(
            "[store]\npath = \"{}\"\n[hosts]\ndomain = \"x.y\"\non-shared-storage = true\n{text}",
            store.display()
        ),
    )
}

fn routes_of(daemon: &Daemon, mark: MarkId) -> Vec<String> {
    daemon.deliveries(mark).into_iter().map(|(route, _)| route).collect()
}

/// S0-24, S0-48, S4-16, S4-21, S4-44: a mark's deliveries are those of its host's group, and of two groups the first counts,
/// with a warning for each host.
#[test]
fn a_mark_goes_to_the_routes_of_its_group() {
    let warnings = Warnings::default();
    let _here = warnings.listen();
    let site = in_cluster(&two());
    let mut daemon = start_in_cluster(&site);
    poll(&mut daemon);
    let said = warnings.take();
    let twice = |said: &[String]| {
        said.iter().filter(|line| line.contains("c1 is in more than one group (rack, east)")).count()
    };
    assert_eq!(twice(&said), 1, "{said:?}");
    let marks: Vec<MarkId> = ["c1", "c2", "c3", "c4"]
        .into_iter()
        .map(|host| {
            let fencing = samples::fencing(host, Timestamp::now());
            daemon.journal.append_fencing(&fencing).unwrap();
            fencing.id.into()
        })
        .collect();
    poll(&mut daemon);
    let notified: Vec<Vec<String>> = marks.iter().map(|mark| routes_of(&daemon, *mark)).collect();
    assert_eq!(notified, [vec!["oncall"], vec!["oncall"], vec!["first", "last"], vec!["all"]]);
    assert_eq!(twice(&warnings.take()), 0, "said once");
}

/// S1-15: a daemon that starts does not know yet who is in which zone. The broken variant, which does not wait, takes every host
/// for one of the rest.
#[test]
fn a_mark_without_deliveries_waits_until_its_group_is_known() {
    let site = in_cluster(&two());
    let mut daemon = start_in_cluster(&site);
    poll(&mut daemon);
    let (first, bare) = (samples::fencing("c4", Timestamp::now()), samples::fencing("c3", Timestamp::now()));
    daemon.journal.append_fencing(&first).unwrap();
    poll(&mut daemon);
    let row = daemon.journal.mark(first.id.into()).unwrap().unwrap();
    let row = marks::mark::MarkRow { id: bare.id.into(), node: bare.node.clone(), ..row };
    daemon.journal.append_fencing(&bare).unwrap();
    let taken = journal::Taken::Fencing(&bare);
    daemon.journal.make_mark(&row, taken, &[], Timestamp::now()).unwrap();
    drop(daemon);

    let mut daemon = start_in_cluster(&site);
    assert!(routes_of(&daemon, row.id).is_empty(), "nobody knows who is notified");
    let settings = daemon.shared.base.settings();
    let blind = settings.routes_for(&bare.node, &daemon.shared.base.attributes()).routes();
    assert_eq!(blind[0].name.as_str(), "all", "the broken variant");
    poll(&mut daemon);
    start::serve_unserved(&mut daemon.journal, &daemon.shared.base, Timestamp::now()).unwrap();
    assert_eq!(routes_of(&daemon, row.id), ["first", "last"]);
}

/// A mark that was made before its group named a route is sent there too; a chain that is under way stays as it was made.
#[test]
fn an_open_mark_gets_the_new_routes_of_its_group_but_keeps_its_chain() {
    let place = Place::new();
    let routes: String = ["all", "b", "c", "d"].iter().map(|name| route(name, "")).collect();
    let with = |notified: &str| format!("[groups.a]\nhosts = [\"c1\"]\n{notified}\n{routes}");
    let mark = place.start(&with("routes = [\"b\"]")).fence("c1", Timestamp::now());
    let daemon = place.start(&with("routes = [\"b\", \"c\"]"));
    assert_eq!(routes_of(&daemon, mark), ["b", "c"]);

    let place = Place::new();
    let chain = |steps: &[&str]| {
        let steps: Vec<String> =
            steps.iter().map(|step| format!("{{ route = \"{step}\", timeout = 60 }}")).collect();
        with(&format!("chain = [{}]", steps.join(", ")))
    };
    let mark = place.start(&chain(&["c", "b"])).fence("c1", Timestamp::now());
    let mut daemon = place.start(&chain(&["d", "b"]));
    assert_eq!(routes_of(&daemon, mark), ["b", "c"]);
    let later = daemon.fence("c1", Timestamp::now() - HOUR);
    assert_eq!(routes_of(&daemon, later), ["b", "d"]);
}
