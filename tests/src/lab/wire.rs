//! One question and one answer between a node and the host, as lines of JSON over the lab's socket.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use anyhow::{Context, ensure};
use serde_json::Value;

/// The service's socket as the nodes see it.
pub(super) const SOCKET: &str = "/run/lab/service.sock";

/// Asks the host; the connection ends with the answer.
pub(super) fn ask(question: &Value) -> anyhow::Result<Value> {
    let mut stream = UnixStream::connect(SOCKET).context("the lab's service cannot be reached")?;
    write(&mut stream, question)?;
    read(&stream)
}

pub(super) fn write(stream: &mut UnixStream, value: &Value) -> anyhow::Result<()> {
    Ok(stream.write_all(format!("{value}\n").as_bytes())?)
}

pub(super) fn read(stream: &UnixStream) -> anyhow::Result<Value> {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    ensure!(line.ends_with('\n'), "the line ended early");
    Ok(serde_json::from_str(&line)?)
}

/// A text member of a message; empty where it is absent.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}
