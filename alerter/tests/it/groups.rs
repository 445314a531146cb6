//! Groups of hosts: what may be said of them, who is notified of a host by its group, and what an operator is warned of.

use std::time::Duration;

use alerter::commands::online;
use alerter::config::rules::{Amount, Limit, Rules};
use alerter::config::{Group, Link, Members, NamedRecipients, Recipients, RouteName, Settings};
use marks::host::{HostName, HostPatterns};
use marks::id::MarkId;
use marks::time::Timestamp;
use pacemaker::cib::Cib;

use crate::config::{self, host};
use crate::routes::route;
use crate::site::{Alerter, Program, Site};
use crate::warnings::Warnings;

const HOUR: Duration = Duration::from_secs(3600);

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
    let settings = config::Site::new(&format!("{text}{routes}")).settings();
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
    let settings = config::Site::new(&route("all", "")).settings();
    assert_eq!(settings.groups, [Group::rest()]);
    assert_eq!(settings.groups[0].rules.limit, Limit::None);
    assert_eq!(settings.group_of(&host("c1"), &unknown).name, "default");
    assert_eq!(notified(&settings, "c1"), ["all"]);
}

fn warnings(text: &str) -> Vec<String> {
    let settings = config::Site::new(&format!("{text}\n{}", route("all", ""))).settings();
    let shown = |warning: &site::Problem| format!("{}:{}: {}", warning.line, warning.column, warning.message);
    settings.warnings.iter().map(shown).collect()
}

/// S4-12: the range counts, and an operator who thinks otherwise is warned.
#[test]
fn the_range_goes_before_the_number() {
    let both = "[groups.a]\nhosts = [\"c1\"]\nmax-unhealthy = 1\nunhealthy-range = \"[2-3]\"";
    let settings = config::Site::new(&format!("{both}\n{}", route("all", ""))).settings();
    assert_eq!(settings.groups[0].rules.limit, Limit::Range { low: 2, high: 3 });
    let says = "3:17: unhealthy-range overrides max-unhealthy: remove one";
    assert_eq!(warnings(both), [says]);
    assert!(warnings("[groups.a]\nhosts = [\"c1\"]\nunhealthy-range = \"[2-3]\"").is_empty());
}

/// S0-2, S0-25: at least a minute for each step, a route that is there, and each once.
#[test]
fn each_mistake_in_who_is_notified_has_its_sentence() {
    let step = "a step is { route = \"NAME\", timeout = 600 }";
    for (text, expected) in [
        ("routes = [\"all\", \"x\"]", vec!["3:18: there is no route of this name".into()]),
        ("routes = [\"all\", \"b\", \"all\"]", vec!["3:23: all is here twice".into()]),
        ("chain = [{ route = \"b\", timeout = 59 }]", vec!["3:35: must be from 60 to 86400".into()]),
        ("chain = [{ route = \"b\" }]", vec![format!("3:10: timeout is missing: {step}")]),
        (
            "chain = [{ route = \"b\", timeout = 60 }, { route = \"x\", timeout = 60 }]",
            vec!["3:51: there is no route of this name".into()],
        ),
        (
            "chain = [{ route = \"b\", timeout = 60 }, { route = \"b\", timeout = 90 }]",
            vec!["3:51: b is here twice".into()],
        ),
        (
            "chain = [\"b\", 1]",
            vec![
                "3:10: must be a table such as { route = \"NAME\", timeout = 600 }, not text".into(),
                "3:15: must be a table such as { route = \"NAME\", timeout = 600 }, not a whole number"
                    .into(),
            ],
        ),
    ] {
        let text = format!("[groups.a]\nhosts = [\"c1\"]\n{text}\n{}{}", route("all", ""), route("b", ""));
        let found: Vec<String> = config::Site::new(&text).problems();
        let found: Vec<String> =
            found.into_iter().filter(|line| !line.contains("could end without an acknowledgement")).collect();
        let expected: Vec<String> = expected.iter().map(|line| format!("alerter.toml:{line}")).collect();
        assert_eq!(found, expected, "{text}");
    }
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
    let settings = config::Site::new(&format!("{groups}{}", routes.concat())).settings();
    assert_eq!(notified(&settings, "a1"), ["mine", "side"]);
    assert_eq!(notified(&settings, "b1"), ["all", "of-b"]);
    assert_eq!(notified(&settings, "c1"), ["all", "of-rest"]);
    let chained = groups.replace(
        "routes = [\"mine\", \"side\"]",
        "chain = [{route=\"side\",timeout=60},{route=\"mine\",timeout=90}]",
    );
    let settings = config::Site::new(&format!("{chained}{}", routes.concat())).settings();
    let attempt = settings.routes_for(&host("a1"), &unknown);
    let Recipients::Chain(links) = attempt else { panic!("no chain") };
    let links: Vec<(&str, u64)> =
        links.into_iter().map(|(route, limit)| (route.name.as_str(), limit.as_secs())).collect();
    assert_eq!(links, [("side", 60), ("mine", 90)]);

    let own = route("mine", "hosts = [\"c1\"]\ngroups = [\"c\"]");
    let groups = "[groups.b]\nhosts = [\"b*\"]\nroutes = [\"mine\"]\n[groups.c]\nhosts = [\"c2\"]\n";
    let site = config::Site::new(&format!("{groups}{}{own}", route("all", "")));
    let says =
        |key: &str| format!("[groups.b] names this route, so it gets only that group's hosts: remove {key}");
    assert_eq!(
        site.problems(),
        [format!("alerter.toml:13:9: {}", says("hosts")), format!("alerter.toml:14:10: {}", says("groups"))]
    );
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
        assert_eq!(config::Site::new(&text).problem(), format!("alerter.toml:{expected}"), "{text}");
    }
    for good in [
        format!("{a}routes = [\"mine\", \"side\"]\n{}{side}{}", route("mine", ""), route("all", "")),
        format!("{a}chain = [{{ route = \"side\", timeout = 60 }}]\n{side}{}", route("all", "")),
        format!("{a}routes = [\"all\"]\n[groups.default]\nroutes = [\"all\"]\n{}", route("all", "")),
        format!("{a}{}{}", route("of-a", "groups = [\"a\"]"), route("rest", "groups = [\"default\"]")),
    ] {
        config::Site::new(&good).settings();
    }
}

/// S4-44: whatever one name could match twice is refused. The broken variant, which compares the texts alone, takes all but the
/// first.
#[test]
fn groups_do_not_overlap() {
    let site = |one: &str, other: &str| {
        config::Site::new(&format!(
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
        config::Site::new(&format!(
            "[groups.a]\nattribute = \"{one}\"\n[groups.b]\nattribute = \"{other}\"\n{}",
            route("all", "")
        ))
    };
    assert_eq!(zones("zone=1", "zone=1").problem(), format!("alerter.toml:4:13: {says}"));
    zones("zone=1", "zone=2").settings();
    zones("zone=1", "rack=1").settings();
}

const TWO: &str = "[groups.rack]\nhosts = [\"c1\", \"c2\"]\nroutes = [\"oncall\"]\nmax-unhealthy = \"40%\"\n[groups.east]\nattribute = \"zone=east\"\nchain = [{ route = \"first\", timeout = 60 }, { route = \"last\", timeout = 90 }]\nunhealthy-range = \"[0-3]\"\n";

fn two() -> String {
    let routes: String = ["all", "oncall", "first", "last"].iter().map(|name| route(name, "")).collect();
    format!("{TWO}{routes}")
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
    let site =
        config::Site::new(&format!("[hosts]\ndomain = \"x.y\"\non-shared-storage = true\n{share}{}", two()));
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

/// Four hosts in these groups: c1 and c3 are in the zone, and c4 is in no group.
fn in_cluster() -> Site {
    let mut site = Site::new(&["c1", "c2", "c3", "c4"]);
    let routes: String = ["oncall", "first", "last"].iter().map(|name| route(name, "")).collect();
    site.configure(&format!("{TWO}{routes}"));
    for host in ["c1", "c3"] {
        site.hosts.get_mut(host).unwrap().zone = "east";
    }
    site
}

fn routes_of(alerter: &Alerter, host: &str) -> Vec<String> {
    let marks = alerter.marks(host);
    marks.iter().flat_map(|mark| alerter.deliveries(mark.id)).map(|(route, _)| route).collect()
}

/// S0-24, S0-48, S4-16, S4-21, S4-44: a mark's deliveries are those of its host's group, and of two groups the first counts,
/// with a warning for each host.
#[test]
fn a_mark_goes_to_the_routes_of_its_group() {
    let warnings = Warnings::default();
    let _here = warnings.listen();
    let mut site = in_cluster();
    let mut alerter = Alerter::start(&site, "ctl1");
    alerter.take_in(&site);
    let said = warnings.take();
    let twice = |said: &[String]| {
        said.iter().filter(|line| line.contains("c1 is in more than one group (rack, east)")).count()
    };
    assert_eq!(twice(&said), 1, "{said:?}");
    let hosts = ["c1", "c2", "c3", "c4"];
    hosts.iter().for_each(|host| _ = site.outage(host, "ctl1"));
    alerter.take_in(&site);
    let notified = hosts.map(|host| routes_of(&alerter, host));
    assert_eq!(notified, [vec!["oncall"], vec!["oncall"], vec!["first", "last"], vec!["backup", "nova"]]);
    assert_eq!(twice(&warnings.take()), 0, "said once");
}

/// S1-15: a daemon that starts does not know yet who is in which zone. The broken variant, which does not wait, takes every host
/// for one of the rest, to whom the new configuration brings another route.
#[test]
fn an_open_mark_gets_no_new_routes_before_its_group_is_known() {
    let mut site = in_cluster();
    Alerter::at_work(&mut site, "ctl1", 4);
    site.outage("c3", "ctl1");
    Alerter::start(&site, "ctl1").take_in(&site);
    site.configure(&route("new", ""));
    let mut second = Alerter::start(&site, "ctl1");
    assert_eq!(routes_of(&second, "c3"), ["first", "last"], "nobody knows who is notified");
    second.take_in(&site);
    assert_eq!(routes_of(&second, "c3"), ["first", "last"]);
    site.outage("c4", "ctl1");
    second.take_in(&site);
    assert_eq!(routes_of(&second, "c4"), ["backup", "new", "nova"]);
}

/// The names of the routes of a mark's deliveries.
async fn routes_now(program: &Program, mark: MarkId) -> Vec<String> {
    let all = program.deliveries(mark).await;
    all.iter().map(|one| one.split(' ').next().unwrap().to_owned()).collect()
}

/// A mark that was made before its group named a route is sent there too; a chain that is under way stays as it was made.
#[tokio::test]
async fn an_open_mark_gets_the_new_routes_of_its_group_but_keeps_its_chain() {
    let routes: String = ["all", "b", "c", "d"].iter().map(|name| route(name, "")).collect();
    let with = |notified: &str| format!("[groups.a]\nhosts = [\"c1\"]\n{notified}\n{routes}");
    let mut program = Program::with(&with("routes = [\"b\"]")).await;
    let mark = program.fence("c1");
    program.until(mark, "b pending").await;
    program.stop();
    program.configure(&with("routes = [\"b\", \"c\"]"));
    program.start().await;
    program.wait(async || routes_now(&program, mark).await == ["b", "c"]).await;

    let chain = |steps: [&str; 2]| {
        let steps = steps.map(|step| format!("{{ route = \"{step}\", timeout = 60 }}"));
        with(&format!("chain = [{}]", steps.join(", ")))
    };
    let mut program = Program::with(&chain(["c", "b"])).await;
    let mark = program.fence("c1");
    program.until(mark, "c pending").await;
    program.stop();
    program.configure(&chain(["d", "b"]));
    program.start().await;
    let later = program.record(&samples::fencing("c1", Timestamp::now() - HOUR));
    program.wait(async || routes_now(&program, later).await == ["b", "d"]).await;
    assert_eq!(routes_now(&program, mark).await, ["b", "c"]);
}
