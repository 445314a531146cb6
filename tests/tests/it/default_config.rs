//! The configuration file that the packages ship: every key in it is one that the program knows, with a value it takes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;
use tests::installed::source;
use tests::programs::built;
use tests::trials::Group;

/// Its tests; they run everywhere.
pub(crate) fn group() -> Group {
    Group::everywhere(tests::trials![
        as_shipped_only_a_route_is_missing,
        every_commented_setting_is_valid,
        every_key_of_a_group_is_named,
        the_example_with_groups_is_valid,
    ])
}

/// A configuration in a directory of its own.
pub(crate) fn written(text: &str) -> (TempDir, PathBuf) {
    let room = TempDir::new().unwrap();
    let file = room.path().join("alerter.toml");
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    // Whatever lies at the usual place of this machine's journal.
    let store = format!("[store]\npath = \"{}/state/marks.db\"\n", room.path().display());
    fs::create_dir(room.path().join("alerter.d")).unwrap();
    let fragment = room.path().join("alerter.d/journal.toml");
    fs::write(&fragment, store).unwrap();
    fs::set_permissions(&fragment, fs::Permissions::from_mode(0o600)).unwrap();
    (room, file)
}

/// The problems that the program finds in a configuration.
pub(crate) fn check(text: &str) -> Output {
    let (_room, file) = written(text);
    Command::new(built("nova-host-alerter").unwrap())
        .args(["check-config", "--config"])
        .arg(file)
        .output()
        .unwrap()
}

fn shipped() -> String {
    fs::read_to_string(source("packaging/alerter.toml")).unwrap()
}

/// Settings are commented out without a blank, sentences with one.
fn every_setting_of(text: &str) -> String {
    let settings = text.lines().filter_map(|line| line.strip_prefix('#')).filter(|line| !line.is_empty());
    let settings = settings.filter(|line| !CERTIFICATES.iter().any(|key| line.starts_with(key)));
    settings.filter(|line| !line.starts_with(' ')).fold(String::new(), |all, line| all + line + "\n")
}

/// Where the files that the settings name are.
const FILES: &str = "/etc/nova-host-alerter/";
/// Keys whose files hold certificates; the alerter's own tests read such files.
const CERTIFICATES: [&str; 3] = ["ca-file", "certificate-file", "key-file"];

/// The files with secrets that the settings name.
fn secrets() -> TempDir {
    let room = TempDir::new().unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::default().self_signed(&key).unwrap().pem();
    let given = [
        ("portal.token", "0123456789abcdef0123456789abcdef\n"),
        ("recovery.secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"),
        ("local.password", "password\n"),
        (
            "clouds.yaml",
            "clouds: {my-cloud: {auth: {auth_url: 'https://keystone/v3', user_id: u, project_id: p}}}\n",
        ),
        ("secure.yaml", "clouds: {my-cloud: {auth: {password: password}}}\n"),
        ("kubeconfig", KUBECONFIG),
        ("token", "token\n"),
        ("ca.crt", &certificate),
    ];
    // The default is a secret of one word.
    for (name, text) in named_files().iter().map(|name| (name.as_str(), "token\n")).chain(given) {
        let file = room.path().join(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    }
    room
}

const KUBECONFIG: &str = "current-context: prod
contexts: [{name: prod, context: {cluster: prod, user: alerter}}]
clusters: [{name: prod, cluster: {server: 'https://kubernetes'}}]
users: [{name: alerter, user: {token: t}}]
";

/// The names of all files that the settings name there.
fn named_files() -> Vec<String> {
    let (shipped, begin) = (shipped(), format!("\"{FILES}"));
    let names = shipped.split(&begin).skip(1).filter_map(|rest| rest.split('"').next());
    names.filter(|name| !name.contains('/')).map(str::to_owned).collect()
}

/// The keys of a table, as the program lists them for one that it does not know.
fn keys_of(title: &str) -> Vec<String> {
    let said =
        String::from_utf8(check(&format!("[{title}]\nnothing-like-any-of-these = 1\n")).stdout).unwrap();
    let (_, list) = said.split_once("known are: ").unwrap();
    list.lines().next().unwrap().split(", ").map(str::to_owned).collect()
}

/// Those that a text gives no value, and no table of their own.
fn unnamed(keys: &[String], text: &str) -> Vec<String> {
    let is_there = |line: &str, key: &str| {
        line.starts_with(&format!("#{key} = "))
            || line.starts_with('#') && line.ends_with(&format!(".{key}]"))
    };
    let named = |key: &String| text.lines().any(|line| is_there(line, key));
    keys.iter().filter(|key| !named(key)).cloned().collect()
}

/// S4-3: the same of a group; and the table of the manual has them all.
fn every_key_of_a_group_is_named() {
    let keys = keys_of("groups.a");
    assert!(keys.len() > 10, "{keys:?}");
    assert_eq!(unnamed(&keys, &shipped()), Vec::<String>::new());
    let misspelled = shipped().replace("#cooldown", "#coldown");
    assert_eq!(unnamed(&keys, &misspelled), ["cooldown"], "a missing key must be seen");
    let manual = fs::read_to_string(source("docs/policy.md")).unwrap();
    let absent = |key: &&String| !manual.contains(&format!("| `{key}` |"));
    assert_eq!(keys.iter().filter(absent).count(), 0, "{keys:?}");
}

/// S1-48, S4-13: it is valid, and `check-config` shows its groups.
fn the_example_with_groups_is_valid() {
    let example = fs::read_to_string(source("docs/examples/groups.toml")).unwrap();
    let output = check(&format!("{example}\n[hosts]\ndomain = \"x.org\"\non-shared-storage = true\n"));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    for line in ["group rack1: hosts r1-compute?", "group east: nodes with zone=east", "group default: "] {
        assert!(said.contains(line), "{said}");
    }
    assert!(!said.contains("warning"), "{said}");
    let unknown = example.replace("route = \"pager\"", "route = \"nobody\"");
    assert_eq!(check(&unknown).status.code(), Some(78), "a route that is not there must be seen");
}

/// A machine that was only installed does not know where to report: that is said, and nothing else.
fn as_shipped_only_a_route_is_missing() {
    let output = check(&shipped());
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(78), "{output:?}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("no route is configured"), "{said}");
}

/// S1-48: what an administrator finds in the file is what the program reads.
fn every_commented_setting_is_valid() {
    let room = secrets();
    let place = room.path().display().to_string();
    let settings = every_setting_of(&shipped()).replace(FILES, &format!("{place}/"));
    let settings =
        ["report-failure", "page-operator", "bmc-power-is-on"].iter().fold(settings, |settings, program| {
            settings.replace(&format!("/usr/local/libexec/{program}"), "/bin/true")
        });
    let output = check(&settings);
    assert!(output.status.success(), "{settings}\n{output:?}");

    let misspelled = settings.replace("coalesce", "coalesec");
    assert_eq!(check(&misspelled).status.code(), Some(78), "a key that is not known must be seen");
}
