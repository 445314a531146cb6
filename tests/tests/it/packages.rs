//! The packages against the tree: every file that they list is there, every part of the product is in the list, and no
//! script touches what runs. Packages themselves are made and tried by `make test-packages`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use tests::installed::{OCF_AGENT, source};
use tests::programs::built;
use tests::trials::Group;

/// Its tests; they run everywhere.
pub(crate) fn group() -> Group {
    Group::everywhere(tests::trials![
        every_listed_file_is_there,
        every_part_has_its_place,
        the_units_and_agents_name_what_is_installed,
        everything_to_read_is_installed,
        the_rpm_takes_what_is_listed,
        the_configuration_is_for_root_alone,
        what_is_installed_is_what_the_list_says,
        no_script_touches_what_runs,
        the_directories_are_those_of_the_unit,
    ])
}

/// The programs that both packages are made of.
const PROGRAMS: [&str; 3] = ["nova-host-alerter", "fence_mark", "alert_mark"];
/// Where administrators and Pacemaker expect each part.
const PLACES: [(&str, &str); 9] = [
    ("/usr/sbin/", "@built@/nova-host-alerter"),
    ("/usr/sbin/", "@built@/fence_mark"),
    ("/usr/share/pacemaker/alerts/", "@built@/alert_mark"),
    ("/usr/lib/ocf/resource.d/openstack/", "ocf/nova-host-alerter"),
    ("/etc/nova-host-alerter/", "packaging/alerter.toml"),
    ("@units@/", "packaging/systemd/nova-host-alerter.service"),
    ("/usr/lib/tmpfiles.d/", "packaging/tmpfiles/nova-host-alerter.conf"),
    ("/usr/lib/sysusers.d/", "packaging/sysusers/nova-host-alerter.conf"),
    ("/usr/share/nova-host-alerter/", "docs/openapi.json"),
];
/// What dpkg runs; that of the rpm stands in its spec.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];
/// Nothing of these may be run by a package.
const FORBIDDEN: [&str; 9] = [
    "systemctl",
    "service",
    "invoke-rc.d",
    "deb-systemd-invoke",
    "crm_resource",
    "pcs",
    "crm",
    "kill",
    "pkill",
];

fn text(path: &str) -> String {
    fs::read_to_string(source(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A line of `packaging/files`.
struct Listed {
    mode: String,
    to: String,
    from: String,
}

fn listed() -> Vec<Listed> {
    let list = text("packaging/files");
    let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [mode, to, from] = fields[..] else { panic!("three fields are wanted: {line}") };
            Listed { mode: mode.to_owned(), to: to.to_owned(), from: from.to_owned() }
        })
        .collect()
}

/// The files of the tree that a line takes; a star stands in a name alone.
fn taken(from: &str) -> Vec<PathBuf> {
    let (directory, name) = from.rsplit_once('/').unwrap_or((".", from));
    let Some((head, tail)) = name.split_once('*') else {
        return Some(source(from)).filter(|file| file.exists()).into_iter().collect();
    };
    let Ok(entries) = fs::read_dir(source(directory)) else { return Vec::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let fitting = names.filter(|name| name.starts_with(head) && name.ends_with(tail));
    fitting.map(|name| source(directory).join(name)).collect()
}

fn every_listed_file_is_there() {
    for line in listed().iter().filter(|line| !line.from.starts_with("@built@") && !line.mode.ends_with('?'))
    {
        assert!(!taken(&line.from).is_empty(), "{} is not there", line.from);
    }
    assert!(taken("packaging/no-such.*").is_empty(), "a file that is not there must be seen");
}

/// S1-47: each part where those who run it expect it.
fn every_part_has_its_place() {
    let list = listed();
    for (to, from) in PLACES {
        assert!(list.iter().any(|line| line.to == to && line.from == from), "{from} is not in {to}");
    }
    let built: Vec<_> = list.iter().filter_map(|line| line.from.strip_prefix("@built@/")).collect();
    assert_eq!(built, [&PROGRAMS[..], &["THIRD-PARTY"]].concat(), "no other program, and each once");
    for (mode, from) in [("755", "@built@/fence_mark"), ("755", "ocf/nova-host-alerter")] {
        assert!(list.iter().any(|line| line.mode == mode && line.from == from), "{from} cannot be run");
    }
}

/// The unit starts, and the OCF agent names, what the list installs.
fn the_units_and_agents_name_what_is_installed() {
    let program = listed().into_iter().find(|line| line.from == "@built@/nova-host-alerter").unwrap().to;
    let program = format!("{program}nova-host-alerter");
    assert!(
        text("packaging/systemd/nova-host-alerter.service").contains(&format!("ExecStart={program} run"))
    );
    assert!(text("ocf/nova-host-alerter").contains(&format!("default_binary={program}\n")));
    assert!(text("ocf/nova-host-alerter").contains("default_config=/etc/nova-host-alerter/alerter.toml\n"));
    assert_eq!(OCF_AGENT, "/usr/lib/ocf/resource.d/openstack/nova-host-alerter");
}

/// Every file below these directories is taken by a line: what is added to them is not forgotten.
fn everything_to_read_is_installed() {
    let list = listed();
    let taken: Vec<PathBuf> = list.iter().flat_map(|line| taken(&line.from)).collect();
    let is_taken = |file: &Path| taken.iter().any(|from| file.starts_with(from));
    let read = ["man", "completions", "grafana", "prometheus", "schema", "examples", "apparmor", "selinux"];
    for directory in std::iter::once("docs".to_owned()).chain(read.map(|name| format!("packaging/{name}"))) {
        for file in files_below(&source(&directory)) {
            assert!(is_taken(&file), "{} is installed by no line of packaging/files", file.display());
        }
    }
    assert!(!is_taken(&source("packaging/new-directory/new.md")), "a file that no line takes must be seen");
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// rpm wants every file named once more: each place of the list is in the spec's.
fn the_rpm_takes_what_is_listed() {
    let spec = text("packaging/rpm/nova-host-alerter.spec");
    let missing = |spec: &str| -> Vec<String> {
        let files = spec.split_once("\n%files").unwrap().1.to_owned();
        let places =
            listed().into_iter().filter(|line| !line.mode.ends_with('?') && !line.to.starts_with("@docs@"));
        let places = places.filter(|line| !line.to.starts_with("/usr/share/nova-host-alerter/"));
        places.map(|line| in_spec(&line)).filter(|place| !files.contains(place.as_str())).collect()
    };
    assert_eq!(missing(&spec), Vec::<String>::new());
    let shorter = spec.replace("%{_sbindir}/fence_mark\n", "");
    assert_eq!(missing(&shorter), ["%{_sbindir}/fence_mark\n"], "a missing file must be seen");
}

/// The line of the spec for a file of the list.
fn in_spec(line: &Listed) -> String {
    let name = line.from.rsplit('/').next().unwrap();
    let place = format!("{}{name}", line.to);
    let macros = [
        ("@units@", "%{_unitdir}"),
        ("/usr/sbin", "%{_sbindir}"),
        ("/usr/share", "%{_datadir}"),
        ("/usr/lib/tmpfiles.d", "%{_tmpfilesdir}"),
        ("/usr/lib/sysusers.d", "%{_sysusersdir}"),
        ("/etc/nova-host-alerter", "%{_sysconfdir}/%{name}"),
    ];
    macros.iter().fold(place, |place, (path, name)| place.replace(path, name)) + "\n"
}

/// Passwords may stand in it, and the alerter refuses what others can write.
fn the_configuration_is_for_root_alone() {
    let line = listed().into_iter().find(|line| line.from == "packaging/alerter.toml").unwrap();
    assert_eq!(line.mode, "600");
    let spec = text("packaging/rpm/nova-host-alerter.spec");
    assert!(spec.contains("%config(noreplace) %attr(0600,root,root) %{_sysconfdir}/%{name}/alerter.toml"));
    // debhelper gives all files one mode, but for what is excepted.
    assert!(text("packaging/debian/rules").contains("dh_fixperms -X/etc/nova-host-alerter/alerter.toml"));
}

/// The script that both packages and `make install` run, on this tree.
fn what_is_installed_is_what_the_list_says() {
    let (room, programs) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    for program in PROGRAMS {
        fs::copy(built(program).unwrap(), programs.path().join(program)).unwrap();
    }
    fs::write(programs.path().join("THIRD-PARTY"), "").unwrap();
    let install = |built: &Path| {
        let mut script = Command::new(source("packaging/install.sh"));
        script.arg(built).env("DESTDIR", room.path()).output().unwrap()
    };
    let installed = install(programs.path());
    assert!(installed.status.success(), "{installed:?}");
    for (file, mode) in [
        ("usr/sbin/fence_mark", "755"),
        ("usr/share/pacemaker/alerts/alert_mark", "755"),
        (&OCF_AGENT[1..], "755"),
        ("etc/nova-host-alerter/alerter.toml", "600"),
        ("lib/systemd/system/nova-host-alerter.service", "644"),
        ("usr/share/doc/nova-host-alerter/docs/examples/exec-driver.sh", "755"),
        ("usr/share/doc/nova-host-alerter/docs/operate.md", "644"),
        ("usr/share/doc/nova-host-alerter/packaging/schema/host-failure.schema.json", "644"),
        ("usr/share/doc/nova-host-alerter/packaging/examples/pcs.sh", "644"),
    ] {
        assert_eq!(mode_of(&room.path().join(file)), mode, "{file}");
    }
    fs::remove_file(programs.path().join("fence_mark")).unwrap();
    assert!(!install(programs.path()).status.success(), "a program that was not built must be seen");
}

fn mode_of(file: &Path) -> String {
    use std::os::unix::fs::PermissionsExt as _;
    let meta = fs::metadata(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    format!("{:o}", meta.permissions().mode() & 0o7777)
}

/// Forbidden commands that a script runs; its messages may name them.
fn forbidden(script: &str) -> Vec<String> {
    let is_said =
        |line: &&str| line.trim_start().starts_with(['#']) || line.trim_start().starts_with("echo ");
    let lines = script.lines().filter(|line| !is_said(line));
    let is_separator = |letter: char| !letter.is_alphanumeric() && !['-', '_', '.', '/'].contains(&letter);
    let words = lines.flat_map(|line| line.split(is_separator));
    let names = words.map(|word| word.rsplit('/').next().unwrap_or(word));
    names.filter(|name| FORBIDDEN.contains(name)).map(str::to_owned).collect()
}

/// The scripts of the rpm, which stand between `%post` and `%files`.
fn rpm_scripts() -> String {
    let spec = text("packaging/rpm/nova-host-alerter.spec");
    let (_, behind) = spec.split_once("\n%post\n").unwrap();
    behind.split_once("\n%files").unwrap().0.replace("%preun\n", "")
}

/// S1-47: an unnoticeable upgrade: no package starts, stops, restarts or enables anything.
fn no_script_touches_what_runs() {
    let scripts = SCRIPTS.map(|name| text(&format!("packaging/debian/{name}")));
    for script in scripts.iter().chain(&[rpm_scripts()]) {
        assert_eq!(forbidden(script), Vec::<String>::new(), "{script}");
        let parsed = Command::new("sh").args(["-nc", script]).output().unwrap();
        assert!(parsed.status.success(), "{script}: {}", String::from_utf8_lossy(&parsed.stderr));
    }
    for careless in ["systemctl try-restart x", "[ -x /usr/sbin/pcs ]&&/usr/sbin/pcs resource restart x"] {
        assert!(!forbidden(careless).is_empty(), "{careless} must be seen");
    }
    let rules = text("packaging/debian/rules");
    assert!(rules.contains("dh_installsystemd --no-enable --no-start --no-stop-on-upgrade"), "{rules}");
}

/// Three files say what the directories are like; the unit's are made by systemd when it starts.
fn the_directories_are_those_of_the_unit() {
    let unit = text("packaging/systemd/nova-host-alerter.service");
    let tmpfiles = text("packaging/tmpfiles/nova-host-alerter.conf");
    let lines: Vec<Vec<&str>> = tmpfiles.lines().map(|line| line.split_whitespace().collect()).collect();
    for (key, directory) in [
        ("StateDirectoryMode", ["d", "/var/lib/nova-host-alerter"]),
        ("RuntimeDirectoryMode", ["d", "/run/nova-host-alerter"]),
    ] {
        let line = lines.iter().find(|line| line.starts_with(&directory)).unwrap();
        assert!(unit.contains(&format!("{key}={}\n", line[2])), "{directory:?} {key}");
    }
    assert!(tmpfiles.contains("/var/lib/nova-host-alerter/evidence  0700 hacluster haclient"), "{tmpfiles}");
    let sysusers = text("packaging/sysusers/nova-host-alerter.conf");
    assert!(sysusers.contains("g haclient ") && sysusers.contains("u hacluster -:haclient "), "{sysusers}");
}
