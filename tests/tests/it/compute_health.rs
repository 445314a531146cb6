//! The agent for compute hosts with disks that hang, links without carrier and other hosts that say what a test wants. No cluster is
//! needed: Pacemaker's two programs are a small one here, built by the C compiler so that it is held in memory as they are.

use std::fs;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::Pid;
use tempfile::TempDir;
use tests::installed::{self, source};
use tests::lab::wait;
use tests::programs::built;
use tests::trials::Group;

/// Its tests, and why they cannot run here, if they cannot.
pub(crate) fn group() -> Group {
    let tests = tests::trials![
        ocf_tester_is_content_with_it,
        a_host_that_fails_alone_may_be_fenced,
        a_disk_that_hangs_is_looked_at_once,
        it_answers_while_the_root_disk_reads_nothing,
        a_slow_disk_and_a_link_that_flaps_are_well,
        a_checker_that_is_gone_is_no_reason_to_fence,
    ];
    let needs = ["cc", "ocf-tester", "xmllint", "fsfreeze", "mkfs.ext4", "findmnt", "ip"];
    let groups = Path::new("/sys/fs/cgroup/blkio").exists();
    let none = || (!groups).then(|| "there are no control groups of blkio, which slow a disk".to_owned());
    Group { cannot: installed::lacks_root().or_else(|| installed::cannot(&needs)).or_else(none), tests }
}

/// What all say is in files: `word` is this host's, `others` are lines of the other hosts, `history` is the fencer's.
const TOOL: &str = r#"#include <stdio.h>
#include <string.h>
static int show(const char *path) {
    FILE *file = fopen(path, "r"); int c;
    while (file && (c = getc(file)) != EOF) putchar(c);
    return !file;
}
int main(int count, char **words) {
    if (!strcmp(words[1], "--history")) return show(ROOM "/history");
    if (!strcmp(words[3], "-Q")) return show(ROOM "/word") || show(ROOM "/others");
    FILE *file = fopen(ROOM "/word", "w");
    if (!strcmp(words[3], "-U")) fprintf(file, "name=\"host-health\" host=\"compute1\" value=\"%s\"\n", words[4]);
    return fclose(file);
}
"#;
const WELL: &str = "name=\"host-health\" host=\"compute2\" value=\"ok\"\n";
const LIMIT: Duration = Duration::from_secs(60);
const DEGRADED: i32 = 190;

/// A host with the agent and a disk.
struct Host {
    /// Seen by the programs that are held too.
    room: TempDir,
    /// Where its disk is mounted; `disk` in the room leads there.
    disk: TempDir,
    parameters: Vec<(String, String)>,
    /// Where the agent and its tools are.
    bin: PathBuf,
    /// A control group whose processes wait for the disk.
    group: PathBuf,
}

impl Host {
    fn new(parameters: &[(&str, &str)]) -> Self {
        let room = tempfile::Builder::new().prefix("compute-health-").tempdir_in("/dev/shm").unwrap();
        let all = [("interval", "1"), ("directories_for", "3"), ("links_for", "3"), ("reaction", "fence")];
        let all = all.iter().chain(parameters).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let disk = TempDir::new().unwrap();
        let name = room.path().file_name().unwrap().to_str().unwrap().to_owned();
        let host = Self {
            bin: disk.path().join("bin"),
            disk,
            group: Path::new("/sys/fs/cgroup/blkio").join(name),
            parameters: all.collect(),
            room,
        };
        symlink(host.disk.path(), host.path("disk")).unwrap();
        host.run("truncate --size 16M image; mkfs.ext4 -q image; mount -o loop image disk; mkdir disk/bin disk/dir");
        fs::copy(built("compute-health").unwrap(), host.bin.join("compute-health")).unwrap();
        fs::write(host.path("tool.c"), TOOL).unwrap();
        host.run("cc -DROOM=\"\\\"$PWD\\\"\" -o disk/bin/attrd_updater tool.c; cp disk/bin/attrd_updater disk/bin/stonith_admin; sync");
        host.write("others", WELL);
        host.write("history", "<status code=\"0\" message=\"OK\"/>");
        host
    }

    fn started(parameters: &[(&str, &str)]) -> Self {
        let host = Self::new(parameters);
        assert_eq!(host.call("start"), (0, String::new()));
        host.until(0, "");
        wait::until("its first word", LIMIT, || Ok(host.path("word").exists().then_some(()))).unwrap();
        host
    }

    fn path(&self, name: &str) -> PathBuf {
        self.room.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn run(&self, script: &str) {
        let done = Command::new("sh").args(["-ec", script]).current_dir(self.room.path()).status().unwrap();
        assert!(done.success(), "{script}");
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", self.bin.display());
        let directory = self.disk.path().join("dir");
        command.env("PATH", path).env("OCF_RESOURCE_INSTANCE", self.room.path().file_name().unwrap());
        command.env("OCF_RESKEY_directories", directory).env("OCF_RESKEY_CRM_meta_on_node", "compute1");
        command.envs(self.parameters.iter().map(|(name, value)| (format!("OCF_RESKEY_{name}"), value)));
        command.env("HA_RSCTMP", self.room.path());
        command
    }

    /// Calls the agent, from the control group where there is one. One that waits for a disk would be ended, with 124.
    fn call(&self, action: &str) -> (i32, String) {
        let enter = "[ ! -d $0 ] || echo $$ >$0/cgroup.procs; exec timeout 20 \"$@\"";
        let mut command = self.command("sh");
        command.args(["-c", enter]).arg(&self.group).arg(self.bin.join("compute-health")).arg(action);
        let said = command.stdin(Stdio::null()).output().unwrap();
        (said.status.code().unwrap(), String::from_utf8(said.stderr).unwrap())
    }

    /// Until its monitor ends so.
    #[track_caller]
    fn until(&self, code: i32, text: &str) {
        let mut said = (0, String::new());
        let seen = wait::until("what it says", LIMIT, || {
            said = self.call("monitor");
            Ok((said.0 == code && said.1.contains(text)).then_some(()))
        });
        seen.unwrap_or_else(|error| panic!("{said:?}: {error:#}"));
    }

    fn address(&self) -> SocketAddr {
        let instance = self.room.path().file_name().unwrap().to_str().unwrap();
        SocketAddr::from_abstract_name(format!("compute-health/{instance}")).unwrap()
    }

    /// The checker, and how many children it has.
    fn checker(&self) -> (Pid, usize) {
        let stream = UnixStream::connect_addr(&self.address()).unwrap();
        let pid = getsockopt(&stream, PeerCredentials).unwrap().pid();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        (Pid::from_raw(pid), children.split_whitespace().count())
    }

    /// From now on what the agent starts waits for the disk, as this says.
    fn throttle(&self, what: &str, to: &str) {
        let file = self.group.join(format!("blkio.throttle.{what}"));
        fs::create_dir_all(&self.group).unwrap();
        self.run(&format!("echo $(findmnt -no MAJ:MIN $(readlink disk)) {to} >{}", file.display()));
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let script = "fsfreeze --unfreeze disk 2>/dev/null; for file in $0/blkio.throttle.*_device; do
            echo $(findmnt -no MAJ:MIN $(readlink disk)) 0 >$file; done 2>/dev/null; :";
        let _where_it_was_throttled =
            Command::new("sh").args(["-c", script]).arg(&self.group).current_dir(self.room.path()).status();
        let _it_may_not_run = self.call("stop");
        let _ = Command::new("umount").arg("--lazy").arg(self.disk.path()).status();
        let _ = fs::remove_dir(&self.group);
    }
}

/// S1-32: as the other agent's.
fn ocf_tester_is_content_with_it() {
    let host = Host::new(&[]);
    let judge = |directory: &str| {
        let mut command = host.command("ocf-tester");
        let given = format!("directories={directory}");
        command.args(["-n", "health", "-o", &given]).arg(host.bin.join("compute-health")).output().unwrap()
    };
    let good = judge("/tmp");
    assert!(good.status.success(), "{}", String::from_utf8_lossy(&good.stdout));
    assert!(!judge("no-path").status.success());
    let strict = source("tests/data/ocf-1.1-strict.rng");
    host.run(&format!(
        "disk/bin/compute-health meta-data | xmllint --noout --nowarning --relaxng {} -",
        strict.display()
    ));
}

/// A common cause, a second host within an hour, and what cannot be known fence nobody. S1-46
fn a_host_that_fails_alone_may_be_fenced() {
    let host = Host::started(&[]);
    host.write("others", &WELL.replace("ok", "directory /var/lib/nova/instances"));
    host.run("mount -o remount,ro disk");
    host.until(DEGRADED, "2 of 2 hosts fail the same check: a common cause; none is fenced");
    fs::remove_file(host.path("others")).unwrap();
    host.until(DEGRADED, "what the other hosts say is not known");
    host.write("others", WELL);
    host.until(1, "Read-only file system");
    let event = "<fence_event action=\"off\" target=\"compute3\" status=\"pending\"/>";
    host.write("history", &format!("{event}<status code=\"0\"/>"));
    host.until(DEGRADED, "1 of 2 hosts fenced within an hour");
    host.run("mount -o remount,rw disk");
    host.until(0, "");
    // Fenced and back, it fails from the beginning: nothing new.
    host.write("history", "<status code=\"0\"/>");
    host.run("mount -o remount,ro disk");
    host.until(1, "Read-only");
    assert_eq!((host.call("stop").0, host.call("monitor").0, host.call("start").0), (0, 7, 0));
    host.until(DEGRADED, "it did when the checker began; none is fenced");
}

/// The broken variant looks again at each interval: each look would stay in the kernel.
fn a_disk_that_hangs_is_looked_at_once() {
    let host = Host::started(&[]);
    host.run("fsfreeze --freeze disk");
    host.until(1, "has not answered for");
    assert_eq!(host.checker().1, 1);
    host.run("fsfreeze --unfreeze disk");
    host.until(0, "");
}

/// The agent and its tools lie on that disk, and nothing of it is in the cache that memory does not hold: it is counted all the same.
fn it_answers_while_the_root_disk_reads_nothing() {
    let host = Host::started(&[]);
    host.throttle("read_bps_device", "1");
    fs::write(host.group.join("cgroup.procs"), host.checker().0.to_string()).unwrap();
    host.run("sync; echo 3 >/proc/sys/vm/drop_caches");
    host.until(1, "has not answered");
}

/// A flush takes seconds; and a link is away for less than its time.
fn a_slow_disk_and_a_link_that_flaps_are_well() {
    let host = Host::new(&[("directories_for", "20"), ("links", "nha-flaps"), ("links_for", "20")]);
    let _of_a_run_before =
        Command::new("ip").args(["link", "delete", "nha-flaps"]).stderr(Stdio::null()).status();
    host.run("ip link add nha-flaps type veth peer name nha-flaps-peer; ip link set nha-flaps up; ip link set nha-flaps-peer up");
    host.throttle("write_iops_device", "1");
    assert_eq!(host.call("start").0, 0);
    let written =
        || fs::metadata(host.path("disk/dir/.compute-health.compute1")).and_then(|file| file.modified()).ok();
    for state in ["up", "down", "up"] {
        host.run(&format!("ip link set nha-flaps-peer {state}"));
        let last = written();
        wait::until("a slow flush", LIMIT, || Ok((written() > last).then_some(()))).unwrap();
        assert_eq!(host.call("monitor").0, 0);
    }
    host.run("ip link delete nha-flaps");
    host.until(1, "nha-flaps has failed");
}

/// Killed, stopped, or with its name taken: shown, and no reason to fence. S1-46
fn a_checker_that_is_gone_is_no_reason_to_fence() {
    let host = Host::started(&[]);
    for signal in [Signal::SIGKILL, Signal::SIGSTOP] {
        kill(host.checker().0, signal).unwrap();
        host.until(DEGRADED, "was started again");
        host.until(0, "");
    }
    kill(host.checker().0, Signal::SIGKILL).unwrap();
    let taken = wait::until("the name", LIMIT, || Ok(UnixListener::bind_addr(&host.address()).ok()));
    host.until(DEGRADED, "the checker's socket is taken by process");
    assert_eq!(host.call("start").0, 1);
    drop(taken);
    host.until(0, "");
}
