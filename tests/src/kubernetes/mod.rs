//! A real Kubernetes API server for tests, with the etcd behind it, as child processes on a loopback address.
//!
//! There is neither a scheduler nor a controller nor a kubelet: what they would say, a scenario says itself. The resources of Cluster
//! API and Metal3 are definitions of the tests' own (`assets`), and the rights are the files that are shipped
//! (`packaging/kubernetes`). Everything ends with the value.

mod ask;
mod objects;
pub mod packages;
mod papers;
mod server;
mod who;

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

pub use objects::{CLUSTER, METAL3, NAMESPACES, Remediation, second};
pub use who::{ALL, Login, Who};

use ask::Ask;
use server::Server;

use crate::installed::source;
use crate::lab::{Lab, behind, wait};
use crate::receiver::own_loopback;

/// A server that does not answer within this time has failed.
const LIMIT: Duration = Duration::from_secs(60);
/// What Kubernetes keeps in etcd of the kinds that scenarios make.
const MADE: [&str; 4] = [
    "/registry/minions/",
    "/registry/leases/",
    "/registry/cluster.x-k8s.io/",
    "/registry/infrastructure.cluster.x-k8s.io/",
];

/// One of the two servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Where everything is kept.
    Etcd,
    /// Who answers.
    Api,
}

/// Where the servers listen, and how a command gets there.
struct Place {
    /// A command that runs what follows it there; nothing on this machine itself.
    entrance: Vec<OsString>,
    address: Ipv4Addr,
    /// Of etcd for clients and for members, and of the API.
    ports: [u16; 3],
}

impl Place {
    /// A program where the servers are.
    fn command(&self, program: impl Into<OsString>) -> Command {
        behind(&self.entrance, program)
    }
}

/// The servers, running.
pub struct Kubernetes {
    place: Place,
    etcd: Server,
    api: Server,
    generation: u32,
    files: AtomicU32,
    /// Last: the processes end before their files do.
    room: TempDir,
}

impl Kubernetes {
    /// Starts both, defines the resources and gives the users their rights.
    ///
    /// # Errors
    /// What could not be made, with the end of what the servers said.
    pub fn boot() -> anyhow::Result<Self> {
        let address = own_loopback();
        Self::at(Place { entrance: Vec::new(), address, ports: free_ports(address)? })
    }

    /// The same in the network of a lab, at its own address.
    ///
    /// # Errors
    /// What could not be made, with the end of what the servers said.
    pub fn in_lab(lab: &Lab) -> anyhow::Result<Self> {
        let IpAddr::V4(address) = lab.own_address() else { bail!("a lab without IPv4") };
        Self::at(Place { entrance: lab.entrance(), address, ports: [2379, 2380, 6443] })
    }

    fn at(place: Place) -> anyhow::Result<Self> {
        let room = tempfile::Builder::new().prefix("nha-kubernetes-").tempdir()?;
        let address = place.address;
        papers::write(room.path(), address, Who::Taint.name())?;
        who::write_tokens(&room.path().join("tokens.csv"), 0)?;
        let log = |name| room.path().join(name);
        let words = (etcd_words(room.path(), &place), api_words(room.path(), &place)?);
        let mut made = Self {
            etcd: Server::new("etcd", log("etcd.log"), place.entrance.clone(), words.0),
            api: Server::new("kube-apiserver", log("api.log"), place.entrance.clone(), words.1),
            place,
            generation: 0,
            files: AtomicU32::new(0),
            room,
        };
        made.seed().with_context(|| made.explain())?;
        Ok(made)
    }

    fn seed(&mut self) -> anyhow::Result<()> {
        self.start(Part::Etcd)?;
        self.start(Part::Api)?;
        let path = self.room.path().join("admin");
        fs::create_dir(&path)?;
        let token = self.token(Who::Admin);
        who::write_kubeconfig(&path, self.room.path(), &self.url(), (Who::Admin, Login::Token), &token)?;
        for path in [source("tests/src/kubernetes/assets"), source("packaging/kubernetes")] {
            self.kubectl(&["apply", "--filename", &path.display().to_string()], None)?;
        }
        for namespace in NAMESPACES {
            self.kubectl(&["create", "namespace", namespace], None)?;
        }
        self.kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"], None)?;
        ALL.into_iter().try_for_each(|who| self.give_rights(who))
    }

    /// Those of the shipped file: its role is bound to the user, as it is to the account in the file itself.
    fn give_rights(&self, who: Who) -> anyhow::Result<()> {
        let Some(rights) = who.rights() else { return Ok(()) };
        let role = format!("--clusterrole=nova-host-alerter-{rights}");
        let user = format!("--user={}", who.name());
        self.kubectl(&["create", "clusterrolebinding", who.name(), &role, &user], None).map(drop)
    }

    /// Where the API is.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://{}:{}", self.place.address, self.place.ports[2])
    }

    /// A kubeconfig for somebody with a token in it, in a directory of its own.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn kubeconfig(&self, who: Who) -> anyhow::Result<PathBuf> {
        self.kubeconfig_by(who, Login::Token)
    }

    /// The same for another way to show who it is. The certificates are of [`Who::Taint`].
    ///
    /// # Errors
    /// It cannot be written.
    pub fn kubeconfig_by(&self, who: Who, login: Login) -> anyhow::Result<PathBuf> {
        let directory = self.directory()?;
        who::write_kubeconfig(&directory, self.room.path(), &self.url(), (who, login), &self.token(who))
    }

    /// A new directory that ends with this value.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn directory(&self) -> anyhow::Result<PathBuf> {
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        let path = self.room.path().join(format!("files-{number}"));
        fs::create_dir(&path)?;
        Ok(path)
    }

    /// The token of a user that counts now.
    #[must_use]
    pub fn token(&self, who: Who) -> String {
        who.token(if who == Who::Admin { 0 } else { self.generation })
    }

    /// Runs kubectl as the administrator, with this on its standard input; gives what it prints.
    ///
    /// # Errors
    /// It fails.
    pub fn kubectl(&self, words: &[&str], stdin: Option<&str>) -> anyhow::Result<String> {
        let ran = self.kubectl_with(&self.room.path().join("admin/kubeconfig"), words, stdin)?;
        let complaint = String::from_utf8_lossy(&ran.stderr);
        ensure!(ran.status.success(), "kubectl {}: {}", words.join(" "), complaint.trim());
        Ok(String::from_utf8(ran.stdout)?)
    }

    /// The same as somebody, whatever becomes of it.
    ///
    /// # Errors
    /// It cannot be run.
    pub fn kubectl_with(
        &self,
        kubeconfig: &Path,
        words: &[&str],
        stdin: Option<&str>,
    ) -> anyhow::Result<Output> {
        let mut command = self.place.command(packages::program("kubectl")?);
        command.arg("--kubeconfig").arg(kubeconfig).args(words);
        // What it remembers of the server is this server's.
        command.env("HOME", self.room.path()).env("NO_PROXY", "*");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut kubectl = command.spawn()?;
        let mut pipe = kubectl.stdin.take().context("no pipe to kubectl")?;
        pipe.write_all(stdin.unwrap_or_default().as_bytes())?;
        drop(pipe);
        Ok(kubectl.wait_with_output()?)
    }

    /// Makes an object, by kubectl.
    ///
    /// # Errors
    /// The server does not take it.
    pub fn create(&self, object: &Value) -> anyhow::Result<()> {
        self.kubectl(&["create", "--filename", "-"], Some(&object.to_string())).map(drop)
    }

    /// What kubectl shows of an object: `node`, or `machines -n metal` with its words in `kind`.
    ///
    /// # Errors
    /// It is not there.
    pub fn get(&self, kind: &str, name: &str) -> anyhow::Result<Value> {
        self.get_in("", kind, name)
    }

    /// The same in a namespace.
    ///
    /// # Errors
    /// It is not there.
    pub fn get_in(&self, namespace: &str, kind: &str, name: &str) -> anyhow::Result<Value> {
        let namespace = format!("--namespace={namespace}");
        Ok(serde_json::from_str(&self.kubectl(&["get", kind, name, &namespace, "--output=json"], None)?)?)
    }

    /// All objects of a kind, in all namespaces.
    ///
    /// # Errors
    /// There is no such kind.
    pub fn list(&self, kind: &str) -> anyhow::Result<Vec<Value>> {
        let all: Value =
            serde_json::from_str(&self.kubectl(&["get", kind, "--all-namespaces", "--output=json"], None)?)?;
        Ok(all["items"].as_array().cloned().unwrap_or_default())
    }

    /// Changes an object, or its `/status`, by a JSON merge patch of the administrator.
    ///
    /// # Errors
    /// It is not there.
    pub fn patch(&self, path: &str, patch: &Value) -> anyhow::Result<()> {
        self.ask(&[Ask::merge(path, patch.clone())]).map(drop)
    }

    fn ask(&self, all: &[Ask]) -> anyhow::Result<Vec<Value>> {
        let ca = self.room.path().join(papers::CA);
        ask::send(self.place.command("curl"), all, &self.url(), &ca, &self.token(Who::Admin))
    }

    /// Everything as it was in the beginning: both servers answer, and nothing is there that a scenario made, not even what
    /// a finalizer keeps.
    ///
    /// # Errors
    /// A server does not come up, or etcd does not answer.
    pub fn clean(&mut self) -> anyhow::Result<()> {
        for part in [Part::Etcd, Part::Api] {
            if !self.server(part).is_up() {
                self.start(part)?;
            }
        }
        MADE.into_iter().try_for_each(|prefix| self.etcdctl(&["del", "--prefix", prefix]))
    }

    fn etcdctl(&self, words: &[&str]) -> anyhow::Result<()> {
        let mut command = self.place.command("etcdctl");
        command.env("ETCDCTL_API", "3").env("ETCDCTL_ENDPOINTS", self.etcd_url());
        let ran = command.args(words).output()?;
        ensure!(ran.status.success(), "etcdctl: {}", String::from_utf8_lossy(&ran.stderr));
        Ok(())
    }

    fn etcd_url(&self) -> String {
        format!("http://{}:{}", self.place.address, self.place.ports[0])
    }

    /// Starts a server and waits until it answers.
    ///
    /// # Errors
    /// It does not: with the end of what it said.
    pub fn start(&mut self, part: Part) -> anyhow::Result<()> {
        self.server(part).launch()?;
        wait::until("a server of Kubernetes to answer", LIMIT, || {
            self.server(part).must_live()?;
            self.answers(part).map(Some)
        })
        .with_context(|| self.explain())
    }

    fn answers(&self, part: Part) -> anyhow::Result<()> {
        let url = match part {
            Part::Etcd => format!("{}/health", self.etcd_url()),
            Part::Api => format!("{}/readyz", self.url()),
        };
        let mut curl = self.place.command("curl");
        curl.args(["--silent", "--show-error", "--fail", "--max-time", "5", "--noproxy", "*", &url]);
        let ran = curl.arg("--cacert").arg(self.room.path().join(papers::CA)).output()?;
        ensure!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        Ok(())
    }

    /// Waits until the API takes changes: it may answer before.
    ///
    /// # Errors
    /// It does not.
    pub fn wait_until_writable(&self) -> anyhow::Result<()> {
        let path = "/api/v1/namespaces/default";
        let change = || {
            self.patch(path, &json!({"metadata": {"annotations": {"written": "by a test"}}}))?;
            self.patch(path, &json!({"metadata": {"annotations": {"written": null}}})).map(Some)
        };
        wait::until("the API to take changes", LIMIT, change)
    }

    /// Ends a server at once, as a crash would.
    ///
    /// # Errors
    /// It does not end.
    pub fn kill(&mut self, part: Part) -> anyhow::Result<()> {
        self.server(part).kill()
    }

    /// Stops a server where it is: connections are taken, and nothing is answered.
    ///
    /// # Errors
    /// It does not run.
    pub fn freeze(&mut self, part: Part) -> anyhow::Result<()> {
        self.server(part).signal(Signal::SIGSTOP)
    }

    /// Lets a frozen server go on.
    ///
    /// # Errors
    /// It does not run.
    pub fn thaw(&mut self, part: Part) -> anyhow::Result<()> {
        self.server(part).signal(Signal::SIGCONT)
    }

    fn server(&mut self, part: Part) -> &mut Server {
        match part {
            Part::Etcd => &mut self.etcd,
            Part::Api => &mut self.api,
        }
    }

    /// The last log lines of both, for a scenario that failed.
    #[must_use]
    pub fn explain(&self) -> String {
        [&self.etcd, &self.api].map(Server::said_last).concat()
    }
}

/// Three: of etcd for clients and for members, and of the API. All are held until all are known.
fn free_ports(address: Ipv4Addr) -> anyhow::Result<[u16; 3]> {
    let bind = || TcpListener::bind((address, 0));
    let held = [bind()?, bind()?, bind()?];
    let [first, second, third] = held.each_ref().map(TcpListener::local_addr);
    Ok([first?.port(), second?.port(), third?.port()])
}

fn etcd_words(room: &Path, place: &Place) -> Vec<OsString> {
    let Place { address, ports, .. } = place;
    let [client, peer] = [ports[0], ports[1]].map(|port| format!("http://{address}:{port}"));
    let words = [
        "etcd".to_owned(),
        "--logger=zap".to_owned(),
        format!("--data-dir={}", room.join("etcd").display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
    ];
    words.map(OsString::from).into()
}

fn api_words(room: &Path, place: &Place) -> anyhow::Result<Vec<OsString>> {
    let Place { address, ports, .. } = place;
    let file = |name: &str| room.join(name).display().to_string();
    let program = packages::program("kube-apiserver")?;
    let words = [
        format!("--etcd-servers=http://{address}:{}", ports[0]),
        format!("--bind-address={address}"),
        format!("--secure-port={}", ports[2]),
        // No pod asks for it.
        "--advertise-address=192.0.2.1".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        format!("--cert-dir={}", file("certificates")),
        format!("--tls-cert-file={}", file("server.crt")),
        format!("--tls-private-key-file={}", file("server.key")),
        format!("--client-ca-file={}", file(papers::CA)),
        format!("--token-auth-file={}", file("tokens.csv")),
        "--authorization-mode=RBAC".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        format!("--service-account-key-file={}", file("accounts.pub")),
        format!("--service-account-signing-key-file={}", file("accounts.key")),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
    ];
    Ok([program.into_os_string()].into_iter().chain(words.map(OsString::from)).collect())
}
