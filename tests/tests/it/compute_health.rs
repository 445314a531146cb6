//! The agent for compute hosts with disks that hang, links without carrier and other hosts that say what a test wants. No cluster is
//! needed: Pacemaker's two programs are a small one here, built by the C compiler so that it is held in memory as they are.

use std::fs;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
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
        a_host_with_a_load_of_fifty_is_well,
        a_host_that_can_start_no_process_is_shown,
        a_checker_that_is_gone_is_no_reason_to_fence,
    ];
    let needs = ["cc", "ocf-tester", "xmllint", "fsfreeze", "mkfs.ext4", "findmnt", "ip"];
    let is_there = |kind| Path::new("/sys/fs/cgroup").join(kind).exists();
    let groups = ["blkio", "cpu", "memory", "pids"].into_iter().all(is_there);
    let none = || (!groups).then(|| "there are no control groups of the first version".to_owned());
    Group { cannot: installed::lacks_root().or_else(|| installed::cannot(&needs)).or_else(none), tests }
}

/// Bonds, and devices that do not read: this machine's kernel may have neither.
pub(crate) fn another_kernel() -> Group {
    let needs = ["cc", "linux.uml", "dmsetup", "ip"];
    Group { cannot: installed::cannot(&needs), tests: tests::trials![a_bond_and_a_device_fail_and_come_back] }
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
    if (!strcmp(words[1], "--history")) return strcmp(words[3], "--verbose") || show(ROOM "/history");
    if (!strcmp(words[3], "-Q")) return fopen(ROOM "/asked", "wx"), show(ROOM "/word") || show(ROOM "/others");
    FILE *file = fopen(ROOM "/word", "w");
    if (!strcmp(words[3], "-U")) fputs("x", fopen(ROOM "/said", "a")), fprintf(file, "name=\"host-health\" host=\"compute1\" value=\"%s\"\n", words[4]);
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
    /// Of the resource, and of its control groups, whose processes wait for the disk or for a processor.
    name: String,
}

impl Host {
    fn new(parameters: &[(&str, &str)]) -> Self {
        let room = tempfile::Builder::new().prefix("compute-health-").tempdir_in("/dev/shm").unwrap();
        let all = [("interval", "1"), ("directories_for", "3"), ("links_for", "3"), ("reaction", "fence")];
        let all = all.iter().chain(parameters).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let disk = TempDir::new().unwrap();
        let name = room.path().file_name().unwrap().to_str().unwrap().to_owned();
        let host = Self { bin: disk.path().join("bin"), disk, name, parameters: all.collect(), room };
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
        assert!(self.has_run(script), "{script}");
    }

    fn has_run(&self, script: &str) -> bool {
        let mut shell = Command::new("sh");
        shell.args(["-ec", script, &self.name]).current_dir(self.room.path());
        shell.status().is_ok_and(|status| status.success())
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", self.bin.display());
        let directory = self.disk.path().join("dir");
        command.env("PATH", path).env("OCF_RESOURCE_INSTANCE", &self.name);
        command.env("OCF_RESKEY_directories", directory).env("OCF_RESKEY_CRM_meta_on_node", "compute1");
        command.envs(self.parameters.iter().map(|(name, value)| (format!("OCF_RESKEY_{name}"), value)));
        command.env("HA_RSCTMP", self.room.path());
        command
    }

    /// Calls the agent, from the control groups that there are. One that waits for a disk would be ended, with 124.
    fn call(&self, action: &str) -> (i32, String) {
        let enter = "for kind in blkio cpu; do group=/sys/fs/cgroup/$kind/$0; [ ! -d $group ] || echo $$ >$group/cgroup.procs; done
            exec timeout 20 \"$@\"";
        let mut command = self.command("sh");
        command.args(["-c", enter, &self.name]).arg(self.bin.join("compute-health")).arg(action);
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
        SocketAddr::from_abstract_name(format!("compute-health/{}", self.name)).unwrap()
    }

    /// The checker, and how many children it has.
    fn checker(&self) -> (Pid, usize) {
        let stream = UnixStream::connect_addr(&self.address()).unwrap();
        let pid = getsockopt(&stream, PeerCredentials).unwrap().pid();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        (Pid::from_raw(pid), children.split_whitespace().count())
    }

    /// A control group of its own.
    fn group(&self, kind: &str) -> PathBuf {
        let group = Path::new("/sys/fs/cgroup").join(kind).join(&self.name);
        fs::create_dir_all(&group).unwrap();
        group
    }

    /// Puts the checker into a control group of its host's.
    fn bound(&self, kind: &str) -> PathBuf {
        let group = self.group(kind);
        fs::write(group.join("cgroup.procs"), self.checker().0.to_string()).unwrap();
        group
    }

    /// From now on what the agent starts waits for the disk, as this says.
    fn throttle(&self, what: &str, to: &str) {
        let file = self.group("blkio").join(format!("blkio.throttle.{what}"));
        self.run(&format!("echo $(findmnt -no MAJ:MIN $(readlink disk)) {to} >{}", file.display()));
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let script = "exec 2>/dev/null; set +e; fsfreeze --unfreeze disk; for file in /sys/fs/cgroup/blkio/$0/blkio.throttle.*_device; do
            echo $(findmnt -no MAJ:MIN $(readlink disk)) 0 >$file; done";
        let _where_it_was_throttled = self.has_run(script);
        let _it_may_not_run = self.call("stop");
        let _where_there_are_some =
            self.has_run("umount --lazy $(readlink disk); rmdir /sys/fs/cgroup/*/$0 2>/dev/null");
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
    let strict = source("tests/data/ocf-1.1-strict.rng").display().to_string();
    host.run(&format!(
        "disk/bin/compute-health meta-data | xmllint --noout --nowarning --relaxng {strict} -"
    ));
}

/// A common cause, a second host within an hour, and what cannot be known fence nobody. What does not answer is not left behind. S1-46
fn a_host_that_fails_alone_may_be_fenced() {
    let host = Host::started(&[]);
    host.write("others", &WELL.replace("ok", "directory /var/lib/nova/instances"));
    // A look may just be writing.
    host.run("until mount -o remount,ro disk; do sleep 0.1; done");
    host.until(DEGRADED, "2 of 2 hosts fail the same check: a common cause; none is fenced");
    // It has waited for their words.
    let times = ["word", "asked"].map(|name| fs::metadata(host.path(name)).unwrap().modified().unwrap());
    assert!(times[1] >= times[0] + Duration::from_secs(4), "{times:?}");
    host.run("rm others; mkfifo others");
    host.until(DEGRADED, "what the other hosts say is not known");
    host.run("rm others");
    host.write("others", WELL);
    host.until(1, "Read-only file system");
    wait::until("nothing to be left", LIMIT, || Ok((host.checker().1 == 0).then_some(()))).unwrap();
    let fenced = |target: &str, rest: &str| {
        let event = format!("<fence_event action=\"off\" target=\"{target}\" {rest}/>");
        host.write("history", &format!("{event}<status code=\"0\"/>"));
    };
    fenced("compute2", "status=\"pending\"");
    host.until(DEGRADED, "2 of 2 hosts fail or are out after a fencing; none is fenced");
    let now = Command::new("date").args(["-u", "+status=\"success\" completed=\"%F %TZ\""]).output().unwrap();
    let now = String::from_utf8(now.stdout).unwrap();
    fenced("compute2", now.trim());
    host.until(DEGRADED, "1 of 2 hosts fenced within an hour");
    fenced("compute1", now.trim());
    host.until(DEGRADED, "it was fenced within an hour; it is not fenced again");
    host.run("mount -o remount,rw disk");
    host.until(0, "");
    // Fenced and back, it fails from the beginning: nothing new.
    host.write("history", "<status code=\"0\"/>");
    host.run("until mount -o remount,ro disk; do sleep 0.1; done");
    host.until(1, "Read-only");
    assert_eq!((host.call("stop").0, host.call("monitor").0, host.call("start").0), (0, 7, 0));
    host.until(DEGRADED, "it did when the checker began; none is fenced");
}

/// The broken variants: a look at each interval, each of which would stay in the kernel, and a word to the cluster at each.
fn a_disk_that_hangs_is_looked_at_once() {
    let host = Host::started(&[]);
    host.run("fsfreeze --freeze disk");
    host.until(1, "has not answered for");
    assert_eq!((host.checker().1, fs::read_to_string(host.path("said")).unwrap().as_str()), (1, "xx"));
    host.run("fsfreeze --unfreeze disk");
    host.until(0, "");
}

/// The agent and its tools lie on that disk, and nothing of it is in the cache that memory does not hold: it is counted all the same.
fn it_answers_while_the_root_disk_reads_nothing() {
    let host = Host::started(&[]);
    host.throttle("read_bps_device", "1");
    host.bound("blkio");
    host.run("sync; echo 3 >/proc/sys/vm/drop_caches");
    host.until(1, "has not answered");
}

/// A flush takes seconds; and a link is away for less than its time.
fn a_slow_disk_and_a_link_that_flaps_are_well() {
    let host = Host::new(&[("directories_for", "20"), ("links", "nha-flaps"), ("links_for", "20")]);
    host.run("ip link delete nha-flaps 2>/dev/null || :; ip link add nha-flaps type veth peer name nha-flaps-peer; ip link set nha-flaps up; ip link set nha-flaps-peer up");
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

/// Its processes wait for processors together, and leave others theirs.
fn a_host_with_a_load_of_fifty_is_well() {
    let host = Host::new(&[]);
    let group = host.group("cpu");
    let load =
        "echo $$ >$0/cgroup.procs; ulimit -t 2; for one in $(seq 50); do (while :; do :; done) & done; wait";
    let mut load = Command::new("sh").args(["-c", load]).arg(&group).process_group(0).spawn().unwrap();
    wait::until("the load", LIMIT, || {
        let there = fs::read_to_string(group.join("cgroup.procs"))?;
        Ok((there.lines().count() > 50).then_some(()))
    })
    .unwrap();
    assert_eq!(host.call("start"), (0, String::new()));
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(12) {
        // A checker that is late is shown. One that fails, or a monitor that Pacemaker would end, would have the host fenced.
        let said = host.call("monitor");
        assert!(said.0 == 0 || said.0 == DEGRADED, "{said:?}");
    }
    killpg(Pid::from_raw(load.id().try_into().unwrap()), Signal::SIGKILL).unwrap();
    load.wait().unwrap();
}

/// So many processes that there is no further one: nothing can be counted, and nobody is fenced. No memory for one: the kernel ends the
/// checker, or it cannot even answer; it is started again.
fn a_host_that_can_start_no_process_is_shown() {
    let host = Host::started(&[("processes_for", "3"), ("directories", "")]);
    let limit = host.bound("pids").join("pids.max");
    fs::write(&limit, "1").unwrap();
    host.until(DEGRADED, "(os error 11); what the other hosts say is not known; none is fenced");
    fs::write(&limit, "max").unwrap();
    host.until(0, "");
    fs::write(host.bound("memory").join("memory.limit_in_bytes"), "4096").unwrap();
    host.until(DEGRADED, "was started again");
    host.until(0, "");
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

/// Loads a part of a kernel, or ends the machine.
const BOOT: &str = r#"#include <fcntl.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words) {
    return count > 1 ? syscall(SYS_finit_module, open(words[1], O_RDONLY), "", 0) : reboot(RB_POWER_OFF);
}
"#;
/// The first program of a machine whose kernel is a process here, and whose disk is this machine's, read-only.
const INIT: &str = r#"#!/bin/sh
export PATH=ROOM:/usr/sbin:/usr/bin:/sbin:/bin HA_RSCTMP=/run OCF_RESOURCE_INSTANCE=uml OCF_RESKEY_CRM_meta_on_node=compute1
export OCF_RESKEY_directories= OCF_RESKEY_links=two OCF_RESKEY_links_for=3 OCF_RESKEY_devices=/dev/mapper/disk OCF_RESKEY_devices_for=3
export OCF_RESKEY_interval=1 OCF_RESKEY_reaction=fence
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t tmpfs tmpfs /run; mkdir /run/words
for part in lib/crc-ccitt net/ipv6/ipv6 drivers/net/bonding/bonding drivers/net/veth drivers/md/dm-mod; do
    boot /usr/lib/uml/modules/*/kernel/$part.ko
done
echo 'name="host-health" host="compute2" value="ok"' >/run/words/others
echo '<status code="0"/>' >/run/words/history
ip link add two type bond mode active-backup miimon 100
for leg in a b; do
    ip link add leg-$leg type veth peer name far-$leg; ip link set leg-$leg master two; ip link set far-$leg up
done
ip link set two up
dmsetup create disk --table '0 2048 linear /dev/ubda 0'; dmsetup mknodes
legs() { ip link set far-a $1; ip link set far-b $2; }
expect() {
    for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
        said=$(compute-health monitor 2>&1); code=$?
        case "$code $said" in $1) return ;; esac
        sleep 1
    done
    echo "instead of $1: $code $said"
}
compute-health start; expect '0 '; sleep 2
legs down up; expect '190*two has lost a leg; none is fenced for that'
legs up up; expect '0 '
legs down down; sleep 1; legs up up; expect '0 '
legs down down; expect '1 *two has had no carrier for*'
legs up up; expect '0 '
dmsetup suspend --noflush disk; expect '1 */dev/mapper/disk has not answered for*'
dmsetup resume disk; expect '0 '
dmsetup suspend disk; dmsetup reload disk --table '0 2048 error'; dmsetup resume disk; expect '1 *Input/output error*'
echo 'all was seen'; boot
"#;

/// A bond that lost one leg is shown, one that flaps is well, and one without any may be fenced. So may a host with a device that hangs.
fn a_bond_and_a_device_fail_and_come_back() {
    let room = TempDir::new().unwrap();
    let init = INIT.replace("ROOM", room.path().to_str().unwrap());
    for (name, text) in [("boot.c", BOOT), ("attrd_updater.c", TOOL), ("init", &init)] {
        fs::write(room.path().join(name), text).unwrap();
    }
    let machine = "for name in boot attrd_updater; do cc -DROOM='\"/run/words\"' -o $name $name.c; done
        cp attrd_updater stonith_admin; cp $0 compute-health; chmod 755 init; truncate --size 1M image
        exec timeout 150 linux.uml mem=128M rootfstype=hostfs rootflags=/ ro con=null con0=null,fd:1 init=$PWD/init ubd0=$PWD/image";
    let mut command = Command::new("sh");
    command.args(["-ec", machine]).arg(built("compute-health").unwrap()).current_dir(room.path());
    let said = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&said.stdout);
    assert!(text.contains("all was seen") && !text.contains("instead of"), "{said:?}");
}
