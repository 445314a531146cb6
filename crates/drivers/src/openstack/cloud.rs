//! A site's cloud: `clouds.yaml` with `secure.yaml` over it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Url;
use secrecy::{ExposeSecret as _, SecretSlice};
use site::{Section, absolute, must_be_absolute, read_private, read_trusted, text_if};

use super::catalog::{Choice, Service};
use super::credentials::{Credentials, text};
use super::words::{self, Words};
use crate::driver::fingerprint;
use crate::kept::{Seen, Unusable};
use crate::web::{IdentityFiles, address, authorities, target};

/// The path of `clouds.yaml`, unless the route sets it. A daemon has no working directory and no home to search.
const CLOUDS_FILE: &str = "/etc/openstack/clouds.yaml";
/// This file is beside it and overrides it.
const SECURE_NAME: &str = "secure.yaml";
/// Keys that make a file secret.
const SECRETS: [&str; 3] = ["auth.password", "auth.application_credential_secret", "auth.token"];
/// Keystone usually gives a token within this time, and the view that allowed the mark is still no older than one in an
/// outbox. A test's machine may be busy for longer.
pub(super) const PATIENCE: Duration = Duration::from_millis(if cfg!(test) { 30_000 } else { 500 });

/// A route's settings of its cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudOptions {
    /// Its name in `clouds.yaml`; where unset, the only one there.
    pub cloud: Option<String>,
    /// `clouds.yaml`, if not in /etc/openstack.
    pub clouds_file: Option<PathBuf>,
    /// Instead of the catalog's address; it may have `%(project_id)s` in it.
    pub endpoint: Option<String>,
    /// Whether plain http is allowed for Keystone and the service.
    pub allow_http: bool,
    /// Limit of a whole exchange.
    pub timeout: Duration,
    /// How long an exchange waits for a token from its beginning.
    pub patience: Duration,
}

impl CloudOptions {
    /// A cloud of this file, with defaults alone.
    pub fn of_file(clouds_file: PathBuf) -> Self {
        Self {
            cloud: None,
            clouds_file: Some(clouds_file),
            endpoint: None,
            allow_http: false,
            timeout: Duration::from_secs(60),
            patience: PATIENCE,
        }
    }
}

/// A cloud as its files describe it.
#[derive(Debug)]
pub(super) struct Cloud {
    /// Its name for people.
    pub(super) name: String,
    /// The address for tokens.
    pub(super) token_url: Url,
    /// The credentials.
    pub(super) credentials: Credentials,
    /// The CAs of the certificates; if unset, the system's.
    pub(super) ca_file: Option<PathBuf>,
    /// Our certificate and key in TLS.
    pub(super) identity: Option<IdentityFiles>,
    interfaces: Vec<String>,
    region: Option<String>,
    /// Addresses instead of the catalog's, by the service's type.
    instead: BTreeMap<String, String>,
}

impl Cloud {
    /// Reads it as it is now, and notes every file that it is made of.
    ///
    /// # Errors
    /// One sentence without a secret, and the key of the route that it concerns.
    pub(super) fn read(options: &CloudOptions, seen: &mut Seen) -> Result<Self, Unusable> {
        let (name, words) = words_of(options, seen)?;
        let wrong = |why: String| Unusable::new("cloud", format!("cloud {name}: {why}"));
        of_words(name.clone(), &words, options, seen).map_err(wrong)
    }

    /// Which cloud and project this is, on one line and without a secret. Another interface or user is still the same
    /// cloud.
    pub(super) fn target(&self, options: &CloudOptions) -> String {
        let auth = target(&self.token_url).replace("/auth/tokens", "");
        let part = |word: &str, value: Option<&String>| value.map(|value| format!(", {word} {value}"));
        let instead = options.endpoint.clone().or_else(|| {
            let all = self.instead.values().cloned().collect::<Vec<_>>().join(" ");
            (!all.is_empty()).then_some(all)
        });
        let parts = [
            part("region", self.region.as_ref()),
            part("project", self.credentials.project.as_ref()),
            part("endpoint", instead.map(|all| addresses(&all)).as_ref()),
        ];
        format!("{auth}{}", parts.into_iter().flatten().collect::<String>()).replace(char::is_control, "")
    }

    /// Which address of a service is wanted; `instead` is the route's own address.
    pub(super) fn choice(&self, instead: Option<&String>, service: &Service) -> Choice {
        let own = || service.types.iter().find_map(|word| self.instead.get(&word.replace('-', "_")).cloned());
        Choice {
            interfaces: self.interfaces.clone(),
            region: self.region.clone(),
            instead: instead.cloned().or_else(own),
        }
    }
}

/// The cloud's name and words: `secure.yaml` overrides `clouds.yaml`, key by key.
fn words_of(options: &CloudOptions, seen: &mut Seen) -> Result<(String, Words), Unusable> {
    let about = |file: &Path, key| {
        let file = file.display().to_string();
        move |why: String| Unusable::new(key, format!("{file}: {why}"))
    };
    let clouds = options.clouds_file.clone().unwrap_or_else(|| CLOUDS_FILE.into());
    let secure = clouds.with_file_name(SECURE_NAME);
    [&clouds, &secure].into_iter().for_each(|file| seen.note(file));
    let mut all = clouds_of(&clouds, read_trusted).map_err(about(&clouds, "clouds-file"))?;
    let name = chosen(options.cloud.as_deref(), &all).map_err(about(&clouds, "cloud"))?;
    let mut words = all.remove(&name).unwrap_or_default();
    if SECRETS.iter().any(|secret| words.contains_key(*secret)) {
        read_private(&clouds).map(SecretSlice::from).map_err(about(&clouds, "clouds-file"))?;
    }
    if secure.exists() {
        let mut over = clouds_of(&secure, read_private).map_err(about(&secure, "clouds-file"))?;
        words.extend(over.remove(&name).unwrap_or_default());
    }
    Ok((name, words))
}

fn clouds_of(
    file: &Path,
    read: impl FnOnce(&Path) -> Result<Vec<u8>, String>,
) -> Result<BTreeMap<String, Words>, String> {
    must_be_absolute(file)?;
    let bytes = SecretSlice::from(read(file)?);
    let text = std::str::from_utf8(bytes.expose_secret()).map_err(|_| "the file holds no text".to_owned())?;
    words::clouds(text)
}

/// The named cloud, or the only one.
fn chosen(cloud: Option<&str>, all: &BTreeMap<String, Words>) -> Result<String, String> {
    match (cloud, all.len()) {
        (Some(cloud), _) if all.contains_key(cloud) => Ok(cloud.to_owned()),
        (Some(_), _) => Err("it has no cloud of this name".to_owned()),
        (None, 1) => Ok(all.keys().next().cloned().unwrap_or_default()),
        (None, 0) => Err("it has no cloud under clouds".to_owned()),
        (None, _) => Err("it has more than one cloud: set cloud to the name of one".to_owned()),
    }
}

fn of_words(name: String, words: &Words, options: &CloudOptions, seen: &mut Seen) -> Result<Cloud, String> {
    if words.contains_key("profile") || words.contains_key("cloud") {
        return Err("a vendor's profile is not supported: write its settings out".to_owned());
    }
    if is(words, "insecure") == Some(true) || is(words, "verify") == Some(false) {
        return Err("it turns off certificate checks (verify, insecure): set cacert there".to_owned());
    }
    let token_url = token_url(words, options.allow_http)?;
    let credentials = Credentials::read(words)?;
    let (ca_file, identity) = (text(words, "cacert").map(PathBuf::from), identity(words)?);
    let own = identity.iter().flat_map(|files| [&files.certificate, &files.key]);
    ca_file.iter().chain(own).for_each(|file| seen.note(file));
    if let Some(file) = ca_file.as_deref() {
        authorities(file).map_err(|why| format!("cacert: {why}"))?;
    }
    let (interfaces, region) = (interfaces(words)?, text(words, "region_name"));
    let instead = instead(words);
    Ok(Cloud { name, token_url, credentials, ca_file, identity, interfaces, region, instead })
}

fn is(words: &Words, key: &str) -> Option<bool> {
    match text(words, key)?.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// `auth_url` may have the version or not; only one version is supported.
fn token_url(words: &Words, allow_http: bool) -> Result<Url, String> {
    let given = text(words, "auth.auth_url").ok_or("there is no auth_url under auth")?;
    let mut url = address(&given, allow_http).map_err(|why| format!("auth_url: {why}"))?;
    let path = url.path().trim_end_matches('/').to_owned();
    match path.rsplit('/').next() {
        Some("v3") => url.set_path(&format!("{path}/auth/tokens")),
        Some("v2.0") => {
            return Err("auth_url has version 2, which is not supported: use that of version 3".to_owned());
        }
        _ => url.set_path(&format!("{path}/v3/auth/tokens")),
    }
    url.set_query(None);
    Ok(url)
}

fn identity(words: &Words) -> Result<Option<IdentityFiles>, String> {
    match (text(words, "cert"), text(words, "key")) {
        (Some(certificate), Some(key)) => {
            Ok(Some(IdentityFiles { certificate: certificate.into(), key: key.into() }))
        }
        (None, None) => Ok(None),
        _ => Err("cert and key have an effect only together: set both, or neither".to_owned()),
    }
}

fn interfaces(words: &Words) -> Result<Vec<String>, String> {
    let given = text(words, "interface").or_else(|| text(words, "endpoint_type"));
    let Some(given) = given else { return Ok(vec!["public".to_owned()]) };
    let all: Vec<String> =
        given.split(',').map(|word| word.trim().trim_end_matches("URL").to_owned()).collect();
    match all.iter().all(|word| ["public", "internal", "admin"].contains(&word.as_str())) {
        true => Ok(all),
        false => Err("interface must be public, internal or admin".to_owned()),
    }
}

fn instead(words: &Words) -> BTreeMap<String, String> {
    let all = words.keys().filter_map(|key| {
        let word = key.strip_suffix("_endpoint_override")?;
        Some((word.to_owned(), text(words, key)?))
    });
    all.collect()
}

/// Addresses with blanks between them, as they may be shown.
fn addresses(all: &str) -> String {
    let one = |text: &str| text.parse().map_or_else(|_| fingerprint(text), |url| target(&url));
    all.split_whitespace().map(one).collect::<Vec<_>>().join(" ")
}

/// The longest time limit of an exchange. A controller without its message bus never answers.
const LONGEST: u32 = 300;
/// The default time limit: a service may wait for a lock of its database.
const USUAL: u32 = 60;

/// Asks for every key, so that each is checked whatever is wrong with the others.
pub(crate) fn read(table: &mut Section<'_, '_>) -> CloudOptions {
    let timeout = Duration::from_secs(table.number("timeout", 1..=LONGEST).unwrap_or(USUAL).into());
    read_within(table, timeout)
}

/// The same, where each exchange has this time limit.
pub fn read_within(table: &mut Section<'_, '_>, timeout: Duration) -> CloudOptions {
    let cloud = table.text("cloud", name);
    let clouds_file = table.text("clouds-file", absolute);
    let allow_http = table.flag("allow-http").unwrap_or(false);
    let endpoint = table.text("endpoint", |text| base(text, allow_http));
    CloudOptions { cloud, clouds_file, endpoint, allow_http, timeout, patience: PATIENCE }
}

/// An address that a path can be put behind.
fn base(text: &str, allow_http: bool) -> Result<String, String> {
    text_if(address(text, allow_http)?.query().is_none(), text, "must be an address without a query (?)")
}

fn name(text: &str) -> Result<String, String> {
    text_if(!text.is_empty() && !text.contains(char::is_control), text, "must be a name on one line")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use tempfile::TempDir;

    use super::super::catalog::{INSTANCE_HA, WORKFLOW};
    use super::*;

    const CLOUDS: &str = "clouds:
  one:
    auth: {auth_url: 'https://k.example/identity/', user_id: u, project_id: p}
    region_name: R1
    interface: [internal, public]
    instance_ha_endpoint_override: https://m.example/v1/%(project_id)s
";
    const SECURE: &str = "clouds: {one: {auth: {password: s3kr1t, project_id: over}}, two: {}}\n";

    struct Room(TempDir);

    impl Room {
        fn with(files: &[(&str, &str, u32)]) -> Self {
            let room = Self(tempfile::tempdir().unwrap());
            for (name, text, mode) in files {
                fs::write(room.path(name), text).unwrap();
                fs::set_permissions(room.path(name), fs::Permissions::from_mode(*mode)).unwrap();
            }
            room
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn options(&self) -> CloudOptions {
            CloudOptions::of_file(self.path("clouds.yaml"))
        }
    }

    fn why(options: &CloudOptions) -> String {
        let why = Cloud::read(options, &mut Seen::default()).unwrap_err().to_string();
        assert!(!why.contains("s3kr1t"), "{why}");
        why
    }

    #[test]
    fn what_stands_in_secure_yaml_goes_before_the_rest() {
        let room = Room::with(&[("clouds.yaml", CLOUDS, 0o644), ("secure.yaml", SECURE, 0o600)]);
        let cloud = Cloud::read(&room.options(), &mut Seen::default()).unwrap();
        assert_eq!(cloud.credentials.secret.expose_secret(), "s3kr1t");
        assert_eq!(cloud.credentials.project.as_deref(), Some("over"));
        assert_eq!(cloud.token_url.as_str(), "https://k.example/identity/v3/auth/tokens");
        assert!(!format!("{cloud:?}").contains("s3kr1t"));
        let choice = cloud.choice(None, &INSTANCE_HA);
        assert_eq!(choice.interfaces, ["internal", "public"]);
        assert_eq!(choice.instead.as_deref(), Some("https://m.example/v1/%(project_id)s"));
        assert_eq!(cloud.choice(None, &WORKFLOW).instead, None);
        let own = CloudOptions { endpoint: Some("https://x".into()), ..room.options() };
        let cloud = Cloud::read(&own, &mut Seen::default()).unwrap();
        let choice = cloud.choice(own.endpoint.as_ref(), &INSTANCE_HA);
        assert_eq!((choice.instead.as_deref(), choice.region.as_deref()), (Some("https://x"), Some("R1")));
    }

    /// S1-45: a file with a secret that others can read is not used; one without may be read by all.
    #[test]
    fn a_file_with_a_secret_is_for_its_owner_alone() {
        let open = Room::with(&[("clouds.yaml", CLOUDS, 0o644), ("secure.yaml", SECURE, 0o640)]);
        assert!(why(&open.options()).contains("others may read the secret"));
        let inside = CLOUDS.replace("user_id: u", "user_id: u, password: s3kr1t");
        let open = Room::with(&[("clouds.yaml", &inside, 0o644)]);
        assert!(why(&open.options()).contains("others may read the secret"));
        let shut = Room::with(&[("clouds.yaml", &inside, 0o600)]);
        assert!(Cloud::read(&shut.options(), &mut Seen::default()).is_ok());
        let written = Room::with(&[("clouds.yaml", CLOUDS, 0o666), ("secure.yaml", SECURE, 0o600)]);
        assert!(why(&written.options()).contains("others may write"));
    }
}
