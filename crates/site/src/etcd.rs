//! `[store.etcd]`: the address of the register in etcd. The alerter, the commands and the fence agent all read it here.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use register::{Etcd, Login};

use crate::file::{absolute, read_private, read_trusted};
use crate::plain::is_plain_name;
use crate::problem::{ConfigErrors, Place, Problems, Source};
use crate::reader::Section;
use crate::{fragments, inputs};

/// Its table.
const TABLE: &str = "etcd";

/// Reads `[store.etcd]` in `store`; `None` if it is missing, or if anything in it is wrong.
pub fn read(store: &mut Section<'_, '_>) -> Option<Etcd> {
    let mut section = store.section(TABLE);
    if !section.is_there() {
        return None;
    }
    let endpoints = endpoints(&mut section);
    let ca = section.text("ca-file", trusted);
    let identity = identity(&mut section);
    let login = login(&mut section);
    in_the_clear(&mut section, endpoints.as_deref().unwrap_or_default());
    let prefix = section.text("prefix", prefix);
    section.needs("prefix", "set one with this cluster's name, such as \"/nova-host-alerter/CLUSTER\"");
    let is_sound = section.is_sound();
    section.finish();
    let etcd = Etcd { endpoints: endpoints?, ca, identity, login, prefix: prefix? };
    is_sound.then_some(etcd)
}

/// The same from a configuration of which nothing else is read, so that no fault elsewhere in it hides the register. The
/// second value has the faults of the table.
pub fn alone(main: &Path) -> (Option<Etcd>, Vec<String>) {
    let mut elsewhere = Problems::default();
    let sources = fragments::read(main, &mut elsewhere);
    let mut problems = Problems::default();
    let parsed: Vec<_> = sources.iter().map(|source| fragments::parse(source, &mut elsewhere)).collect();
    let nothing = Source { rank: 0, file: main.to_owned(), text: String::new() };
    let start = Place { source: sources.first().unwrap_or(&nothing), offset: 0 };
    let inputs = inputs::merge(&parsed, start);
    let etcd = read(&mut Section::root(&inputs, &mut problems).section("store"));
    let wrong = problems.into_result().err();
    (etcd, wrong.iter().flat_map(ConfigErrors::problems).map(ToString::to_string).collect())
}

/// Whether `[store.etcd]` is there if the register is in etcd.
pub fn complain(store: &mut Section<'_, '_>) {
    if !store.section(TABLE).is_there() {
        store.complain("register", "\"etcd\" needs [store.etcd] with endpoints and prefix");
    }
}

fn endpoints(section: &mut Section<'_, '_>) -> Option<Vec<String>> {
    let endpoints = section.texts("endpoints", endpoint);
    if endpoints.as_ref().map_or(!section.has("endpoints"), Vec::is_empty) {
        section.missing(
            "[store.etcd] has no endpoints: name the members of etcd, such as [\"https://etcd1:2379\", \"https://etcd2:2379\"]",
        );
    }
    Some(endpoints?.into_iter().map(str::to_owned).collect())
}

/// An endpoint that etcdctl accepts: it separates several by commas.
fn endpoint(text: &str) -> Result<(), String> {
    let authority = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let parts = authority.and_then(|authority| authority.trim_end_matches('/').rsplit_once(':'));
    let is_plain = |host: &str| {
        let of_a_host =
            |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b':' | b'[' | b']');
        !host.is_empty() && host.bytes().all(of_a_host)
    };
    match parts {
        Some((host, port)) if is_plain(host) && port.parse::<u16>().is_ok_and(|port| port > 0) => Ok(()),
        _ => Err("must be https://HOST:PORT (http:// only if nobody else can listen)".to_owned()),
    }
}

/// `certificate-file` and `key-file`.
fn identity(section: &mut Section<'_, '_>) -> Option<(PathBuf, PathBuf)> {
    let certificate = section.text("certificate-file", trusted);
    let key = section.text("key-file", private);
    section.both_or_neither("certificate-file", "key-file");
    certificate.zip(key)
}

/// `user` and `password-file`.
fn login(section: &mut Section<'_, '_>) -> Option<Login> {
    let user = section.text("user", user);
    let password = section.text("password-file", password);
    section.both_or_neither("user", "password-file");
    user.zip(password).map(|(user, password)| Login { user, password })
}

/// A password goes to any endpoint that answers.
fn in_the_clear(section: &mut Section<'_, '_>, endpoints: &[String]) {
    if !section.has("password-file") && !section.has("user") {
        return;
    }
    for (index, _) in endpoints.iter().enumerate().filter(|(_, endpoint)| is_in_the_clear(endpoint)) {
        section.complain_in_list(
            "endpoints",
            index,
            "the password of user would be sent unencrypted: use https, or remove user and password-file",
        );
    }
}

/// Whether others than this machine can read the traffic.
fn is_in_the_clear(endpoint: &str) -> bool {
    let Some((host, _)) = endpoint.strip_prefix("http://").and_then(|rest| rest.rsplit_once(':')) else {
        return false;
    };
    let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    !address.map_or(host == "localhost", |address| address.to_canonical().is_loopback())
}

fn trusted(text: &str) -> Result<PathBuf, String> {
    let path = absolute(text)?;
    read_trusted(&path).map(|_| path)
}

fn private(text: &str) -> Result<PathBuf, String> {
    let path = absolute(text)?;
    read_private(&path).map(|_| path)
}

/// etcdctl takes everything after the first colon for the password.
fn user(text: &str) -> Result<String, String> {
    let is_plain = !text.is_empty() && !text.contains(':') && !text.chars().any(char::is_control);
    if is_plain { Ok(text.to_owned()) } else { Err("must be the name of a user, without a colon".to_owned()) }
}

/// The one line of the file.
fn password(text: &str) -> Result<String, String> {
    let bytes = read_private(&absolute(text)?)?;
    let text = String::from_utf8(bytes).map_err(|_| "the file holds no text".to_owned())?;
    match text.trim() {
        "" => Err("the file is empty".to_owned()),
        text if text.contains(char::is_control) => Err("the password must be one line".to_owned()),
        text => Ok(text.to_owned()),
    }
}

/// A slash and a name, or several; the one behind them is ours. Keys are in texts that etcdctl splits, so few characters
/// are allowed.
fn prefix(text: &str) -> Result<String, String> {
    let whole = text.trim_end_matches('/');
    let is_path = whole.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_name));
    match is_path {
        true => Ok(format!("{whole}/")),
        false => Err("must be \"/NAME\" or \"/NAME/NAME\", of letters, digits, `.`, `_` and `-`".to_owned()),
    }
}

fn is_name(text: &str) -> bool {
    text.split('.').all(is_plain_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_may_be_asked_in_the_clear() {
        for own in ["http://127.0.0.1:1/", "http://[::1]:2379", "http://localhost:1", "https://etcd1:2379"] {
            assert!(!is_in_the_clear(own), "{own}");
        }
        for open in ["http://etcd1:2379", "http://10.0.0.1:1", "http://[fe80::1]:1", "http://localhost.x:1"] {
            assert!(is_in_the_clear(open), "{open}");
        }
    }
}
