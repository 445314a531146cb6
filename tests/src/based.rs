//! corosync with Pacemaker's own `pacemaker-based` and `pacemaker-attrd`, and the CIB of a large cluster, in namespaces of
//! their own. Only quorum and the fencing history stand in for the rest of Pacemaker.

mod cluster;

use std::fs;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use nix::sched::{CloneFlags, setns};
use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

use crate::apart::Apart;
use crate::process::{self, Bound};
use crate::programs::Site;
use crate::receiver::Receiver;

/// The programs that it needs.
pub const NEEDS: [&str; 4] = ["unshare", "nsenter", "corosync", "cibadmin"];
const BASED: &str = "/usr/lib/pacemaker/pacemaker-based";
const ATTRD: &str = "/usr/lib/pacemaker/pacemaker-attrd";
/// Elements of the status in one change: Pacemaker takes no message that is longer than 128 KiB when it is packed.
const TURN: usize = 200;
/// The cluster of one controller in which they are.
const COROSYNC: &str = "totem {
  version: 2
  cluster_name: lab
  transport: udpu
  crypto_cipher: none
  crypto_hash: none
}
quorum {
  provider: corosync_votequorum
  expected_votes: 1
}
nodelist {
  node {
    ring0_addr: 127.0.0.1
    name: ctl1
    nodeid: 1
  }
}
";
const MOUNTS: &str = "ip link set lo up
for at in /var/lib/pacemaker /var/lib/corosync /var/log /dev/shm /run /etc/corosync; do mount -t tmpfs none $at; done
mkdir /var/lib/pacemaker/cib /var/lib/pacemaker/cores /run/crm /var/log/corosync /var/log/pacemaker
cp \"$1/corosync.conf\" /etc/corosync/
head -c 256 /dev/urandom >/etc/corosync/authkey
chmod 400 /etc/corosync/authkey
install -m 600 \"$1/cib.xml\" /var/lib/pacemaker/cib/
chown -R hacluster:haclient /var/lib/pacemaker /run/crm
mount -t overlay -o \"lowerdir=$1/sbin:/usr/sbin\" overlay /usr/sbin";

/// How often an attribute changes.
const CHANGE: Duration = Duration::from_secs(10);

/// What an idle alerter costs, of one processor, and how many programs of Pacemaker it starts in a second, the median of ten seconds
/// each.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// The alerter and its children.
    pub alerter: f64,
    /// Pacemaker's CIB manager.
    pub based: f64,
    /// Starts in a second.
    pub starts: f64,
}

/// A controller of a cluster with so many hosts, each a remote node with a power device of its own, as the alerter and the
/// agent on it see it.
pub struct Based {
    directory: TempDir,
    /// corosync, Pacemaker's CIB manager and its attribute manager.
    daemons: Vec<Bound>,
    site: Site,
    receiver: Receiver,
}

impl Based {
    /// Starts it, and gives it the status of a cluster where all is well.
    ///
    /// # Errors
    /// Not root, a program is missing, or Pacemaker's daemon does not take the CIB.
    pub fn start(hosts: usize) -> anyhow::Result<Self> {
        let cib = cluster::cib(hosts);
        let all = Self::begin_all(&cluster::without_status(&cib), &[])?;
        for part in cluster::status_in_turns(&cib, TURN) {
            all.change_status(&part)?;
        }
        Ok(all)
    }

    /// The same where nothing can change any more: Pacemaker's daemon takes the status from its file if it is alone.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_still(hosts: usize) -> anyhow::Result<Self> {
        Self::begin_all(&cluster::cib(hosts), &["-s"])
    }

    fn begin_all(cib: &str, manner: &[&str]) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("nova-host-alerter-").tempdir()?;
        fs::write(directory.path().join("cib.xml"), cib)?;
        fs::write(directory.path().join("corosync.conf"), COROSYNC)?;
        stand_ins(directory.path())?;
        let apart = Apart::with_network(MOUNTS, &[directory.path()])?;
        let network = apart.outside_network();
        let receiver = Receiver::listen(move || listen_in(&network))?;
        let mut site = Site::with("")?;
        let text = fs::read_to_string(site.config())?.replace("register = \"none\"", "register = \"attrd\"");
        let route = format!("[http.recovery]\nurl = \"http://{}/v1/host-failures\"\n", receiver.address());
        fs::write(site.config(), text + &route)?;
        site.set_apart(apart);
        let mut all = Self { directory, daemons: Vec::new(), site, receiver };
        all.begin("/usr/sbin/corosync", &["-f"])?;
        all.wait_for("corosync-cmapctl", &["-b"])?;
        all.begin(BASED, manner)?;
        all.wait_for("cibadmin", &["--query", "--local", "--xpath=/cib", "--no-children"])?;
        all.begin(ATTRD, &[])?;
        all.wait_for("attrd_updater", &["--name=ready", "--private", "--node=ready", "--update=1"])?;
        Ok(all)
    }

    /// The alerter and the agent there.
    pub fn site(&mut self) -> &mut Site {
        &mut self.site
    }

    /// What the alerter there notifies.
    #[must_use]
    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// The process of Pacemaker's daemon.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.daemons.get(1).map_or(0, |daemon| daemon.id())
    }

    /// Merges elements into the status.
    ///
    /// # Errors
    /// Pacemaker does not take them.
    pub fn change_status(&self, elements: &str) -> anyhow::Result<()> {
        let file = self.directory.path().join("change.xml");
        fs::write(&file, format!("<status>{elements}</status>"))?;
        let arguments = ["--modify", "--allow-create", "--local", "--scope=status", "--xml-file"];
        let changed = self.command("cibadmin")?.args(arguments).arg(&file).stdout(Stdio::null()).status()?;
        ensure!(changed.success(), "cibadmin: {changed}");
        Ok(())
    }

    /// Sets an attribute of a node that lasts until its restart; nothing here asks for it.
    ///
    /// # Errors
    /// Pacemaker does not take it.
    pub fn set_load(&self, host: usize, load: usize) -> anyhow::Result<()> {
        self.change_status(&cluster::load(host, load))
    }

    /// Calls the agent as the fencer does for `off`; its end is for the caller to wait for.
    ///
    /// # Errors
    /// It cannot be run.
    pub fn begin_off(&self, host: usize) -> anyhow::Result<Child> {
        let path = crate::programs::built("fence_mark")?;
        let mut command = self.apart()?.command(&path);
        command.env("PCMK_service", "pacemaker-fenced").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut agent = command.stderr(Stdio::piped()).spawn()?;
        let lines = self.site.stdin_of_the_fencer(&format!("compute{host}"));
        let mut stdin = agent.stdin.take().context("no pipe to the agent")?;
        stdin.write_all(lines.replace("register=none", "register=attrd\nverbose=1").as_bytes())?;
        Ok(agent)
    }

    /// How many fencings of the journal know which life of their host they ended.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn known_lives(&self) -> anyhow::Result<usize> {
        let journal = Connection::open_with_flags(self.site.journal(), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let known = "SELECT count(*) FROM fencing WHERE incarnation LIKE 'ctl%'";
        Ok(usize::try_from(journal.query_row(known, [], |row| row.get::<_, i64>(0))?)?)
    }

    /// What an idle alerter costs while an attribute of a node changes each ten seconds. It first comes to rest.
    ///
    /// # Errors
    /// It does not come to rest, or has ended.
    pub fn idle_cost(&self, alerter: u32, lasting: Duration) -> anyhow::Result<Cost> {
        self.wait_until_idle()?;
        let own = self.pid();
        let before = (spent(alerter)?, spent(own)?);
        let (begun, mut starts) = (Instant::now(), Vec::new());
        for turn in 0.. {
            let (since, started) = (Instant::now(), self.started());
            self.set_load(7, turn)?;
            thread::sleep(CHANGE);
            starts.push((self.started() - started) as f64 / since.elapsed().as_secs_f64());
            if begun.elapsed() >= lasting {
                break;
            }
        }
        // Where this machine is so busy that a question is not answered in time, it is asked again.
        starts.sort_unstable_by(f64::total_cmp);
        let took = begun.elapsed().as_secs_f64();
        let share = |now: Duration, then: Duration| (now - then).as_secs_f64() / took;
        Ok(Cost {
            alerter: share(spent(alerter)?, before.0),
            based: share(spent(own)?, before.1),
            starts: starts[starts.len() / 2],
        })
    }

    /// Until no program was started for longer than the time between two polls.
    fn wait_until_idle(&self) -> anyhow::Result<()> {
        let limit = Instant::now() + Duration::from_secs(60);
        let (mut since, mut last) = (Instant::now(), self.started());
        while since.elapsed() < Duration::from_millis(1600) {
            ensure!(Instant::now() < limit, "the alerter does not come to rest");
            thread::sleep(Duration::from_millis(50));
            let now = self.started();
            if now != last {
                (since, last) = (Instant::now(), now);
            }
        }
        Ok(())
    }

    /// How many programs of Pacemaker were started by what is here.
    #[must_use]
    pub fn started(&self) -> usize {
        self.starts().lines().count()
    }

    /// How often one of them was.
    #[must_use]
    pub fn started_of(&self, name: &str) -> usize {
        self.starts().lines().filter(|started| *started == name).count()
    }

    fn starts(&self) -> String {
        fs::read_to_string(self.directory.path().join("started")).unwrap_or_default()
    }

    /// A program of Pacemaker in its place, not counted.
    ///
    /// # Errors
    /// There is no such place any more.
    pub fn command(&self, name: &str) -> anyhow::Result<Command> {
        Ok(self.apart()?.command(&self.directory.path().join("real").join(name)))
    }

    fn apart(&self) -> anyhow::Result<&Apart> {
        self.site.apart().context("the site has no mounts of its own")
    }

    fn begin(&mut self, program: &str, arguments: &[&str]) -> anyhow::Result<()> {
        let mut command = self.apart()?.command(Path::new(program));
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.daemons.push(Bound(command.spawn().context(program.to_owned())?));
        Ok(())
    }

    /// Until a program gets its answer.
    fn wait_for(&self, name: &str, arguments: &[&str]) -> anyhow::Result<()> {
        let limit = Instant::now() + Duration::from_secs(60);
        loop {
            let asked = self.command(name)?.args(arguments).output()?;
            if asked.status.success() {
                return Ok(());
            }
            ensure!(Instant::now() < limit, "{name}: {asked:?}");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// By a process and its children that have ended.
fn spent(pid: u32) -> anyhow::Result<Duration> {
    Ok(process::cpu(pid)?.into_iter().sum())
}

impl Drop for Based {
    fn drop(&mut self) {
        while self.daemons.pop().is_some() {}
    }
}

/// `cibadmin` and `attrd_updater` are the real ones, and only counted.
fn stand_ins(directory: &Path) -> anyhow::Result<()> {
    let (real, sbin) = (directory.join("real"), directory.join("sbin"));
    fs::create_dir(&sbin)?;
    fs::create_dir(&real)?;
    for name in ["cibadmin", "attrd_updater", "corosync-cmapctl"] {
        let from = ["/usr/sbin", "/usr/bin"].map(|at| Path::new(at).join(name));
        fs::copy(
            from.iter().find(|path| path.is_file()).with_context(|| format!("no {name}"))?,
            real.join(name),
        )?;
    }
    let history = "echo '<pacemaker-result><status code=\"0\" message=\"OK\"/></pacemaker-result>'";
    let real_one = |name: &str| format!("exec \"$D/real/{name}\" \"$@\"");
    let tools = [
        ("cibadmin", real_one("cibadmin")),
        ("attrd_updater", real_one("attrd_updater")),
        ("crm_node", "echo 1".to_owned()),
        ("stonith_admin", history.to_owned()),
    ];
    for (name, does) in tools {
        let at = directory.display();
        samples::program(
            &sbin.join(name),
            format!("#!/bin/sh\nD={at}\necho {name} >>\"$D/started\"\n{does}\n"),
        );
    }
    Ok(())
}

/// A socket of another network: it belongs to that of the thread that made it.
fn listen_in(network: &Path) -> io::Result<TcpListener> {
    let network: PathBuf = network.to_owned();
    let made = thread::spawn(move || {
        setns(fs::File::open(network)?, CloneFlags::CLONE_NEWNET)?;
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
    });
    made.join().map_err(|_| io::Error::other("the thread that listens has panicked"))?
}
