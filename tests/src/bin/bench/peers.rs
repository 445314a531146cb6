//! The same path with other programs: `nginx` as an endpoint that costs nothing, and `wrk`, which only sends.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use tempfile::TempDir;
use tests::receiver::own_loopback;

/// How long `wrk` sends, in seconds.
const WRK_TIME: u32 = 2;
const START: Duration = Duration::from_secs(5);

/// A program of the system; none where it is not installed.
pub(crate) fn installed(program: &str) -> Option<PathBuf> {
    let places = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"];
    places.into_iter().map(|place| Path::new(place).join(program)).find(|path| path.is_file())
}

/// `nginx` with one worker that answers 202 and writes nothing; ends with this value.
pub(crate) struct Nginx {
    process: Child,
    _directory: TempDir,
    pub(crate) address: SocketAddr,
}

impl Nginx {
    pub(crate) fn start(program: &Path) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("nova-host-alerter-nginx-").tempdir()?;
        let address = TcpListener::bind((own_loopback(), 0))?.local_addr()?;
        let file = directory.path().join("nginx.conf");
        fs::write(&file, configuration(directory.path(), address))?;
        let mut command = Command::new(program);
        command.arg("-p").arg(directory.path()).arg("-c").arg(&file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let nginx = Self { process: command.spawn()?, _directory: directory, address };
        nginx.wait_for_port()?;
        Ok(nginx)
    }

    fn wait_for_port(&self) -> anyhow::Result<()> {
        let limit = Instant::now() + START;
        while TcpStream::connect(self.address).is_err() {
            ensure!(Instant::now() < limit, "nginx does not listen on {}", self.address);
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _already_gone = self.process.kill();
        let _reaped = self.process.wait();
    }
}

/// One process, so that its end is the end of all of it.
fn configuration(directory: &Path, address: SocketAddr) -> String {
    let temporary = |kind: &str| format!("{kind}_temp_path {}/{kind};\n", directory.display());
    let paths: String =
        ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].into_iter().map(temporary).collect();
    format!(
        "daemon off;\nmaster_process off;\nworker_processes 1;\npid {0}/nginx.pid;\nerror_log {0}/error.log error;\n\
         events {{ worker_connections 8192; }}\n\
         http {{\n{paths}access_log off;\nkeepalive_requests 1000000000;\n\
         server {{ listen {address} backlog=4096; location / {{ return 202; }} }}\n}}\n",
        directory.display()
    )
}

/// Whether a sender keeps its connections, as a column of figures is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connections {
    Kept,
    Closed,
}

impl Connections {
    pub(crate) const BOTH: [Self; 2] = [Self::Kept, Self::Closed];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "connections kept",
            Self::Closed => "each connection closed",
        }
    }
}

/// Requests a second that `wrk` gets answered, with so many connections.
pub(crate) fn wrk(
    program: &Path,
    address: SocketAddr,
    at_once: usize,
    connections: Connections,
) -> anyhow::Result<f64> {
    let directory = TempDir::new()?;
    let script = directory.path().join("post.lua");
    fs::write(&script, post(connections))?;
    let mut command = Command::new(program);
    command.arg("-t1").arg(format!("-c{at_once}")).arg(format!("-d{WRK_TIME}s")).arg("-s").arg(&script);
    let output = command.arg(format!("http://{address}/v1/host-failures")).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success() && !said.contains("Non-2xx"), "wrk failed: {said}");
    let rate = said.lines().find_map(|line| line.strip_prefix("Requests/sec:"));
    Ok(rate.with_context(|| format!("wrk says no rate: {said}"))?.trim().parse()?)
}

/// The mark that `wrk` sends.
const ID: &str = "01a1fdbf-0d60-71c8-80b2-0dca4f558146";

/// Whether a request is one of `wrk`, whose last ones may be read after its end.
pub(crate) fn is_of_wrk(body: &[u8]) -> bool {
    body.windows(ID.len()).any(|part| part == ID.as_bytes())
}

/// What the alerter sends of one mark, again and again.
fn post(connections: Connections) -> String {
    let close = match connections {
        Connections::Kept => "",
        Connections::Closed => "wrk.headers['Connection'] = 'close'\n",
    };
    format!(
        "wrk.method = 'POST'\n\
         wrk.headers['Content-Type'] = 'application/json'\n\
         wrk.headers['Idempotency-Key'] = '\"{ID}\"'\n\
         wrk.headers['User-Agent'] = 'nova-host-alerter/0.1.0'\n{close}\
         wrk.body = '{{\"id\":\"{ID}\",\"event_type\":\"host failure\",\"version\":\"1.0\",\"generated_time\":1795258519,\
         \"payload\":{{\"hostname\":\"compute1000.my.cloud.com\",\"on_shared_storage\":true,\"failure_time\":1795258518}}}}'\n"
    )
}
