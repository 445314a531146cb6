//! The OCF agent with the real daemon: all actions of Pacemaker, with and without faults.

mod waits;

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rusqlite::Connection;
use tempfile::TempDir;
use tests::installed::{self, Installed, OCF_AGENT};
use tests::programs;
use tests::trials::Group;

const TOOLS: [&str; 5] = ["ocf-tester", "xmllint", "setsid", "setpriv", "pcs"];

/// Its tests, and why they cannot run here, if they cannot.
pub(crate) fn group() -> Group {
    let tests = tests::trials![
        ocf_tester_is_content,
        metadata_fits_every_schema,
        metadata_needs_nothing,
        a_life_from_start_to_stop,
        a_start_with_a_typo_gives_one_reason,
        a_start_waits_for_a_configuration_that_is_being_replaced,
        a_daemon_that_cannot_start_fails_the_start_at_once,
        a_start_that_fails_by_the_journal_says_so,
        a_survivor_is_adopted,
        a_dead_endpoint_is_no_matter_for_monitor,
        a_typo_does_not_stop_what_runs,
        a_reload_keeps_the_process_and_never_fails_for_a_typo,
        a_frozen_daemon_is_broken_and_killed,
        stop_needs_neither_program_nor_configuration,
        stop_finds_the_daemon_when_nothing_else_is_left,
        a_process_that_only_resembles_the_daemon_is_left_alone,
        a_reused_pid_is_left_alone,
        a_probe_finds_nothing_where_nothing_is,
        validation_asks_the_host_only_with_its_option,
        unsupported_actions_say_so,
        the_daemon_has_not_what_the_unit_takes_away,
    ];
    let tests = tests.into_iter().chain(waits::tests()).collect();
    Group { cannot: installed::cannot(&TOOLS), tests }
}

const SUCCESS: i32 = 0;
const GENERIC: i32 = 1;
const ARGS: i32 = 2;
const UNIMPLEMENTED: i32 = 3;
const INSTALLED: i32 = 5;
const NOT_RUNNING: i32 = 7;
const DEGRADED: i32 = 190;
/// `timeout -s KILL` ends itself too.
const KILLED: i32 = 137;

/// One resource: a configuration, a journal and a run directory of its own.
struct Resource {
    room: TempDir,
    binary: PathBuf,
    /// The cluster's timeout in milliseconds.
    timeout: u32,
    endpoint: Option<TcpListener>,
}

/// What an action said.
#[derive(Debug)]
struct Said {
    code: i32,
    reasons: Vec<String>,
}

impl Resource {
    /// A valid configuration with one route, to an endpoint that accepts connections and never answers.
    fn new() -> Self {
        let room = TempDir::new().unwrap();
        let endpoint = TcpListener::bind("127.0.0.1:0").unwrap();
        let resource = Self {
            binary: programs::built("nova-host-alerter").unwrap(),
            timeout: 20_000,
            endpoint: Some(endpoint),
            room,
        };
        let url = format!("http://{}/", resource.endpoint.as_ref().unwrap().local_addr().unwrap());
        fs::create_dir(resource.path("journal")).unwrap();
        fs::set_permissions(resource.path("journal"), fs::Permissions::from_mode(0o711)).unwrap();
        resource.configure(&format!(
            "[store]\npath = \"{}\"\nregister = \"none\"\n[hosts]\ndomain = \"example.org\"\non-shared-storage = true\n[http.recovery]\nurl = \"{url}\"\n",
            resource.path("journal/marks.db").display()
        ));
        resource
    }

    fn path(&self, name: &str) -> PathBuf {
        self.room.path().join(name)
    }

    fn config(&self) -> PathBuf {
        self.path("alerter.toml")
    }

    fn configure(&self, text: &str) {
        fs::write(self.config(), text).unwrap();
    }

    fn append(&self, text: &str) {
        self.configure(&(fs::read_to_string(self.config()).unwrap() + text));
    }

    /// The agent's environment, as the cluster sets it.
    fn dress<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env("OCF_ROOT", "/usr/lib/ocf")
            .env("OCF_RESOURCE_INSTANCE", "alerter")
            .env("OCF_RESKEY_config", self.config())
            .env("OCF_RESKEY_binary", &self.binary)
            .env("OCF_RESKEY_CRM_meta_timeout", self.timeout.to_string())
            .env("HA_RSCTMP", self.path("run"))
            .stdin(Stdio::null())
    }

    fn call(&self, action: &str) -> Said {
        self.call_of(&installed::source("ocf/nova-host-alerter"), action)
    }

    fn call_of(&self, agent: &Path, action: &str) -> Said {
        said(&self.dress(Command::new("sh").arg(agent).arg(action)).output().unwrap())
    }

    #[track_caller]
    fn expect(&self, action: &str, code: i32) -> Said {
        let said = self.call(action);
        assert_eq!(said.code, code, "{action}: {said:?}");
        said
    }

    /// The process that the agent has recorded.
    fn recorded(&self) -> Pid {
        let text = fs::read_to_string(self.record()).unwrap();
        Pid::from_raw(text.split(' ').next().unwrap().parse().unwrap())
    }

    fn record(&self) -> PathBuf {
        self.path("run/nova-host-alerter-alerter.pid")
    }
}

impl Drop for Resource {
    fn drop(&mut self) {
        self.timeout = 3_000;
        self.call("stop");
    }
}

fn said(output: &Output) -> Said {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let reasons = text.lines().filter_map(|line| line.strip_prefix("ocf-exit-reason:"));
    Said { code: output.status.code().unwrap_or(KILLED), reasons: reasons.map(str::to_owned).collect() }
}

fn lives(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

fn agent_text() -> String {
    fs::read_to_string(installed::source("ocf/nova-host-alerter")).unwrap()
}

/// S1-32: an OCF agent that the tester of the resource agents' project accepts; altered ones are refused.
fn ocf_tester_is_content() {
    let resource = Resource::new();
    let judge = |installed: &Installed| {
        let mut command = installed.command("ocf-tester");
        command.args(["-n", "alerter", "-o"]).arg(format!("config={}", resource.config().display()));
        command.arg("-o").arg(format!("binary={}", resource.binary.display())).arg(OCF_AGENT);
        command.env("HA_RSCTMP", resource.path("run")).output().unwrap()
    };
    let installed = Installed::new().unwrap();
    let good = judge(&installed);
    assert!(good.status.success(), "{}", String::from_utf8_lossy(&good.stdout));

    for (sound, broken) in [
        (r#"exit "$OCF_ERR_UNIMPLEMENTED""#, "exit 1"),
        ("<!ATTLIST parameter unique-group CDATA #IMPLIED>", ""),
        (r#"any_alive "$(daemons)" || return "$OCF_NOT_RUNNING""#, r#"any_alive "$(daemons)" || return 0"#),
    ] {
        let text = agent_text();
        assert!(text.contains(sound));
        installed.replace_ocf_agent(&text.replace(sound, broken)).unwrap();
        assert!(!judge(&installed).status.success(), "the tester must see {broken:?}");
    }
}

/// S1-32: one description that the old DTD, pcs and the strict reading of OCF 1.1 all take.
fn metadata_fits_every_schema() {
    let metadata = |agent: &Path| Command::new("sh").arg(agent).arg("meta-data").output().unwrap().stdout;
    let room = TempDir::new().unwrap();
    let altered = room.path().join("agent");
    fs::write(
        &altered,
        agent_text().replace("<version>1.1</version>", "<vers/>").replace("#IMPLIED", "\"x\" \"y\""),
    )
    .unwrap();
    let strict = installed::source("tests/data/ocf-1.1-strict.rng");
    let checks: [&[&str]; 3] = [
        &["--valid"],
        &["--nowarning", "--relaxng", "/usr/share/pcs/data/ocf-1.1.rng"],
        &["--nowarning", "--relaxng", strict.to_str().unwrap()],
    ];
    for check in checks {
        let valid = |agent: &Path| {
            let document = room.path().join("metadata.xml");
            fs::write(&document, metadata(agent)).unwrap();
            let mut lint = Command::new("xmllint");
            lint.arg("--noout").args(check).arg("-").stdin(fs::File::open(&document).unwrap());
            lint.current_dir("/usr/share/resource-agents").output().unwrap()
        };
        let good = valid(&installed::source("ocf/nova-host-alerter"));
        assert!(good.status.success(), "{check:?}: {}", String::from_utf8_lossy(&good.stderr));
        assert!(!valid(&altered).status.success(), "{check:?} must see a broken description");
    }
}

/// Descriptions are asked for on any machine, by anybody.
fn metadata_needs_nothing() {
    let installed = Installed::new().unwrap();
    let mut command = installed.command("su");
    command.args(["nobody", "-s", "/bin/sh", "-c"]).arg(format!("env -i {OCF_AGENT} meta-data"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains(r#"<resource-agent name="nova-host-alerter""#));
}

/// S1-32: start, monitor, stop, and nothing is left.
fn a_life_from_start_to_stop() {
    let resource = Resource::new();
    resource.expect("monitor", NOT_RUNNING);
    resource.expect("start", SUCCESS);
    let pid = resource.recorded();
    resource.expect("monitor", SUCCESS);
    // A session of its own: the cluster kills the process group of an action that takes too long.
    assert_eq!(nix::unistd::getsid(Some(pid)).unwrap(), pid);
    resource.expect("stop", SUCCESS);
    assert!(!lives(pid));
    resource.expect("monitor", NOT_RUNNING);
    for left in
        [resource.record(), resource.path("journal/marks.db.lock"), resource.path("journal/control.sock")]
    {
        assert!(!left.exists(), "{} is left behind", left.display());
    }
    resource.expect("stop", SUCCESS);
}

/// Bits of `linux/capability.h`.
const CHOWN: u64 = 1;
const SYS_MODULE: u64 = 1 << 16;
const SYS_PTRACE: u64 = 1 << 19;
const SYS_ADMIN: u64 = 1 << 21;
const TAKEN: u64 = SYS_MODULE | SYS_PTRACE | SYS_ADMIN;

/// What a process and those that it starts can ever have.
fn bounding_set(pid: Pid) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let set = status.lines().find_map(|line| line.strip_prefix("CapBnd:")).unwrap();
    u64::from_str_radix(set.trim(), 16).unwrap()
}

/// The words behind each `name=`, or `name=~`, as a set of capabilities.
fn capabilities(text: &str, name: &str) -> BTreeSet<String> {
    let values = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let words = values.flat_map(|value| value.split([',', ' ', '~']));
    let words = words.map(|word| word.trim_start_matches('-').trim_start_matches("CAP_").to_lowercase());
    words.filter(|word| !word.is_empty() && !word.starts_with('$')).collect()
}

/// Under Pacemaker as under systemd: the same list, and it is really gone. The broken variant starts the daemon as it comes.
fn the_daemon_has_not_what_the_unit_takes_away() {
    let unit = fs::read_to_string(installed::source("packaging/systemd/nova-host-alerter.service")).unwrap();
    let taken = capabilities(&unit, "CapabilityBoundingSet");
    assert!(taken.contains("sys_admin"), "{taken:?}");
    assert_eq!(capabilities(&agent_text(), "surrendered"), taken);

    let resource = Resource::new();
    resource.expect("start", SUCCESS);
    let has = bounding_set(resource.recorded());
    assert_eq!((has & TAKEN, has & CHOWN), (0, CHOWN), "{has:x}");
    resource.expect("stop", SUCCESS);

    let broken = resource.path("agent");
    let text = agent_text();
    let (before, behind) = text.split_once("        set -- setpriv").unwrap();
    let (_, behind) = behind.split_once('\n').unwrap();
    fs::write(&broken, format!("{before}        :\n{behind}")).unwrap();
    let said = resource.call_of(&broken, "start");
    assert_eq!(said.code, SUCCESS, "{said:?}");
    // All that this machine's root has.
    let own = bounding_set(Pid::this()) & TAKEN;
    assert_ne!(own, 0);
    assert_eq!(bounding_set(resource.recorded()) & TAKEN, own, "the broken variant is seen");
}

/// One sentence that names the place, no daemon, and a code that sends the alerter to another controller.
fn a_start_with_a_typo_gives_one_reason() {
    let resource = Resource::new();
    resource.append("tiemout = 3\n");
    let said = resource.expect("start", ARGS);
    assert_eq!(said.reasons.len(), 1, "{said:?}");
    let place = format!("{}:9:1:", resource.config().display());
    assert!(said.reasons[0].starts_with(&place) && said.reasons[0].contains("tiemout"), "{said:?}");
    resource.expect("monitor", NOT_RUNNING);
}

/// Configuration management removes the old file, or writes the new one, at this moment: whoever waits meets the whole one. Pacemaker
/// takes "not installed" and "invalid" for final on this node.
fn a_start_waits_for_a_configuration_that_is_being_replaced() {
    for half in [None, Some("[store]\npath = ")] {
        let resource = Resource::new();
        let (config, away) = (resource.config(), resource.path("away"));
        fs::rename(&config, &away).unwrap();
        if let Some(half) = half {
            resource.configure(half);
        }
        let bin = resource.path("bin");
        fs::create_dir(&bin).unwrap();
        let (new, old) = (away.display(), config.display());
        let sleep = format!("#!/bin/sh\n[ ! -e {new} ] || mv {new} {old}\nexec /bin/sleep \"$@\"\n");
        samples::program(&bin.join("sleep"), sleep);
        let mut command = Command::new("sh");
        let command = resource.dress(command.arg(installed::source("ocf/nova-host-alerter")).arg("start"));
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let said = said(&command.env("PATH", path).output().unwrap());
        assert_eq!((said.code, said.reasons.len()), (SUCCESS, 0), "{half:?}: {said:?}");
    }
}

/// The agent does not wait for the cluster's timeout when there is nothing left to wait for.
fn a_daemon_that_cannot_start_fails_the_start_at_once() {
    let mut resource = Resource::new();
    // Anybody could write the journal: the daemon refuses it.
    fs::set_permissions(resource.path("journal"), fs::Permissions::from_mode(0o777)).unwrap();
    resource.timeout = 3_600_000;
    let said = resource.expect("start", GENERIC);
    assert_eq!(said.reasons.len(), 1, "{said:?}");
    assert!(said.reasons[0].contains("others than its owner can change"), "{said:?}");
    assert!(!resource.record().exists());
}

/// After a downgrade `crm_mon` shows what to do. The broken variant ends for a reason of which the journal knows nothing.
fn a_start_that_fails_by_the_journal_says_so() {
    let mut resource = Resource::new();
    resource.expect("start", SUCCESS);
    resource.expect("stop", SUCCESS);
    let journal = Connection::open(resource.path("journal/marks.db")).unwrap();
    journal.execute_batch("PRAGMA user_version = 2").unwrap();
    let said = resource.expect("start", GENERIC);
    assert!(said.reasons[0].contains("but this release supports only 1: install the newer"), "{said:?}");
    journal.execute_batch("PRAGMA user_version = 1").unwrap();
    let program =
        format!("#!/bin/sh\n[ \"$1\" != run ] || exit 3\nexec {} \"$@\"\n", resource.binary.display());
    resource.binary = resource.path("ends");
    samples::program(&resource.binary, program);
    let said = resource.expect("start", GENERIC);
    assert!(said.reasons[0].contains("ended with code 3; see the system log, or: "), "{said:?}");
}

/// A daemon that outlived the cluster's daemons, and even the record of its pid, is taken over.
fn a_survivor_is_adopted() {
    let resource = Resource::new();
    resource.expect("start", SUCCESS);
    let pid = resource.recorded();
    fs::remove_file(resource.record()).unwrap();
    resource.expect("monitor", SUCCESS);
    resource.expect("start", SUCCESS);
    assert_eq!(resource.recorded(), pid);
    fs::remove_file(resource.record()).unwrap();
    resource.expect("stop", SUCCESS);
    assert!(!lives(pid), "stop finds it by the journal's lock");
}

/// S1-51: monitor neither asks nor waits for the endpoint, while a delivery hangs in it.
fn a_dead_endpoint_is_no_matter_for_monitor() {
    let mut resource = Resource::new();
    resource.expect("start", SUCCESS);
    mark(&resource);
    let endpoint = resource.endpoint.take().unwrap();
    let (_delivery, _) = endpoint.accept().unwrap();
    // The connection is never answered. A caller that waits for it does not come back before the cluster's patience ends.
    resource.expect("monitor", SUCCESS);
    endpoint.set_nonblocking(true).unwrap();
    assert!(endpoint.accept().is_err(), "monitor knocked at the endpoint");
}

/// Makes a mark as the fence agent does.
fn mark(resource: &Resource) {
    let mut agent = Command::new(programs::built("fence_mark").unwrap());
    let mut agent = agent.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let input = format!(
        "action=off\nnodename=compute1\nstore={}\ncreate_store=1\n",
        resource.path("journal/marks.db").display()
    );
    std::io::Write::write_all(&mut agent.stdin.take().unwrap(), input.as_bytes()).unwrap();
    assert!(agent.wait().unwrap().success());
}

/// An operator's typo, of any kind, must not end the sending: a restart would fail.
fn a_typo_does_not_stop_what_runs() {
    let resource = Resource::new();
    resource.expect("start", SUCCESS);
    let (pid, sound) = (resource.recorded(), fs::read_to_string(resource.config()).unwrap());
    for broken in [sound.replace("url", "ulr"), format!("[[[{sound}"), sound.replace("path", "paht")] {
        resource.configure(&broken);
        let said = resource.call("monitor");
        assert!([SUCCESS, DEGRADED].contains(&said.code), "{said:?}");
    }
    fs::remove_file(resource.config()).unwrap();
    let said = resource.expect("monitor", DEGRADED);
    assert!(said.reasons[0].contains("is not here"), "{said:?}");
    resource.expect("start", SUCCESS);
    assert_eq!(resource.recorded(), pid);
    resource.configure(&sound);
    resource.expect("monitor", SUCCESS);
}

/// What Pacemaker asks when a parameter that says so has changed. The process stays; an invalid file is a degraded state and
/// no failure, since Pacemaker would stop and start what fails. The broken variant is the journal: that needs the restart.
fn a_reload_keeps_the_process_and_never_fails_for_a_typo() {
    let resource = Resource::new();
    resource.expect("reload-agent", NOT_RUNNING);
    resource.expect("start", SUCCESS);
    let (pid, sound) = (resource.recorded(), fs::read_to_string(resource.config()).unwrap());
    resource.append("[log]\nlevel = \"debug\"\n");
    resource.expect("reload-agent", SUCCESS);
    resource.expect("monitor", SUCCESS);
    resource.configure(&sound.replace("url", "ulr"));
    let said = resource.expect("reload-agent", SUCCESS);
    assert!(said.reasons[0].contains("alerter.toml:") && said.reasons[0].contains("url"), "{said:?}");
    let said = resource.expect("monitor", DEGRADED);
    assert!(said.reasons[0].contains("stays in force"), "{said:?}");
    resource.configure(&sound);
    resource.expect("reload-agent", SUCCESS);
    resource.expect("monitor", SUCCESS);
    resource.configure(&sound.replace("marks.db", "other.db"));
    let said = resource.expect("reload-agent", SUCCESS);
    assert!(said.reasons[0].contains("restart the resource"), "{said:?}");
    // Whose control socket is elsewhere cannot be asked at all.
    resource.configure(&sound.replace("journal/marks.db", "elsewhere/marks.db"));
    resource.expect("reload-agent", GENERIC);
    resource.configure(&sound);
    assert_eq!(resource.recorded(), pid);
    assert!(lives(pid));
}

/// TERM does nothing to a frozen process: KILL follows within the cluster's timeout, and stop still succeeds.
fn a_frozen_daemon_is_broken_and_killed() {
    let mut resource = Resource::new();
    resource.expect("start", SUCCESS);
    let pid = resource.recorded();
    kill(pid, Signal::SIGSTOP).unwrap();
    let said = resource.expect("monitor", GENERIC);
    assert_eq!(said.reasons.len(), 1, "{said:?}");
    resource.timeout = 6_000;
    resource.expect("stop", SUCCESS);
    assert!(!lives(pid));
    resource.expect("start", SUCCESS);
}

/// A failed stop gets the controller fenced, so a removed package must not fail it.
fn stop_needs_neither_program_nor_configuration() {
    let mut resource = Resource::new();
    resource.expect("start", SUCCESS);
    let pid = resource.recorded();
    resource.binary = resource.path("gone");
    fs::remove_file(resource.config()).unwrap();
    resource.expect("monitor", DEGRADED);
    resource.expect("stop", SUCCESS);
    assert!(!lives(pid));
    fs::remove_dir_all(resource.path("run")).unwrap();
    fs::remove_dir_all(resource.path("journal")).unwrap();
    resource.expect("stop", SUCCESS);
    resource.expect("monitor", NOT_RUNNING);
}

/// The record is gone, and the configuration is another one, wrong, or gone: the process itself says what it is.
fn stop_finds_the_daemon_when_nothing_else_is_left() {
    let resource = Resource::new();
    let sound = fs::read_to_string(resource.config()).unwrap();
    for now in [Some(sound.replace("marks.db", "other.db")), Some("[[[".to_owned()), None] {
        resource.configure(&sound);
        resource.expect("start", SUCCESS);
        let pid = resource.recorded();
        fs::remove_file(resource.record()).unwrap();
        match &now {
            Some(text) => resource.configure(text),
            None => fs::remove_file(resource.config()).unwrap(),
        }
        let said = resource.call("monitor");
        resource.expect("stop", SUCCESS);
        assert!(!lives(pid), "{now:?}");
        assert!([GENERIC, DEGRADED].contains(&said.code), "{now:?}: {said:?}");
    }
}

/// The same words, and another program; the same program, and another configuration.
fn a_process_that_only_resembles_the_daemon_is_left_alone() {
    let resource = Resource::new();
    let mut impostor = Command::new("sh");
    impostor.args(["-c", "read -r line", "run", "--config"]).arg(resource.config()).stdin(Stdio::piped());
    let impostor = Stranger(impostor.spawn().unwrap());
    let other = Resource::new();
    other.expect("start", SUCCESS);
    resource.expect("monitor", NOT_RUNNING);
    resource.expect("stop", SUCCESS);
    assert!(lives(impostor.pid()) && lives(other.recorded()));
}

/// A process that only has the pid of a former daemon is left alone; with the right start time it would be stopped.
fn a_reused_pid_is_left_alone() {
    let resource = Resource::new();
    fs::create_dir_all(resource.path("run")).unwrap();
    let mut other = Stranger::new();
    for since in ["1", "", "x", "-5"] {
        fs::write(resource.record(), format!("{} {since}\n", other.pid())).unwrap();
        resource.expect("monitor", NOT_RUNNING);
        resource.expect("stop", SUCCESS);
        assert!(lives(other.pid()), "killed with the start time {since:?}");
    }
    fs::write(resource.record(), format!("{} {}\n", other.pid(), other.start_time())).unwrap();
    resource.expect("stop", SUCCESS);
    assert!(!lives(other.pid()), "the record must be what decides");
    other.0.wait().unwrap();
}

/// A process that has nothing to do with us, under a name that is made to mislead.
struct Stranger(Child);

impl Stranger {
    fn new() -> Self {
        let mut python = Command::new("sh");
        python.args(["-c", "echo ') S 1 1' > /proc/self/comm; echo; read -r line"]);
        let mut child = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let named = std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]);
        named.unwrap();
        Self(child)
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.0.id().try_into().unwrap())
    }

    fn start_time(&self) -> String {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        stat.rsplit_once(") ").unwrap().1.split(' ').nth(19).unwrap().to_owned()
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _already_gone = self.0.kill();
        let _already_waited = self.0.wait();
    }
}

/// The cluster probes every controller first, also where nothing is installed yet.
fn a_probe_finds_nothing_where_nothing_is() {
    let mut resource = Resource::new();
    let mut command = Command::new(installed::source("ocf/nova-host-alerter"));
    let every_program_is_missing =
        resource.dress(command.arg("monitor")).env("OCF_TESTER_FAIL_HAVE_BINARY", "1");
    assert_eq!(said(&every_program_is_missing.output().unwrap()).code, NOT_RUNNING);
    fs::remove_file(resource.config()).unwrap();
    resource.expect("monitor", NOT_RUNNING);
    resource.binary = resource.path("gone");
    resource.expect("monitor", NOT_RUNNING);
    let said = resource.expect("start", INSTALLED);
    assert_eq!(said.reasons.len(), 1, "{said:?}");
}

/// Level 0 may be asked on any machine; level 10 is about this host. Neither ever stops the alerter everywhere (code 6).
fn validation_asks_the_host_only_with_its_option() {
    let mut resource = Resource::new();
    resource.expect("validate-all", SUCCESS);
    resource.append("tiemout = 3\n");
    resource.expect("validate-all", ARGS);
    fs::remove_file(resource.config()).unwrap();
    resource.expect("validate-all", SUCCESS);
    let mut command = Command::new(installed::source("ocf/nova-host-alerter"));
    let thorough = resource.dress(command.arg("validate-all")).env("OCF_CHECK_LEVEL", "10").output().unwrap();
    assert_eq!(said(&thorough).code, INSTALLED);
    resource.binary = "nova-host-alerter".into();
    resource.expect("validate-all", ARGS);
}

fn unsupported_actions_say_so() {
    let resource = Resource::new();
    for action in
        ["notify", "promote", "demote", "migrate_to", "migrate_from", "reload", "no-such-action", ""]
    {
        resource.expect(action, UNIMPLEMENTED);
    }
}
