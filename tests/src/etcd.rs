//! A real etcd of three members on loopback, which know their clients by certificates; everything ends with the value.

use std::ffi::OsString;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use marks::register::Register;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use register::{Access, Etcd, Login};
use tempfile::TempDir;

use crate::lab::{Lab, behind};

/// What it takes.
pub const PROGRAMS: [&str; 3] = ["etcd", "etcdctl", "setpriv"];
/// A member that does not start within this time has failed.
const LIMIT: Duration = Duration::from_secs(20);

/// The members.
pub struct Members {
    room: TempDir,
    ca: CertifiedIssuer<'static, KeyPair>,
    place: Place,
    flags: Vec<String>,
    running: Vec<Option<Child>>,
}

/// Where the members listen.
struct Place {
    /// A command that runs what follows it there; nothing on this machine itself.
    entrance: Vec<OsString>,
    address: String,
    /// For clients and for members, of each.
    ports: Vec<(u16, u16)>,
}

impl Members {
    /// Three that have a leader, each started with these words more.
    ///
    /// # Errors
    /// They do not come up.
    pub fn new(flags: &[&str]) -> anyhow::Result<Self> {
        let place = Place { entrance: Vec::new(), address: "127.0.0.1".to_owned(), ports: ports()? };
        Self::at(place, flags)
    }

    /// The same in the network of a lab, at its own address.
    ///
    /// # Errors
    /// They do not come up.
    pub fn in_lab(lab: &Lab) -> anyhow::Result<Self> {
        let ports = (0..3).map(|number| (2379 + 2 * number, 2380 + 2 * number)).collect();
        Self::at(Place { entrance: lab.entrance(), address: lab.own_address().to_string(), ports }, &[])
    }

    fn at(place: Place, flags: &[&str]) -> anyhow::Result<Self> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "etcd of a test");
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let room = TempDir::new()?;
        let flags = flags.iter().map(|&flag| flag.to_owned()).collect();
        let address = place.address.clone();
        let mut members = Self { room, ca, place, flags, running: vec![None, None, None] };
        fs::write(members.path("ca.pem"), members.ca.pem())?;
        members.certificate("member", CertificateParams::new(vec![address])?)?;
        members.certificate("client", CertificateParams::new(Vec::new())?)?;
        let mut ended = CertificateParams::new(Vec::new())?;
        ended.not_after = date_time_ymd(2001, 1, 1);
        members.certificate("expired", ended)?;
        members.start()?;
        Ok(members)
    }

    fn certificate(&self, name: &str, mut params: CertificateParams) -> anyhow::Result<()> {
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate()?;
        fs::write(self.path(&format!("{name}.pem")), params.signed_by(&key, &self.ca)?.pem())?;
        let file = self.path(&format!("{name}.key"));
        fs::write(&file, key.serialize_pem())?;
        Ok(fs::set_permissions(file, fs::Permissions::from_mode(0o600))?)
    }

    /// A file in the directory that has everything.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.room.path().join(name)
    }

    fn endpoints(&self) -> Vec<String> {
        let Place { address, ports, .. } = &self.place;
        ports.iter().map(|(client, _)| format!("https://{address}:{client}")).collect()
    }

    /// The configuration of a client with this certificate.
    #[must_use]
    pub fn access(&self, prefix: &str, client: &str, login: Option<Login>) -> Access {
        let [certificate, key] = ["pem", "key"].map(|kind| self.path(&format!("{client}.{kind}")));
        let etcd = Etcd {
            endpoints: self.endpoints(),
            ca: Some(self.path("ca.pem")),
            identity: Some((certificate, key)),
            login,
            prefix: format!("{prefix}/"),
        };
        Access::to(Register::Etcd, Some(etcd))
    }

    /// The same in the configuration.
    #[must_use]
    pub fn table(&self, prefix: &str) -> String {
        self.table_in(self.room.path(), prefix)
    }

    /// The same where the files are in this directory.
    #[must_use]
    pub fn table_in(&self, directory: &Path, prefix: &str) -> String {
        let path = |name| directory.join(name).display().to_string();
        format!(
            "[store.etcd]\nendpoints = {:?}\nca-file = {:?}\ncertificate-file = {:?}\nkey-file = {:?}\nprefix = {prefix:?}\n",
            self.endpoints(),
            path("ca.pem"),
            path("client.pem"),
            path("client.key")
        )
    }

    /// Starts those that do not run, and waits until there is a leader.
    ///
    /// # Errors
    /// They do not come up.
    pub fn start(&mut self) -> anyhow::Result<()> {
        for number in 0..self.place.ports.len() {
            if self.running[number].is_none() {
                self.running[number] = Some(self.spawn(number)?);
            }
        }
        self.until_answers()
    }

    fn spawn(&self, number: usize) -> anyhow::Result<Child> {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.path("log"))?;
        let Place { address, ports, .. } = &self.place;
        let cluster: Vec<String> = (0..)
            .zip(ports)
            .map(|(number, (_, peer))| format!("m{number}=http://{address}:{peer}"))
            .collect();
        let (client, peer) = ports[number];
        let (client, peer) = (format!("https://{address}:{client}"), format!("http://{address}:{peer}"));
        let path = |name: &str| self.path(name).display().to_string();
        // Whatever becomes of the test, no member outlives it.
        let mut command = self.command("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "etcd", "--client-cert-auth", "--logger=zap"]);
        command.args(["--name", &format!("m{number}"), "--data-dir", &path(&format!("data{number}"))]);
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &cluster.join(",")]);
        command.args(["--cert-file", &path("member.pem"), "--key-file", &path("member.key")]);
        command.args(["--trusted-ca-file", &path("ca.pem")]).args(&self.flags);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        Ok(command.process_group(0).spawn()?)
    }

    /// A program where the members are.
    fn command(&self, program: &str) -> Command {
        behind(&self.place.entrance, program)
    }

    fn until_answers(&self) -> anyhow::Result<()> {
        let limit = Instant::now() + LIMIT;
        while !self.etcdctl(&["get", "nothing"])?.status.success() {
            ensure!(Instant::now() < limit, "etcd does not come up: {}", self.log());
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Runs an administrator's command, without a user.
    ///
    /// # Errors
    /// It cannot be run.
    pub fn etcdctl(&self, words: &[&str]) -> anyhow::Result<Output> {
        self.etcdctl_at(&self.endpoints().join(","), words)
    }

    fn etcdctl_at(&self, endpoints: &str, words: &[&str]) -> anyhow::Result<Output> {
        let mut command = self.command("etcdctl");
        command.env("ETCDCTL_API", "3").env("ETCDCTL_ENDPOINTS", endpoints);
        command.env("ETCDCTL_CACERT", self.path("ca.pem")).env("ETCDCTL_CERT", self.path("client.pem"));
        Ok(command.env("ETCDCTL_KEY", self.path("client.key")).args(words).output()?)
    }

    /// The same where it has to succeed; gives what it printed.
    ///
    /// # Errors
    /// It fails.
    pub fn administered(&self, words: &[&str]) -> anyhow::Result<String> {
        let ran = self.etcdctl(words)?;
        ensure!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
        Ok(String::from_utf8(ran.stdout)?)
    }

    /// Which member leads.
    ///
    /// # Errors
    /// None does.
    pub fn leader(&self) -> anyhow::Result<usize> {
        for (number, endpoint) in self.endpoints().iter().enumerate() {
            let said = self.etcdctl_at(endpoint, &["--write-out=json", "endpoint", "status"])?.stdout;
            let said: serde_json::Value = serde_json::from_slice(&said)?;
            let status = &said[0]["Status"];
            if status["leader"] == status["header"]["member_id"] {
                return Ok(number);
            }
        }
        bail!("no member leads")
    }

    /// The number of changes there.
    ///
    /// # Errors
    /// It does not answer.
    pub fn revision(&self) -> anyhow::Result<u64> {
        let said: serde_json::Value =
            serde_json::from_str(&self.administered(&["--write-out=json", "get", "nothing"])?)?;
        said["header"]["revision"].as_u64().context("no revision")
    }

    /// Sends a signal to a member.
    ///
    /// # Errors
    /// It does not run.
    pub fn signal(&self, number: usize, signal: Signal) -> anyhow::Result<()> {
        let child = self.running[number].as_ref().context("it does not run")?;
        Ok(killpg(Pid::from_raw(child.id().cast_signed()), signal)?)
    }

    /// The same to all that run.
    ///
    /// # Errors
    /// None.
    pub fn signal_all(&self, signal: Signal) -> anyhow::Result<()> {
        let running = (0..self.place.ports.len()).filter(|number| self.running[*number].is_some());
        running.into_iter().try_for_each(|number| self.signal(number, signal))
    }

    /// Ends a member by a signal.
    ///
    /// # Errors
    /// It does not run.
    pub fn end(&mut self, number: usize, signal: Signal) -> anyhow::Result<()> {
        self.signal(number, signal)?;
        let mut child = self.running[number].take().context("it does not run")?;
        child.wait()?;
        Ok(())
    }

    /// The directory of everything.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.room.path()
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        for child in self.running.iter_mut().flatten() {
            let _already_gone = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
            let _reaped = child.wait();
        }
    }
}

/// Free ones, two for each member: all are held until all are known.
fn ports() -> anyhow::Result<Vec<(u16, u16)>> {
    let held: Vec<TcpListener> =
        (0..6).map(|_| TcpListener::bind(("127.0.0.1", 0))).collect::<Result<_, _>>()?;
    let ports: Vec<u16> =
        held.iter().map(|one| Ok(one.local_addr()?.port())).collect::<std::io::Result<_>>()?;
    Ok(ports.chunks(2).map(|two| (two[0], two[1])).collect())
}
