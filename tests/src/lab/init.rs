//! PID 1 of a node: makes the node's view of the file system, starts its daemons, and ends when its owner does.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{BufRead, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow, bail, ensure};
use nix::mount::{MsFlags, mount};
use nix::sys::wait::waitpid;

use super::node::{PATH, log_file};
use super::tree::{self, Tree};
use super::{disk, parts, wait};

const NOTHING: Option<&str> = None;

struct Seat {
    name: String,
    address: String,
    kind: String,
    lab: PathBuf,
}

/// What the node's programs have in their environment for a clock of its own.
static CLOCK: OnceLock<Vec<(OsString, OsString)>> = OnceLock::new();

/// Plays PID 1. Returns, and thereby ends the node, when standard input closes.
pub(super) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let [name, address, kind, lab] = arguments else { bail!("PID 1 wants: NAME ADDRESS KIND LAB") };
    let (name, address, kind) = (name.clone(), address.clone(), kind.clone());
    let seat = Seat { name, address, kind, lab: lab.into() };
    announce()?;
    CLOCK.set(disk::clock_of(&seat.lab, &seat.name)).map_err(|_| anyhow!("PID 1 runs once"))?;
    let tree = tree::of(&disk::node_directory(&seat.lab, &seat.name));
    let root = seat.file_systems(tree.as_ref())?;
    nix::unistd::sethostname(&seat.name)?;
    wait_for_cable()?;
    seat.network()?;
    if root != Path::new("/") {
        tree::enter(&root)?;
    }
    if let Some(Tree::Own(_)) = tree {
        tree::give_to_own_accounts()?;
    }
    disk::give_to_cluster(Path::new("/run/crm"))?;
    keep_syslog()?;
    seat.daemons()?;
    thread::spawn(reap);
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Says the host's number of this process; the node's own /proc, mounted later, would say 1.
fn announce() -> anyhow::Result<()> {
    let pid = fs::read_link("/proc/self")?;
    let mut out = std::io::stdout();
    writeln!(out, "pid {}", pid.display())?;
    Ok(out.flush()?)
}

fn wait_for_cable() -> anyhow::Result<()> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    ensure!(line == "net\n", "the owner ended before the cable was there");
    Ok(())
}

impl Seat {
    /// Mounts that need the host's paths come first: /tmp, /run and /dev hide what lies below them. Gives where the node's root is.
    fn file_systems(&self, tree: Option<&Tree>) -> anyhow::Result<PathBuf> {
        let shared = File::open(self.lab.join("shared"))?;
        let node = disk::node_directory(&self.lab, &self.name);
        let root = match tree {
            Some(Tree::Own(system)) => tree::lay_out(system, &node)?,
            Some(Tree::Release(system)) => self.over_a_release(system, &node)?,
            None => self.over(Path::new("/"), &[self.lab.join("remote")], &node)?,
        };
        devices(&root.join("dev"))?;
        for (what, place) in [("proc", "proc"), ("sysfs", "sys"), ("tmpfs", "var/tmp"), ("tmpfs", "tmp")] {
            fresh(what, &root.join(place))?;
        }
        run_directory(&root.join("run"), &shared)?;
        Ok(root)
    }

    fn over_a_release(&self, system: &Path, node: &Path) -> anyhow::Result<PathBuf> {
        let root = node.join("root");
        fs::create_dir_all(&root)?;
        bind(system, &root)?;
        self.over(&root, &[], node)
    }

    /// What the lab installs and the node's disk, over a root that stays as it is.
    fn over(&self, root: &Path, programs: &[PathBuf], node: &Path) -> anyhow::Result<PathBuf> {
        let programs = [&[self.lab.join("sbin")], programs].concat();
        overlay(&programs, &root.join("usr/sbin"))?;
        overlay(&[self.lab.join("ocf")], &root.join("usr/lib/ocf/resource.d"))?;
        overlay(&[self.lab.join("alerts")], &root.join("usr/share/pacemaker/alerts"))?;
        overlay(&[node.join("etc")], &root.join("etc"))?;
        for (part, place) in
            [("site", "etc/nova-host-alerter"), ("var-lib", "var/lib"), ("var-log", "var/log")]
        {
            bind(&node.join(part), &root.join(place))?;
        }
        let read_only = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
        mount(NOTHING, root, NOTHING, read_only, NOTHING).context("making the root read-only")?;
        Ok(root.to_owned())
    }

    fn network(&self) -> anyhow::Result<()> {
        ip(&["link", "set", "lo", "up"])?;
        ip(&["address", "add", &format!("{}/24", self.address), "dev", "eth0"])?;
        ip(&["link", "set", "eth0", "up"])
    }

    fn daemons(&self) -> anyhow::Result<()> {
        if self.kind == parts::REMOTE {
            return daemon("pacemaker-remoted", &[]);
        }
        daemon("corosync", &["-f"])?;
        wait::until("corosync to answer", Duration::from_secs(30), || {
            Ok(quiet("corosync-cfgtool").arg("-s").status()?.success().then_some(()))
        })?;
        daemon("pacemakerd", &[])
    }
}

fn overlay(uppers: &[PathBuf], place: &Path) -> anyhow::Result<()> {
    let layers = uppers.iter().map(PathBuf::as_path).chain([place]).map(|layer| layer.display().to_string());
    let layers = format!("lowerdir={}", layers.collect::<Vec<_>>().join(":"));
    mount(Some("overlay"), place, Some("overlay"), MsFlags::MS_RDONLY, Some(layers.as_str()))
        .with_context(|| format!("overlay over {}", place.display()))
}

fn bind(what: &Path, place: &Path) -> anyhow::Result<()> {
    mount(Some(what), place, NOTHING, MsFlags::MS_BIND | MsFlags::MS_REC, NOTHING)
        .with_context(|| format!("binding {}", place.display()))
}

fn fresh(kind: &str, place: &Path) -> anyhow::Result<()> {
    mount(Some(kind), place, Some(kind), MsFlags::empty(), NOTHING)
        .with_context(|| format!("mounting {}", place.display()))
}

/// A /dev of its own: the node's syslog socket and shared memory are nobody else's.
fn devices(dev: &Path) -> anyhow::Result<()> {
    let names = ["null", "zero", "full", "random", "urandom"];
    let open = |name| Ok((name, File::open(Path::new("/dev").join(name))?));
    let devices: Vec<(&str, File)> = names.into_iter().map(open).collect::<anyhow::Result<_>>()?;
    fresh("tmpfs", dev)?;
    for (name, device) in &devices {
        let place = dev.join(name);
        File::create(&place)?;
        bind(&by_descriptor(device), &place)?;
    }
    symlink("/proc/self/fd", dev.join("fd"))?;
    make_directory(&dev.join("shm"), 0o1777)
}

fn run_directory(run: &Path, shared: &File) -> anyhow::Result<()> {
    fresh("tmpfs", run)?;
    make_directory(&run.join("lab"), 0o755)?;
    bind(&by_descriptor(shared), &run.join("lab"))?;
    make_directory(&run.join("lock"), 0o1777)?;
    make_directory(&run.join("resource-agents"), 0o1777)?;
    make_directory(&run.join("crm"), 0o750)
}

/// The way to a file that is open, whatever has been mounted over its path since.
fn by_descriptor(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn make_directory(path: &Path, mode: u32) -> anyhow::Result<()> {
    fs::DirBuilder::new().mode(mode).create(path)?;
    Ok(fs::set_permissions(path, Permissions::from_mode(mode))?)
}

fn ip(arguments: &[&str]) -> anyhow::Result<()> {
    let said = quiet("ip").args(arguments).status()?;
    ensure!(said.success(), "ip {}", arguments.join(" "));
    Ok(())
}

/// Writes what the node's programs log to syslog into the node's /var/log/syslog.
fn keep_syslog() -> anyhow::Result<()> {
    let socket = UnixDatagram::bind("/dev/log")?;
    fs::set_permissions("/dev/log", Permissions::from_mode(0o666))?;
    let mut log = log_file("/var/log/syslog")?;
    thread::spawn(move || {
        let mut line = [0; 8192];
        while let Ok(length) = socket.recv(&mut line) {
            let _ = log.write_all(&[line[..length].trim_ascii_end(), b"\n"].concat());
        }
    });
    Ok(())
}

/// Starts a daemon that the reaper will wait for.
fn daemon(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let mut command = quiet(program);
    let log = [("PCMK_logfile", "/var/log/pacemaker/pacemaker.log"), ("PCMK_logfacility", "none")];
    // Every start of a remote daemon searches for a prime of so many bits.
    command.args(arguments).envs(log).env("PCMK_dh_max_bits", "1024");
    command.envs(CLOCK.get().into_iter().flatten().map(|(key, value)| (key, value)));
    command.spawn().with_context(|| format!("starting {program}"))?;
    Ok(())
}

/// A command whose output goes to the node's console and that holds none of PID 1's pipes.
fn quiet(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", PATH).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn reap() {
    loop {
        if waitpid(None, None).is_err() {
            thread::sleep(Duration::from_millis(100));
        }
    }
}
