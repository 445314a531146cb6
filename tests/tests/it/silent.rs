//! Clients that connect and ask nothing: the daemon keeps descriptors for its own work, and answers those who ask.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use tests::installed;
use tests::lab::wait;
use tests::programs::Site;
use tests::receiver::Receiver;
use tests::trials::Group;

use crate::path::{LIMIT, host, until};

/// Its tests; `prlimit` is of util-linux.
pub(crate) fn group() -> Group {
    let tests = tests::trials![silent_clients_do_not_keep_a_mark_back];
    Group { cannot: installed::cannot(&["prlimit"]), tests }
}

/// Descriptors of the daemon, and silent clients at each of its doors: each alone would take them all.
const DESCRIPTORS: usize = 128;
const SILENT: usize = 150;

/// The broken variants leave one of the doors without a bound, or bound each by itself: no descriptor is left for the receiver.
fn silent_clients_do_not_keep_a_mark_back() {
    let receiver = Receiver::on_loopback().unwrap();
    let mut site = Site::new(receiver.address()).unwrap();
    let at = |name: &str| site.directory().join(format!("{name}.sock"));
    let doors = [site.directory().join("state/control.sock"), at("health"), at("page"), at("metrics")];
    let table = |name: &str, door: &Path| format!("[{name}]\nuri = \"unix://{}\"\n", door.display());
    let more =
        ["healthcheck", "page", "metrics"].iter().zip(&doors[1..]).map(|(name, door)| table(name, door));
    let text = fs::read_to_string(site.config()).unwrap() + &more.collect::<String>();
    fs::write(site.config(), text).unwrap();
    let pid = site.start().unwrap();
    let limit = format!("--nofile={DESCRIPTORS}:{DESCRIPTORS}");
    assert!(Command::new("prlimit").args(["--pid", &pid.to_string(), &limit]).status().unwrap().success());
    let connect = |door: &PathBuf| -> Vec<UnixStream> {
        wait::until("the door to be there", LIMIT, || Ok(UnixStream::connect(door).ok())).unwrap();
        (0..SILENT).map(|_| UnixStream::connect(door).unwrap()).collect()
    };
    let silent: Vec<_> = doors.iter().map(connect).collect();
    site.fence("compute1").unwrap();
    until("the host to be reported", || {
        receiver.received().iter().any(|request| host(request) == "compute1.my.cloud.com")
    });
    assert!(site.answers().unwrap(), "nor who asks at the control socket");
    drop(silent);
}
