//! Chromium without a screen, steered as the WebDriver specification has it: JSON over HTTP to chromedriver on loopback.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::iter::repeat_with;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::ops::Range;
use std::path::Path;
use std::process::{self, Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longer than any one command takes on a slow machine.
const LIMIT: Duration = Duration::from_secs(120);
/// Below the ports that the kernel gives (`ip_local_port_range`), and none of a service that the tests run.
const PORTS: Range<u16> = 20_000..25_000;
/// The value of the preference that blocks scripts.
const BLOCK: u32 = 2;

/// Makes a picture smaller, in the browser.
const PALETTE: &str = include_str!("palette.js");

/// Why this machine cannot run it.
pub fn cannot() -> Option<String> {
    let missing = |tool: &&str| !Path::new("/usr/bin").join(tool).exists();
    let tool = ["chromium", "chromedriver"].into_iter().find(missing)?;
    Some(format!("{tool} is not installed: run `make deps`"))
}

/// A browser with one window; it ends with this value.
pub struct Browser {
    driver: Child,
    // A program that writes to a closed pipe dies of it.
    _said: BufReader<ChildStdout>,
    port: u16,
    session: String,
    _home: TempDir,
}

impl Browser {
    /// A new one that runs scripts.
    ///
    /// # Errors
    /// What chromedriver or the connection to it says.
    pub fn open() -> anyhow::Result<Self> {
        Self::with(&json!({}))
    }

    /// A new one that runs none of a page's scripts.
    ///
    /// # Errors
    /// What chromedriver or the connection to it says.
    pub fn without_scripts() -> anyhow::Result<Self> {
        Self::with(&json!({"profile.managed_default_content_settings.javascript": BLOCK}))
    }

    fn with(preferences: &Value) -> anyhow::Result<Self> {
        let mut command = Command::new("/usr/bin/chromedriver");
        let port = free_port()?;
        command.arg(format!("--port={port}"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut driver = command.spawn()?;
        let mut said = BufReader::new(driver.stdout.take().context("no pipe")?);
        has_started(&mut said)?;
        let home = TempDir::new()?;
        let mut browser = Self { driver, _said: said, port, session: String::new(), _home: home };
        let data = format!("--user-data-dir={}", browser._home.path().display());
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--window-size=1280,900",
            &data,
        ];
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"binary": "/usr/bin/chromium", "args": arguments, "prefs": preferences},
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let made = browser.ask("POST", "/session", &wanted)?;
        made["sessionId"].as_str().context("no session")?.clone_into(&mut browser.session);
        Ok(browser)
    }

    /// Loads a page and everything that it names.
    ///
    /// # Errors
    /// What chromedriver or the connection to it says.
    pub fn go(&self, url: &str) -> anyhow::Result<()> {
        self.command("url", &json!({"url": url})).map(drop)
    }

    /// What the body of a function gives, run in the page.
    ///
    /// # Errors
    /// What chromedriver or the connection to it says.
    pub fn run(&self, script: &str) -> anyhow::Result<Value> {
        self.command("execute/sync", &json!({"script": script, "args": []}))
    }

    /// A command of Chrome's own protocol.
    ///
    /// # Errors
    /// What chromedriver or the connection to it says.
    pub fn chrome(&self, command: &str, parameters: &Value) -> anyhow::Result<Value> {
        self.command("goog/cdp/execute", &json!({"cmd": command, "params": parameters}))
    }

    /// What the browser has complained of since the last call.
    ///
    /// # Errors
    /// What chromedriver or the connection to it says.
    pub fn complaints(&self) -> anyhow::Result<Vec<String>> {
        let log = self.command("se/log", &json!({"type": "browser"}))?;
        let text = |line: &Value| line["message"].as_str().unwrap_or_default().to_owned();
        Ok(log.as_array().context("no log")?.iter().map(text).collect())
    }

    /// What is seen without scrolling, as a small file. The page is gone then.
    ///
    /// # Errors
    /// As any command, and where the file cannot be written.
    pub fn screen(&self, file: &Path) -> anyhow::Result<()> {
        let taken = self.capture(&json!({"format": "png"}))?;
        self.go("about:blank")?;
        let script = format!("return (async () => {{ const PNG = {}; {PALETTE} }})();", json!(taken));
        keep(self.run(&script)?.as_str().context("no picture")?, file)
    }

    fn capture(&self, wanted: &Value) -> anyhow::Result<String> {
        let taken = self.chrome("Page.captureScreenshot", wanted)?;
        Ok(taken["data"].as_str().context("no picture")?.to_owned())
    }

    fn command(&self, name: &str, parameters: &Value) -> anyhow::Result<Value> {
        self.ask("POST", &format!("/session/{}/{name}", self.session), parameters)
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> anyhow::Result<Value> {
        let mut stream = BufReader::new(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?);
        stream.get_ref().set_read_timeout(Some(LIMIT))?;
        let (body, port) = (body.to_string(), self.port);
        write!(
            stream.get_mut(),
            "{method} {path} HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer: Value = serde_json::from_slice(&content(&mut stream)?)?;
        let value = answer["value"].take();
        if let Some(error) = value["error"].as_str() {
            bail!("{path}: {error}: {}", value["message"].as_str().unwrap_or_default());
        }
        Ok(value)
    }
}

fn keep(base64: &str, file: &Path) -> anyhow::Result<()> {
    let mut decode =
        Command::new("base64").arg("-d").stdin(Stdio::piped()).stdout(fs::File::create(file)?).spawn()?;
    decode.stdin.take().context("no pipe")?.write_all(base64.as_bytes())?;
    ensure!(decode.wait()?.success(), "the picture is not in base64");
    Ok(())
}

/// A port that is free for both families, where the kernel gives none to others: with `--port=0`, chromedriver has the
/// kernel choose one of `::1`, and ends where any socket of 127.0.0.1 has the same.
fn free_port() -> anyhow::Result<u16> {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let next = || {
        let number = process::id() + TRIED.fetch_add(1, Ordering::Relaxed);
        PORTS.start + u16::try_from(number % u32::from(PORTS.end - PORTS.start)).expect("less than a u16")
    };
    let is_free = |port: &u16| {
        let addresses = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
        addresses.into_iter().all(|address| TcpListener::bind((address, *port)).is_ok())
    };
    repeat_with(next).take(PORTS.len()).find(is_free).context("no port is free for chromedriver")
}

/// Waits until chromedriver listens.
fn has_started(said: &mut impl BufRead) -> anyhow::Result<()> {
    let (mut all, mut line) = (String::new(), String::new());
    while said.read_line(&mut line)? > 0 {
        if line.contains("started successfully") {
            return Ok(());
        }
        all.push_str(&line);
        line.clear();
    }
    bail!("chromedriver does not start: {all}")
}

/// The body of an answer whose head says its length.
fn content(stream: &mut impl BufRead) -> anyhow::Result<Vec<u8>> {
    let (mut length, mut line) = (0, String::new());
    while stream.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        line.clear();
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(body)
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Only this ends the browser's own processes in order.
        let _however = self.ask("DELETE", &format!("/session/{}", self.session), &json!({}));
        let _already_gone = self.driver.kill();
        let _reaped = self.driver.wait();
    }
}
