//! Where an endpoint is: its name finds no address, or another one than before; and a redirect that leads elsewhere. The
//! daemon runs in namespaces of its own.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;

use nix::sched::{CloneFlags, setns};
use tests::installed;
use tests::programs::{Site, built};
use tests::receiver::{Answer, Receiver};
use tests::trials::Group;

use crate::path::{LIMIT, delivery, json, until, until_settled};

/// The name that has no address but in the daemon's own `/etc/hosts`.
const NAME: &str = "recovery.example";
/// Where clouds give a machine its secrets.
const METADATA: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);
/// Lays two files over the system's, then becomes the command. No name server is asked.
const WITH_HOSTS: &str = r#"
    mount --bind "$1" /etc/hosts
    mount --bind "$2" /etc/nsswitch.conf
    shift 2
    exec "$@"
"#;
/// A network with nothing but loopback, which is the place of secrets too.
const WITH_METADATA: &str = r#"
    ip link set lo up
    ip address add "$1/32" dev lo
    echo ready
    exec cat
"#;

/// Its tests, and why they cannot run here, if they cannot.
pub(crate) fn group() -> Group {
    let tests = tests::trials![
        a_name_without_an_address_is_asked_again_and_a_new_address_is_used,
        a_redirect_to_the_metadata_service_is_not_followed,
    ];
    Group { cannot: installed::cannot(&["unshare", "nsenter", "ip"]), tests }
}

/// A daemon that another program starts where it shall run.
struct Apart(Child);

impl Apart {
    fn start(site: &Site, mut place: Command) -> Self {
        place.arg(built("nova-host-alerter").unwrap()).arg("run").arg("--config").arg(site.config());
        let apart = Self(place.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        until("it answers", || site.alerter(&["status", "--ocf"]).unwrap().status.success());
        apart
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        let _already_gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

fn with_hosts(directory: &Path, hosts: &Path) -> Command {
    let switch = directory.join("nsswitch.conf");
    fs::write(&switch, "hosts: files\n").unwrap();
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "--", "sh", "-ec", WITH_HOSTS, "sh"]);
    command.arg(hosts).arg(switch);
    command
}

fn retry(site: &Site) {
    assert!(site.alerter(&["retry", "--all"]).unwrap().status.success());
}

/// S1-16, S4-20: the name is resolved for each attempt. The broken variant goes on with the address that it found first:
/// it would notice nothing, since that one still answers.
fn a_name_without_an_address_is_asked_again_and_a_new_address_is_used() {
    let (old, other) = (Receiver::on_loopback().unwrap(), Receiver::on_loopback().unwrap());
    let (there, port) = (other.address().ip(), old.address().port());
    let new = Receiver::listen(move || TcpListener::bind((there, port))).unwrap();
    old.answer(Answer::Status(503));
    let site = Site::new(old.address()).unwrap();
    let config = fs::read_to_string(site.config()).unwrap();
    let config = config.replace(&old.address().to_string(), &format!("{NAME}:{port}"));
    fs::write(site.config(), config + "allow-http = true\n").unwrap();
    let hosts = site.directory().join("hosts");
    let name = |text: &str| fs::write(&hosts, format!("127.0.0.1 localhost\n{text}\n")).unwrap();

    name("");
    let _daemon = Apart::start(&site, with_hosts(site.directory(), &hosts));
    site.fence("compute1").unwrap();
    until("the name has no address", || delivery(&site, "compute1")["last"]["kind"] == "dns");
    name(&format!("{} {NAME}", old.address().ip()));
    retry(&site);
    until("it has one", || delivery(&site, "compute1")["last"]["kind"] == "unavailable");
    name(&format!("{there} {NAME}"));
    retry(&site);
    let received = new.wait_for(1, LIMIT).unwrap();
    until_settled(&site);
    assert_eq!(new.received().len(), 1);
    assert!(old.received().iter().all(|request| request.body == received[0].body));
    assert_eq!(received[0].header("host"), Some(format!("{NAME}:{port}").as_str()));
    assert!(TcpStream::connect(old.address()).is_ok());
}

/// A network of its own, held by a process that ends with this one.
struct Network {
    holder: Child,
    namespace: Arc<File>,
}

impl Network {
    fn new() -> Self {
        let mut command = Command::new("unshare");
        command.args(["--net", "--", "sh", "-ec", WITH_METADATA, "sh", &METADATA.to_string()]);
        let mut holder = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let namespace = Arc::new(File::open(format!("/proc/{}/ns/net", holder.id())).unwrap());
        Self { holder, namespace }
    }

    fn receiver(&self, address: Ipv4Addr) -> Receiver {
        let namespace = Arc::clone(&self.namespace);
        Receiver::listen(move || within(&namespace, || TcpListener::bind((address, 80)))).unwrap()
    }

    fn command(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.holder.id())).arg("--");
        command
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _already_gone = self.holder.kill();
        let _reaped = self.holder.wait();
    }
}

/// A namespace belongs to a thread, hence one of its own.
fn within<T: Send>(namespace: &File, act: impl FnOnce() -> T + Send) -> T {
    let there = move || {
        setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
        act()
    };
    thread::scope(|scope| scope.spawn(there).join().unwrap())
}

/// S4-30: whatever an endpoint calls its redirect, no request goes to the place that it names. The broken variant asks
/// there: it is heard.
fn a_redirect_to_the_metadata_service_is_not_followed() {
    let network = Network::new();
    let (endpoint, metadata) = (network.receiver(Ipv4Addr::LOCALHOST), network.receiver(METADATA));
    let site = Site::new(endpoint.address()).unwrap();
    let _daemon = Apart::start(&site, network.command());
    let mut attempts = 0;
    for code in [301, 302, 303, 307, 308] {
        for place in [format!("http://{METADATA}/latest/meta-data/"), format!("//{METADATA}/")] {
            let answer = format!("HTTP/1.1 {code} Moved\r\nlocation: {place}\r\ncontent-length: 0\r\n\r\n");
            endpoint.answer(Answer::Raw(answer.into_bytes()));
            attempts += 1;
            if attempts == 1 {
                site.fence("compute1").unwrap();
            } else {
                retry(&site);
            }
            until("it is refused", || {
                let delivery = delivery(&site, "compute1");
                delivery["state"] == "parked" && delivery["attempts"] == attempts
            });
            assert_eq!(delivery(&site, "compute1")["last"]["kind"], "redirect");
        }
    }
    assert!(metadata.received().is_empty(), "a redirect was followed");
    let mut careless = within(&network.namespace, || TcpStream::connect((METADATA, 80))).unwrap();
    careless.write_all(b"GET /latest/meta-data/ HTTP/1.1\r\n\r\n").unwrap();
    metadata.wait_for(1, LIMIT).unwrap();

    endpoint.answer(Answer::Status(200));
    retry(&site);
    until_settled(&site);
    assert_eq!(json(&site, &["show", "compute1"])[0]["state"], "acknowledged");
    assert_eq!(metadata.received().len(), 1);
}
