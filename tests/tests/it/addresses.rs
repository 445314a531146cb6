//! Where an endpoint is: its name finds no address, or another one than before. The
//! daemon runs in namespaces of its own.

use std::fs::{self};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use tests::installed;
use tests::process::Bound;
use tests::programs::{Site, built};
use tests::receiver::{Answer, Receiver};
use tests::trials::Group;

use crate::path::{LIMIT, delivery, until, until_settled};

/// The name that has no address but in the daemon's own `/etc/hosts`.
const NAME: &str = "recovery.example";
/// Lays two files over the system's, then becomes the command. No name server is asked.
const WITH_HOSTS: &str = r#"
    mount --bind "$1" /etc/hosts
    mount --bind "$2" /etc/nsswitch.conf
    shift 2
    exec "$@"
"#;

/// Its tests, and why they cannot run here, if they cannot.
pub(crate) fn group() -> Group {
    let tests = tests::trials![a_name_without_an_address_is_asked_again_and_a_new_address_is_used,];
    Group { cannot: installed::cannot(&["unshare", "nsenter"]), tests }
}

/// A daemon that another program starts where it shall run.
fn start(site: &Site, mut place: Command) -> Bound {
    place.arg(built("nova-host-alerter").unwrap()).arg("run").arg("--config").arg(site.config());
    let apart = Bound(place.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    until("it answers", || site.alerter(&["status", "--ocf"]).unwrap().status.success());
    apart
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
    let _daemon = start(&site, with_hosts(site.directory(), &hosts));
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
