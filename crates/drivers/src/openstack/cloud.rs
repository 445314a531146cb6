//! A site's cloud: `clouds.yaml` with `secure.yaml` over it, or `OS_*` variables if the route allows it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Url;
use secrecy::{ExposeSecret as _, SecretSlice};
use site::{must_be_absolute, read_private, read_trusted};

use super::catalog::{Choice, Service};
use super::credentials::{Credentials, text};
use super::words::{self, Words};
use crate::driver::fingerprint;
use crate::kept::Unusable;
use crate::web::{IdentityFiles, address, authorities, target};

/// The path of `clouds.yaml`, unless the route sets it. A daemon has no working directory and no home to search.
const CLOUDS_FILE: &str = "/etc/openstack/clouds.yaml";
/// This file is beside it and overrides it.
const SECURE_NAME: &str = "secure.yaml";
/// Keys that make a file secret.
const SECRETS: [&str; 3] = ["auth.password", "auth.application_credential_secret", "auth.token"];
/// `OS_*` variables, and the key that each stands for.
const ENVIRONMENT: [(&str, &str); 22] = [
    ("OS_AUTH_TYPE", "auth_type"),
    ("OS_AUTH_URL", "auth.auth_url"),
    ("OS_USERNAME", "auth.username"),
    ("OS_USER_ID", "auth.user_id"),
    ("OS_PASSWORD", "auth.password"),
    ("OS_USER_DOMAIN_NAME", "auth.user_domain_name"),
    ("OS_USER_DOMAIN_ID", "auth.user_domain_id"),
    ("OS_PROJECT_NAME", "auth.project_name"),
    ("OS_PROJECT_ID", "auth.project_id"),
    ("OS_PROJECT_DOMAIN_NAME", "auth.project_domain_name"),
    ("OS_PROJECT_DOMAIN_ID", "auth.project_domain_id"),
    ("OS_SYSTEM_SCOPE", "auth.system_scope"),
    ("OS_APPLICATION_CREDENTIAL_ID", "auth.application_credential_id"),
    ("OS_APPLICATION_CREDENTIAL_NAME", "auth.application_credential_name"),
    ("OS_APPLICATION_CREDENTIAL_SECRET", "auth.application_credential_secret"),
    ("OS_REGION_NAME", "region_name"),
    ("OS_ENDPOINT_TYPE", "endpoint_type"),
    ("OS_INTERFACE", "interface"),
    ("OS_CACERT", "cacert"),
    ("OS_CERT", "cert"),
    ("OS_KEY", "key"),
    ("OS_INSECURE", "insecure"),
];

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
    /// `secure.yaml`, if not beside the other.
    pub secure_file: Option<PathBuf>,
    /// Whether `OS_*` names count.
    pub from_environment: bool,
    /// Instead of the cloud's own region.
    pub region: Option<String>,
    /// Instead of the cloud's own interface.
    pub interface: Option<String>,
    /// Instead of the catalog's address; it may have `%(project_id)s` in it.
    pub endpoint: Option<String>,
    /// Whether plain http is allowed for Keystone and the service.
    pub allow_http: bool,
    /// Whether certificates are not checked.
    pub insecure: bool,
    /// Whether a connection may serve one exchange after the other.
    pub keep_alive: bool,
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
            secure_file: None,
            from_environment: false,
            region: None,
            interface: None,
            endpoint: None,
            allow_http: false,
            insecure: false,
            keep_alive: false,
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
    files: Vec<PathBuf>,
}

/// The sources of a cloud's words.
struct Source {
    name: String,
    words: Words,
    files: Vec<PathBuf>,
}

impl Cloud {
    /// Reads it as it is now.
    ///
    /// # Errors
    /// One sentence without a secret, and the key of the route that it concerns.
    pub(super) fn read(options: &CloudOptions) -> Result<Self, Unusable> {
        Self::read_in(options, |name| std::env::var(name).ok())
    }

    /// The same in this environment.
    fn read_in(
        options: &CloudOptions,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Unusable> {
        let named =
            |name: &str| environment(name).filter(|value| options.from_environment && !value.is_empty());
        let source = source(options, &named)?;
        of_source(options, source)
    }

    /// Every file that it is made of.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let identity = self.identity.iter().flat_map(|files| [&files.certificate, &files.key]);
        self.files.iter().chain(&self.ca_file).chain(identity).cloned().collect()
    }

    /// Which cloud and project this is, on one line and without a secret. Another interface or user is still the same
    /// cloud.
    pub(super) fn target(&self, options: &CloudOptions) -> String {
        let auth = target(&self.token_url).replace("/auth/tokens", "");
        let part = |word: &str, value: Option<&String>| value.map(|value| format!(", {word} {value}"));
        let project = self.credentials.project();
        let instead = options.endpoint.clone().or_else(|| {
            let all = self.instead.values().cloned().collect::<Vec<_>>().join(" ");
            (!all.is_empty()).then_some(all)
        });
        let parts = [
            part("region", self.region.as_ref()),
            part("project", project.as_ref()),
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

fn source(options: &CloudOptions, named: &impl Fn(&str) -> Option<String>) -> Result<Source, Unusable> {
    let cloud = options.cloud.clone().or_else(|| named("OS_CLOUD"));
    let is_of_files = options.clouds_file.is_some()
        || ["OS_CLIENT_CONFIG_FILE", "OS_CLIENT_SECURE_FILE"].iter().any(|name| named(name).is_some());
    if cloud.is_none() && !is_of_files && named("OS_AUTH_URL").is_some() {
        let word = |(name, word): &(&str, &str)| Some(((*word).to_owned(), named(name)?.into()));
        let words = ENVIRONMENT.iter().filter_map(word).collect();
        return Ok(Source { name: "of the environment".to_owned(), words, files: Vec::new() });
    }
    let own = || named("OS_CLIENT_CONFIG_FILE").map(PathBuf::from);
    let clouds = options.clouds_file.clone().or_else(own).unwrap_or_else(|| CLOUDS_FILE.into());
    let own = || named("OS_CLIENT_SECURE_FILE").map(PathBuf::from);
    let secure = options.secure_file.clone().or_else(own);
    of_files(cloud.as_deref(), clouds, secure)
}

/// `secure.yaml` overrides `clouds.yaml`, key by key.
fn of_files(cloud: Option<&str>, clouds: PathBuf, secure: Option<PathBuf>) -> Result<Source, Unusable> {
    let about = |file: &Path, key| {
        let file = file.display().to_string();
        move |why: String| Unusable::new(key, format!("{file}: {why}"))
    };
    let mut all = clouds_of(&clouds, read_trusted).map_err(about(&clouds, "clouds-file"))?;
    let name = chosen(cloud, &all).map_err(about(&clouds, "cloud"))?;
    let mut words = all.remove(&name).unwrap_or_default();
    if SECRETS.iter().any(|secret| words.contains_key(*secret)) {
        read_private(&clouds).map(SecretSlice::from).map_err(about(&clouds, "clouds-file"))?;
    }
    let is_named = secure.is_some();
    let secure = secure.unwrap_or_else(|| clouds.with_file_name(SECURE_NAME));
    if is_named || secure.exists() {
        let mut over = clouds_of(&secure, read_private).map_err(about(&secure, "secure-file"))?;
        words.extend(over.remove(&name).unwrap_or_default());
    }
    Ok(Source { name, words, files: vec![clouds, secure] })
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

fn of_source(options: &CloudOptions, Source { name, words, files }: Source) -> Result<Cloud, Unusable> {
    let wrong = |why: String| Unusable::new("cloud", format!("cloud {name}: {why}"));
    if words.contains_key("profile") || words.contains_key("cloud") {
        return Err(wrong("a vendor's profile is not supported: write its settings out".to_owned()));
    }
    if !options.insecure && (is(&words, "insecure") == Some(true) || is(&words, "verify") == Some(false)) {
        let why = "it turns off certificate checks (verify, insecure): set cacert there, or insecure = true in this route";
        return Err(wrong(why.to_owned()));
    }
    let token_url = token_url(&words, options.allow_http).map_err(wrong)?;
    let credentials = Credentials::read(&words).map_err(wrong)?;
    let ca_file = text(&words, "cacert").map(PathBuf::from);
    if let Some(file) = ca_file.as_deref().filter(|_| !options.insecure) {
        authorities(file).map_err(|why| wrong(format!("cacert: {why}")))?;
    }
    let identity = identity(&words).map_err(wrong)?;
    let interfaces = interfaces(options, &words).map_err(wrong)?;
    let region = options.region.clone().or_else(|| text(&words, "region_name"));
    Ok(Cloud {
        token_url,
        credentials,
        ca_file,
        identity,
        interfaces,
        region,
        instead: instead(&words),
        name,
        files,
    })
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

fn interfaces(options: &CloudOptions, words: &Words) -> Result<Vec<String>, String> {
    let given = options
        .interface
        .clone()
        .or_else(|| text(words, "interface"))
        .or_else(|| text(words, "endpoint_type"));
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use tempfile::TempDir;

    use super::super::catalog::{INSTANCE_HA, WORKFLOW};
    use super::super::credentials::{Named, Scope};
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

    fn nothing(_: &str) -> Option<String> {
        None
    }

    fn why(options: &CloudOptions) -> String {
        let why = Cloud::read_in(options, nothing).unwrap_err().to_string();
        assert!(!why.contains("s3kr1t"), "{why}");
        why
    }

    #[test]
    fn what_stands_in_secure_yaml_goes_before_the_rest() {
        let room = Room::with(&[("clouds.yaml", CLOUDS, 0o644), ("secure.yaml", SECURE, 0o600)]);
        let cloud = Cloud::read_in(&room.options(), nothing).unwrap();
        let Credentials::Password { password, scope, .. } = &cloud.credentials else { unreachable!() };
        assert_eq!(password.expose_secret(), "s3kr1t");
        assert_eq!(*scope, Scope::Project(Named::Id("over".into())));
        assert_eq!(cloud.token_url.as_str(), "https://k.example/identity/v3/auth/tokens");
        assert!(!format!("{cloud:?}").contains("s3kr1t"));
        let choice = cloud.choice(None, &INSTANCE_HA);
        assert_eq!(choice.interfaces, ["internal", "public"]);
        assert_eq!(choice.instead.as_deref(), Some("https://m.example/v1/%(project_id)s"));
        assert_eq!(cloud.choice(None, &WORKFLOW).instead, None);
        let own =
            CloudOptions { endpoint: Some("https://x".into()), region: Some("R2".into()), ..room.options() };
        let cloud = Cloud::read_in(&own, nothing).unwrap();
        let choice = cloud.choice(own.endpoint.as_ref(), &INSTANCE_HA);
        assert_eq!((choice.instead.as_deref(), choice.region.as_deref()), (Some("https://x"), Some("R2")));
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
        assert!(Cloud::read_in(&shut.options(), nothing).is_ok());
        let written = Room::with(&[("clouds.yaml", CLOUDS, 0o666), ("secure.yaml", SECURE, 0o600)]);
        assert!(why(&written.options()).contains("others may write"));
    }

    #[test]
    fn what_is_wrong_with_a_cloud_has_its_sentence() {
        let with = |from: &str, to: &str| CLOUDS.replace(from, to);
        for (clouds, expected) in [
            (with("    auth", "    verify: false\n    auth"), "insecure = true in this route"),
            (with("    auth", "    insecure: yes\n    auth"), "insecure = true in this route"),
            (with("    auth", "    profile: rackspace\n    auth"), "write its settings out"),
            (with("    auth", "    cacert: ca.pem\n    auth"), "cacert: must be an absolute path"),
            (with("    auth", "    cert: /c.pem\n    auth"), "set both, or neither"),
            (with("[internal, public]", "private"), "interface must be"),
            (with("https://k", "http://k"), "auth_url: plain http"),
            (with("identity/", "identity/v2.0"), "version 2"),
            (with("clouds:", "cloud:"), "it has no cloud under clouds"),
            (format!("{CLOUDS}  two: {{}}\n"), "set cloud to the name of one"),
        ] {
            let room = Room::with(&[("clouds.yaml", &clouds, 0o644), ("secure.yaml", SECURE, 0o600)]);
            let why = why(&room.options());
            assert!(why.contains(expected), "{why}");
        }
        let room = Room::with(&[("clouds.yaml", CLOUDS, 0o644)]);
        let named = CloudOptions { cloud: Some("three".into()), ..room.options() };
        assert!(why(&named).contains("no cloud of this name"));
        let gone = CloudOptions { secure_file: Some(room.path("none.yaml")), ..room.options() };
        assert!(why(&gone).contains("cannot be read"));
        assert!(why(&CloudOptions::of_file("clouds.yaml".into())).contains("absolute"));
    }

    /// The daemon's environment is no configuration, unless the route allows it.
    #[test]
    fn the_environment_counts_only_where_the_route_says_so() {
        let environment = |name: &str| {
            let value = match name {
                "OS_AUTH_URL" => "https://k.example/v3",
                "OS_USER_ID" => "u",
                "OS_PASSWORD" => "s3kr1t",
                "OS_PROJECT_ID" => "p",
                "OS_REGION_NAME" => "R9",
                _ => return None,
            };
            Some(value.to_owned())
        };
        let room = Room::with(&[("clouds.yaml", CLOUDS, 0o644), ("secure.yaml", SECURE, 0o600)]);
        let own = CloudOptions { clouds_file: None, from_environment: true, ..room.options() };
        let cloud = Cloud::read_in(&own, environment).unwrap();
        assert_eq!(cloud.token_url.as_str(), "https://k.example/v3/auth/tokens");
        assert_eq!(cloud.region.as_deref(), Some("R9"));
        let file = CloudOptions { from_environment: true, ..room.options() };
        assert_eq!(
            Cloud::read_in(&file, environment).unwrap().name,
            "one",
            "the route's own word goes first"
        );
        let place = room.path("clouds.yaml").display().to_string();
        let through = |name: &str| (name == "OS_CLIENT_CONFIG_FILE").then(|| place.clone());
        assert_eq!(Cloud::read_in(&own, through).unwrap().name, "one");
        let both = |name: &str| through(name).or_else(|| environment(name));
        assert_eq!(Cloud::read_in(&own, both).unwrap().name, "one", "a file goes before the other names");
        let deaf = CloudOptions { from_environment: false, cloud: Some("no-such".into()), ..own };
        let why = Cloud::read_in(&deaf, environment).unwrap_err().to_string();
        assert!(why.starts_with("/etc/openstack/clouds.yaml: "), "{why}");
    }
}
