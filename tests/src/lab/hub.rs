//! The lab's network: a bridge in a network namespace of its own, one cable for each node that runs.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;

use anyhow::{Context, ensure};
use nix::sched::{CloneFlags, setns};

use super::plan::{HUB_ADDRESS, HUB_MAC, NodePlan};
use crate::process::Bound;

pub(super) struct Hub {
    /// A `cat` that holds the namespace, and ends when the pipe from this process closes.
    holder: Bound,
    namespace: Arc<File>,
}

impl Hub {
    pub(super) fn new() -> anyhow::Result<Self> {
        let mut holder = Command::new("unshare")
            .args(["--net", "--", "cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting the hub")?;
        wait_for_echo(&mut holder).context("the hub's namespace cannot be made")?;
        let namespace = Arc::new(File::open(format!("/proc/{}/ns/net", holder.id()))?);
        let hub = Self { holder: Bound(holder), namespace };
        hub.ip(&["link", "set", "lo", "up"])?;
        // A bridge without an address of its own takes that of a port: with each cable, everybody's ARP cache would be wrong.
        hub.ip(&["link", "add", "name", "br0", "address", HUB_MAC, "type", "bridge"])?;
        hub.ip(&["address", "add", &format!("{HUB_ADDRESS}/24"), "dev", "br0"])?;
        hub.ip(&["link", "set", "br0", "up"])?;
        Ok(hub)
    }

    pub(super) fn namespace(&self) -> Arc<File> {
        Arc::clone(&self.namespace)
    }

    /// A command that runs what follows it in the hub's network.
    pub(super) fn entrance(&self) -> Vec<OsString> {
        let network = format!("--net=/proc/{}/ns/net", self.holder.id());
        ["nsenter", &network, "--"].map(OsString::from).into()
    }

    /// Lays a cable from the bridge to `eth0` of the namespace of process `pid`.
    pub(super) fn plug(&self, plan: &NodePlan, pid: i32) -> anyhow::Result<()> {
        let (cable, mac, pid) = (plan.cable(), plan.mac(), pid.to_string());
        let end = ["type", "veth", "peer", "name", "eth0", "address", &mac, "netns", &pid];
        self.ip(&[&["link", "add", "name", &cable][..], &end].concat())?;
        self.join(plan)?;
        self.ip(&["link", "set", &cable, "up"])
    }

    /// Takes the cable away, both ends.
    pub(super) fn unplug(&self, plan: &NodePlan) -> anyhow::Result<()> {
        self.ip(&["link", "delete", &plan.cable()])
    }

    pub(super) fn join(&self, plan: &NodePlan) -> anyhow::Result<()> {
        self.ip(&["link", "set", &plan.cable(), "master", "br0"])
    }

    pub(super) fn leave(&self, plan: &NodePlan) -> anyhow::Result<()> {
        self.ip(&["link", "set", &plan.cable(), "nomaster"])
    }

    fn ip(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let said = Command::new("nsenter")
            .args(["-t", &self.holder.id().to_string(), "-n", "--", "ip"])
            .args(arguments)
            .output()?;
        let complaint = String::from_utf8_lossy(&said.stderr);
        ensure!(said.status.success(), "ip {}: {}", arguments.join(" "), complaint.trim());
        Ok(())
    }
}

/// `cat` answers only after `unshare` has made the namespace.
fn wait_for_echo(holder: &mut Child) -> anyhow::Result<()> {
    let (input, output) = (holder.stdin.as_mut(), holder.stdout.as_mut());
    input.context("no pipe")?.write_all(b"ready\n")?;
    let mut line = String::new();
    BufReader::new(output.context("no pipe")?).read_line(&mut line)?;
    ensure!(line == "ready\n", "unshare --net ended early");
    Ok(())
}

/// Listens inside a network namespace. A namespace belongs to a thread, hence one of its own.
pub(super) fn listen(namespace: &Arc<File>, address: (IpAddr, u16)) -> std::io::Result<TcpListener> {
    let namespace = Arc::clone(namespace);
    let made = thread::spawn(move || {
        setns(&*namespace, CloneFlags::CLONE_NEWNET)?;
        TcpListener::bind(address)
    });
    made.join().unwrap_or_else(|_| Err(std::io::Error::other("the listening thread panicked")))
}

/// The ids of all processes in the PID namespace of `pid1`.
pub(super) fn processes_beside(pid1: i32) -> anyhow::Result<Vec<i32>> {
    let space = fs::read_link(format!("/proc/{pid1}/ns/pid"))?;
    let all = fs::read_dir("/proc")?.flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(ids.filter(|id: &i32| fs::read_link(format!("/proc/{id}/ns/pid")).is_ok_and(|s| s == space)).collect())
}
