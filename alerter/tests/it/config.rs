//! The configuration: every problem in all files at once, each at its place, and nothing of a value in a message.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use alerter::config::{self, Settings};
use drivers::KINDS;
use marks::host::HostName;
use marks::register::Register;
use proptest::prelude::*;
use site::ConfigErrors;

use tempfile::TempDir;

const ROUTE: &str = "[http.recovery]\nurl = \"http://127.0.0.1:8080/v1/host-failures\"\n";
const SECRET: &str = "s3kr1t";

/// A directory with `alerter.toml` and further files.
pub(crate) struct Site(pub(crate) TempDir);

impl Site {
    pub(crate) fn new(main: &str) -> Self {
        let site = Self(tempfile::tempdir().unwrap());
        site.with("alerter.toml", main)
    }

    pub(crate) fn with(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        let file = self.path(name);
        let directory = file.parent().unwrap();
        fs::create_dir_all(directory).unwrap();
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(&file, text).unwrap();
        self.chmod(name, 0o644);
        self
    }

    pub(crate) fn chmod(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn load(&self) -> Result<Settings, ConfigErrors> {
        config::load(&self.path("alerter.toml"))
    }

    pub(crate) fn settings(&self) -> Settings {
        self.load().unwrap_or_else(|problems| panic!("{problems}"))
    }

    /// The problems as they are printed, without the directory.
    pub(crate) fn problems(&self) -> Vec<String> {
        let problems = self.load().expect_err("this configuration has problems").to_string();
        let directory = format!("{}/", self.0.path().display());
        problems.lines().map(|line| line.replace(&directory, "")).collect()
    }

    /// The one problem there is.
    pub(crate) fn problem(&self) -> String {
        let problems = self.problems();
        assert_eq!(problems.len(), 1, "{problems:#?}");
        problems[0].clone()
    }
}

/// The one problem of a file that also holds a good route.
fn problem_of(text: &str) -> String {
    Site::new(&format!("{text}\n{ROUTE}")).problem()
}

pub(crate) fn host(name: &str) -> HostName {
    HostName::parse(name).unwrap()
}

/// S1-15: a route is all that must be configured.
#[test]
fn a_route_is_enough_and_the_rest_has_defaults() {
    let settings = Site::new(ROUTE).settings();
    assert_eq!(settings.store.path, Path::new("/var/lib/nova-host-alerter/marks.db"));
    assert_eq!(settings.store.register, Register::Attrd);
    assert_eq!(settings.hosts, config::HostRules::default());
    let seconds = Duration::from_secs;
    let (coalesce, horizon) = (marks::outage::COALESCE, marks::outage::HORIZON);
    assert_eq!(settings.intake, config::IntakeRules { coalesce, horizon });
    assert_eq!(settings.degraded_after, seconds(300));
    assert_eq!((settings.max_in_flight, settings.log.level), (32, tracing::Level::INFO));
    assert_eq!(settings.history, config::HistoryRules { keep: seconds(400 * 86_400), max_bytes: 512 << 20 });
    let route = &settings.routes[0];
    assert_eq!((route.name.as_str(), route.driver.about().kind), ("recovery", "http"));
    assert_eq!(route.driver.about().endpoint, "http://127.0.0.1:8080/v1/host-failures");
}

/// S1-15, S1-37, S1-38: everything that can be configured.
#[test]
fn every_key_is_read() {
    let site = Site::new(
        r#"
        [store]
        path = "/srv/marks.db"
        register = "none"
        [hosts]
        domain = "my.cloud.com"
        on-shared-storage = false
        match = ["compute*", "nova?"]
        [hosts.names]
        compute9 = "nine.example.org"
        "compute10.rack" = "ten.example.org"
        [intake]
        coalesce = 60
        horizon = 3600
        [delivery]
        degraded-after = 0x1e
        max-in-flight = 1_0
        [history]
        keep = 30
        max-size = 16
        [log]
        level = "debug"
        [http.first]
        url = "http://recovery.example:8080/x?token=1"
        allow-http = true
        timeout = 5
        time-format = "rfc3339"
        [http.second]
        url = "http://localhost/"
        "#,
    );
    let settings = site.settings();
    assert_eq!(settings.store.path, Path::new("/srv/marks.db"));
    assert_eq!(settings.hosts.domain.as_deref(), Some("my.cloud.com"));
    assert_eq!(settings.hosts.on_shared_storage, Some(false));
    let covered = settings.hosts.matching.unwrap();
    assert_eq!(["compute17", "nova1", "ctl1"].map(|name| covered.covers(&host(name))), [true, true, false]);
    assert_eq!(settings.hosts.names[&host("COMPUTE9")].as_str(), "nine.example.org");
    assert_eq!(settings.hosts.names.len(), 2);
    let intake = &settings.intake;
    let seconds = [intake.coalesce, intake.horizon];
    assert_eq!(seconds.map(|time| time.as_secs()), [60, 3600]);
    assert_eq!(settings.degraded_after.as_secs(), 30);
    assert_eq!((settings.max_in_flight, settings.log.level), (10, tracing::Level::DEBUG));
    let keep = Duration::from_secs(30 * 86_400);
    assert_eq!(settings.history, config::HistoryRules { keep, max_bytes: 16 << 20 });
    let names: Vec<&str> = settings.routes.iter().map(|route| route.name.as_str()).collect();
    assert_eq!(names, ["first", "second"]);
    assert_eq!(settings.routes[0].driver.about().endpoint, "http://recovery.example:8080/x");
    assert_eq!(settings.file, site.path("alerter.toml"));
}

#[test]
fn later_files_override_single_keys_and_add_to_tables() {
    let site =
        Site::new(&format!("[store]\npath = \"/a\"\n[hosts.names]\nc1 = \"a.b\"\n{ROUTE}timeout = 3\n"))
            .with("alerter.d/20.toml", "[store]\npath = \"/c\"\n[hosts.names]\nc2 = \"c.d\"\n")
            .with(
                "alerter.d/10.toml",
                "[store]\npath = \"/b\"\n[http.recovery]\nurl = \"http://127.0.0.1:9/\"\n",
            )
            .with("alerter.d/30.toml", "[http]\nother = { url = \"http://[::1]/\" }\n")
            .with("alerter.d/ignored.toml.bak", "nonsense");
    let settings = site.settings();
    assert_eq!(settings.store.path, Path::new("/c"));
    assert_eq!(settings.hosts.names.len(), 2);
    let endpoints: Vec<&str> =
        settings.routes.iter().map(|route| route.driver.about().endpoint.as_str()).collect();
    assert_eq!(endpoints, ["http://[::1]/", "http://127.0.0.1:9/"]);
}

/// One run names everything that is wrong, in all files, with its place.
#[test]
fn every_problem_in_all_files_is_listed_at_once() {
    let site = Site::new(
        "[store]\npath = \"marks.db\"\nregister = \"corosync\"\n\n[intake]\ncoalesce = \"180\"\ncolaesce = 1\n\n[lgo]\nlevel = 1\n",
    )
    .with("alerter.d/10-routes.toml", "[http.a]\nurl = \"ftp://x/\"\ntimeout = 31\n\n[http.\"b c\"]\nallow_http = true\n")
    .with("alerter.d/20-broken.toml", "[hosts]\ndomain = my.cloud.com\n  match = \"*\"\non-shared-storage = yes\n");
    assert_eq!(
        site.problems(),
        [
            "alerter.toml:2:8: must be the absolute path of a file, such as /var/lib/nova-host-alerter/marks.db",
            "alerter.toml:3:12: unknown register: use \"attrd\", \"cib\", \"etcd\" or \"none\"",
            "alerter.toml:6:12: must be a whole number, not text",
            "alerter.toml:7:1: unknown key colaesce in [intake]; did you mean coalesce?",
            "alerter.toml:9:2: unknown section lgo; did you mean log?",
            "alerter.d/10-routes.toml:2:7: the url must begin with https:// or http://",
            "alerter.d/10-routes.toml:3:11: must be from 1 to 30",
            "alerter.d/10-routes.toml:5:7: a route's name must be 1 to 64 letters, digits, '-' or '_'",
            "alerter.d/10-routes.toml:6:1: unknown key allow_http in [http.(not shown: not a plain word)]; did you mean allow-http?",
            "alerter.d/20-broken.toml:2:10: not valid TOML: string values must be quoted, expected literal string",
            "alerter.d/20-broken.toml:3:11: must be a list such as [\"a\", \"b\"], not text",
            "alerter.d/20-broken.toml:4:21: not valid TOML: string values must be quoted, expected literal string",
        ]
    );
}

/// The same list as data, for `--json`.
#[test]
fn problems_are_data_too() {
    let errors = Site::new("[http.a]\n").load().unwrap_err();
    let json = serde_json::to_value(errors.problems()).unwrap();
    assert_eq!((&json[0]["line"], &json[0]["column"]), (&1.into(), &7.into()));
    assert_eq!(json[0]["message"], "[http.a] has no url: set it to the address of the recovery controller");
    assert!(json[0]["file"].as_str().unwrap().ends_with("alerter.toml"));
}

/// S1-15: else there could be a mark without any route.
#[test]
fn a_required_route_for_all_hosts_is_a_must() {
    let expected = "alerter.toml:1:1: no required route covers every host, so a mark could end without an acknowledgement: leave hosts, groups and required = false out of one route";
    let other = ROUTE.replace("recovery", "other");
    for rest in [
        format!("{ROUTE}hosts = [\"*\"]\n"),
        format!("[groups.all]\nhosts = [\"*\"]\n{ROUTE}groups = [\"all\"]\n"),
        format!("{ROUTE}required = false\n"),
        format!("{ROUTE}hosts = [\"c*\"]\n{other}required = false\n"),
    ] {
        assert_eq!(Site::new(&rest).problem(), expected, "{rest}");
    }
    Site::new(&format!("{ROUTE}required = true\n{other}hosts = [\"c1\"]\nrequired = false\n")).settings();
}

/// All of it at once, each at its place, and no value of a file in it. The broken variants start without knowing where the register is,
/// or read a secret that others can read.
#[test]
fn what_is_wrong_with_etcd_is_all_said() {
    assert!(problem_of("[store]\nregister = \"etcd\"").contains("needs [store.etcd]"));
    let table = "[store]\nregister = \"etcd\"\n[store.etcd]\nendpoints = [\"etcd1:2379\"]\nuser = \"a:b\"\nkey-file = \"alerter.key\"\nprefx = \"/x\"";
    let problems = Site::new(&format!("{table}\n{ROUTE}")).problems();
    let wanted = [
        ":3:8: [store.etcd] has no prefix",
        ":4:14: must be https://HOST:PORT",
        ":5:8: must be the name of a user",
        ":5:8: user has no effect without password-file: set both, or neither",
        ":6:12: must be an absolute path",
        ":6:12: key-file has no effect without certificate-file",
        ":7:1: unknown key prefx in [store.etcd]",
    ];
    for (problem, wanted) in problems.iter().zip(wanted) {
        assert!(problem.contains(wanted), "{problem}: {wanted}");
    }
    assert_eq!(problems.len(), wanted.len(), "{problems:#?}");
    assert!(problem_of("[store.etcd]\nendpoints = []\nprefix = \"/x\"").contains("has no endpoints"));
}

/// The broken variant sends the password of etcd's user through the network as it is.
#[test]
fn a_password_goes_through_the_network_in_no_clear_text() {
    let with = |endpoints: &str, login: &str| {
        let table = format!("[store.etcd]\nendpoints = [{endpoints}]\nprefix = \"/x\"\n{login}\n");
        let site = Site::new(&format!("{table}{ROUTE}")).with("password", SECRET);
        site.chmod("password", 0o600);
        let password = site.path("password").display().to_string();
        site.with("alerter.toml", format!("{table}{ROUTE}").replace("PASSWORD", &password))
    };
    let login = "user = \"alerter\"\npassword-file = \"PASSWORD\"";
    let open = "\"https://etcd1:2379\", \"http://etcd2:2379\"";
    let said = with(open, login).problem();
    assert!(
        said.starts_with("alerter.toml:2:36: ") && said.contains("sent unencrypted: use https"),
        "{said}"
    );
    for (endpoints, login) in [(open, ""), ("\"http://127.0.0.1:2379\", \"https://etcd2:2379\"", login)] {
        assert!(with(endpoints, login).settings().store.etcd.is_some(), "{endpoints} {login}");
    }
}

/// S1-27, S1-28: the register is one of a closed set.
#[test]
fn a_register_is_one_of_four() {
    for known in ["attrd", "cib", "none"] {
        let settings = Site::new(&format!("[store]\nregister = \"{known}\"\n{ROUTE}")).settings();
        assert_eq!(settings.store.register.as_str(), known);
    }
    let etcd = "[store.etcd]\nendpoints = [\"https://etcd1:2379\"]\nprefix = \"/nova-host-alerter/east\"\n";
    let store = Site::new(&format!("[store]\nregister = \"etcd\"\n{etcd}{ROUTE}")).settings().store;
    assert_eq!(store.register.as_str(), "etcd");
    assert_eq!(store.etcd.unwrap().prefix, "/nova-host-alerter/east/");
    assert_eq!(Site::new(ROUTE).settings().store.register.as_str(), "attrd");
    assert!(
        problem_of(&format!("[store]\nregister = \"{SECRET}\""))
            .starts_with("alerter.toml:2:12: unknown register")
    );
}

#[test]
fn each_mistake_has_its_sentence() {
    let drivers: Vec<&str> = KINDS.iter().map(|kind| kind.word).collect();
    for (text, expected) in [
        (
            "[hosts]\ndomain = \"a..b\"",
            "2:10: no domain: the host name has an empty label (two dots in a row, or a dot at the end)",
        ),
        ("[hosts]\non-shared-storage = \"true\"", "2:21: must be true or false, not text"),
        (
            "[hosts]\nmatch = []",
            "2:9: the list is empty, so no host would ever be marked: name hosts, or remove the key",
        ),
        ("[hosts.names]\nc1 = \"short\"", "2:6: must be a full name with its domain"),
        ("[hosts.names]\n\"-x\" = \"a.b\"", "2:1: the key must be a node name"),
        (
            "[hosts.names]\nc1 = \"a.b\"\nC1 = \"c.d\"",
            "2:1: c1 is here twice (upper and lower case are the same): remove one",
        ),
        (
            "[hosts.names]\nc1 = \"a.b\"\nc2 = \"A.B\"",
            "3:1: c2 has the same name as another node: one would be reported for the other",
        ),
        ("[intake]\ncoalesce = 0", "2:12: must be from 1 to 86400"),
        (
            "[log]\nlevel = \"Warn\"",
            "2:9: unknown word; did you mean \"warn\"? Known are: \"error\", \"warn\", \"info\", \"debug\"",
        ),
        (
            "[watchdog]\nttl = 1",
            "1:2: unknown section watchdog; known are: store, hosts, groups, intake, delivery, log, history, http, exec, api, healthcheck, metrics, page",
        ),
        (
            "register = \"none\"",
            "1:1: unknown key register outside of any section; known are: store, hosts, groups, intake, delivery, log, history, http, exec, api, healthcheck, metrics, page",
        ),
        ("log = \"info\"", "1:7: must be a table: write [log]"),
        ("[store]\npath = \"/a\"\npath = \"/b\"", "3:1: not valid TOML: duplicate key"),
    ] {
        let expected = expected.replace("http, exec", &drivers.join(", "));
        assert_eq!(problem_of(text), format!("alerter.toml:{expected}"), "{text}");
    }
}

/// S1-45: also what would be sent in the clear, or with a password in sight.
#[test]
fn each_mistake_in_a_route_has_its_sentence() {
    for (text, expected) in [
        (
            "[http]\nurl = \"http://127.0.0.1/\"",
            "2:7: http.url must be inside a route: write [http.NAME], one table for each",
        ),
        (
            "[http.b]\nurl = \"http://recovery.example/\"",
            "2:7: plain http can be read and changed by others: use https, or set allow-http = true",
        ),
        (
            "[http.b]\nurl = \"http://127.0.0.1/\"\nhosts = []",
            "3:9: the list is empty, so this route would get no mark: name hosts, or remove the key",
        ),
        (
            "[http.b]\nurl = \"http://127.0.0.1/\"\nhosts = [\"c1;c2\"]",
            "3:10: a host pattern has a character that no host name can have (allowed beside '*' and '?': letters, digits, '.', '_', '-')",
        ),
        ("[http.b]\nurl = \"https://admin:pw@h/\"", "2:7: a url must not hold a user name or password"),
        (
            "[http.b]\nurl = \"http://127.0.0.1/\"\nca-file = \"/etc/passwd\"",
            "3:11: ca-file holds no certificate in PEM",
        ),
    ] {
        assert_eq!(problem_of(text), format!("alerter.toml:{expected}"), "{text}");
    }
}

#[test]
fn a_file_that_others_may_write_is_refused() {
    let site = Site::new(ROUTE).with("alerter.d/1.toml", "");
    for (name, mode) in
        [("alerter.toml", 0o646), ("alerter.toml", 0o664), ("alerter.d/1.toml", 0o622), ("alerter.d", 0o777)]
    {
        let good = fs::metadata(site.path(name)).unwrap().permissions();
        site.chmod(name, mode);
        let problem = site.problem();
        assert!(
            problem
                .starts_with(&format!("{name}:1:1: others may write it (mode {mode:04o}): run `chmod go-w ")),
            "{problem}"
        );
        fs::set_permissions(site.path(name), good).unwrap();
    }
    site.settings();
}

/// Every key that takes a text, behind its section; some of them are no keys.
const KEYS: &[(&str, &str)] = &[
    ("store", "path register"),
    ("hosts", "domain on-shared-storage match"),
    ("groups", "a"),
    ("groups.a", "hosts attribute routes chain max-unhealthy unhealthy-range window"),
    ("http.a", "groups url allow-http ca-file timeout time-format secret-files bearer-file body"),
    ("http.a", "certificate-file key-file server-name tls-min keep-alive username password-file"),
    ("http.a", "headers unknown"),
    ("intake", "coalesce"),
    ("delivery", "degraded-after max-in-flight"),
    ("log", "level to"),
    ("http.a.headers", "host x-token"),
    ("nothing", "unknown"),
    ("hosts.names", "c1"),
];

/// A configuration with the secret in the place of every value, each of them wrong.
#[test]
fn no_message_holds_a_value() {
    for (section, key) in
        KEYS.iter().flat_map(|(section, keys)| keys.split(' ').map(move |key| (section, key)))
    {
        for value in [
            format!("\"{SECRET}..x\""),
            format!("\"https://{SECRET}:{SECRET}@{SECRET}/{SECRET}#{SECRET}\""),
            format!("[\"{SECRET}/\"]"),
            format!("{{ x = \"{SECRET}\" }}"),
            format!("[{{ route = \"{SECRET}/\", timeout = \"{SECRET}\" }}, \"{SECRET}\"]"),
            format!("\"{SECRET}\nx\""),
            SECRET.to_owned(),
            format!("\"{SECRET}"),
            format!("'{SECRET}\n"),
            format!("\"\"\"\n{SECRET}\n"),
            format!("[{SECRET}"),
        ] {
            let Err(errors) = Site::new(&format!("[{section}]\n{key} = {value}\n")).load() else { continue };
            assert!(!format!("{errors}{errors:?}").contains(SECRET), "{key} = {value}: {errors}");
        }
    }
}

/// The broken variant of the above: what the parser itself prints holds the line.
#[test]
fn the_parsers_own_message_would_give_a_secret_away() {
    let error = toml::de::DeTable::parse("password = s3kr1t").unwrap_err();
    assert!(error.to_string().contains(SECRET) && !error.message().contains(SECRET));
}

/// What the text holds as values, for [`no_slip_of_the_pen_gives_a_secret_away`].
const FULL: &str = "[store]\npath = \"/s3kr1t/s3kr1t\"\n[hosts]\nmatch = [\"s3kr1t\", 's3kr1t']\n[http.a]\n\
    url = \"https://h/?s3kr1t\"\nca-file = \"\"\"s3kr1t\"\"\"\n[http.b]\nurl = 's3kr1t'\n";

proptest! {
    /// A character put in or taken out anywhere: no panic, and the secret stays where it is.
    #[test]
    fn no_slip_of_the_pen_gives_a_secret_away(at in 0..FULL.len(), take in 0usize..3, put in "[\"'\\[\\]{}=.,#\n a]{0,2}") {
        let mut text = FULL.to_owned();
        let end = (at + take).min(text.len());
        text.replace_range(at..end, &put);
        if let Err(errors) = Site::new(&text).load() {
            prop_assert!(!errors.to_string().contains(SECRET), "{text}\n{errors}");
        }
    }

    #[test]
    fn any_text_is_read_without_a_panic(text in "(\\[|\\]|\"|'|=|\\.|\n| |#|,|\\{|\\}|http|a|url|hosts|names|1|\\PC){0,60}") {
        let _valid_or_not = Site::new(&text).load();
    }
}
