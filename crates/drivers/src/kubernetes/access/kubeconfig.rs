//! A kubeconfig: which server, whom we trust, and who we are there. No message repeats a value that may be secret.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;
use secrecy::{SecretSlice, SecretString};
use serde_json::Value;

use crate::kept::Unusable;
use crate::web::{address, server_name};
use crate::yaml;

/// The key of the route that names the file.
pub(super) const KEY: &str = "kubeconfig";
/// What a user may not have, and the sentence for it.
const REFUSED: [(&str, &str); 8] = [
    ("username", "has a username, which API servers no longer take: use a token or a certificate"),
    ("password", "has a password, which API servers no longer take: use a token or a certificate"),
    ("auth-provider", "has an auth-provider, which is not supported: use a tokenFile"),
    ("exec", "has exec, which is not supported: use a tokenFile that a timer renews, or a certificate"),
    ("as", IMPERSONATES),
    ("as-uid", IMPERSONATES),
    ("as-groups", IMPERSONATES),
    ("as-user-extra", IMPERSONATES),
];
const IMPERSONATES: &str = "acts as another user (as): give its rights to the user itself";

/// Where the API server is and who we are there: a file as `kubectl` has it.
#[derive(Clone, Debug)]
pub struct Kubeconfig {
    /// Its absolute path.
    pub file: PathBuf,
    /// The context; if unset, the file's `current-context` at the start.
    pub context: Option<String>,
}

/// What one context says.
#[derive(Debug)]
pub(super) struct Context {
    /// Its name.
    pub(super) name: String,
    /// The namespace.
    pub(super) namespace: Option<String>,
    /// The API server.
    pub(super) server: Url,
    /// The name in its certificate, if not its host.
    pub(super) server_name: Option<String>,
    /// The CAs of its certificate; if unset, the system's.
    pub(super) authorities: Option<Part>,
    /// Whether its certificate is checked.
    pub(super) verify: bool,
    /// Our certificate, and its key.
    pub(super) pair: Option<(Part, Part)>,
    /// Our token.
    pub(super) token: Option<Token>,
}

/// A file, or its content.
#[derive(Debug)]
pub(super) enum Part {
    /// The file.
    File(PathBuf),
    /// Its content.
    Data(SecretSlice<u8>),
}

/// Where a token comes from.
#[derive(Debug)]
pub(super) enum Token {
    /// The kubeconfig.
    Given(SecretString),
    /// This file.
    File(PathBuf),
}

impl Context {
    /// Reads the named context, or the current one, of a kubeconfig in this directory.
    ///
    /// # Errors
    /// One sentence without a secret, and the key of the route that it concerns.
    pub(super) fn read(text: &str, directory: &Path, wanted: Option<&str>) -> Result<Self, Unusable> {
        let wrong = |why: String| Unusable::new(KEY, why);
        let root = yaml::value(text).map_err(wrong)?;
        let root = Entry { what: "the kubeconfig".to_owned(), fields: &root };
        let name = match wanted {
            Some(name) => name,
            None => root.required("current-context", "set it, or set context in the route").map_err(wrong)?,
        };
        match root.find("context", name).map_err(wrong)? {
            Some(context) => Self::of(&root, name, &context, directory).map_err(wrong),
            None if wanted.is_some() => Err(Unusable::new(
                "context",
                format!("the kubeconfig has no context {name}: correct context"),
            )),
            None => Err(wrong(format!("current-context names {name}, which is no context: correct it"))),
        }
    }

    fn of(root: &Entry<'_>, name: &str, context: &Entry<'_>, directory: &Path) -> Result<Self, String> {
        let cluster = context.named(root, "cluster")?;
        let user = context.named(root, "user")?;
        if cluster.has("proxy-url") {
            return Err(cluster.wrong("has a proxy-url, which is not supported: remove it"));
        }
        let server = server(&cluster)?;
        let (authorities, verify) = trust(&cluster, directory)?;
        let server_name = cluster.word("tls-server-name")?.map(server_name).transpose();
        let server_name = server_name.map_err(|why| cluster.wrong(&format!("tls-server-name {why}")))?;
        let (pair, token) = identity(&user, directory)?;
        let namespace = context.word("namespace")?.map(str::to_owned);
        if pair.is_none() && token.is_none() && server.scheme() == "https" {
            return Err(user.wrong("has no credentials: set a token or a certificate"));
        }
        let name = name.to_owned();
        Ok(Self { name, namespace, server, server_name, authorities, verify, pair, token })
    }
}

/// A mapping of the file, and its name for people.
struct Entry<'v> {
    what: String,
    fields: &'v Value,
}

impl<'v> Entry<'v> {
    fn wrong(&self, why: &str) -> String {
        format!("{} {why}", self.what)
    }

    fn has(&self, key: &str) -> bool {
        self.fields.get(key).is_some_and(|value| !value.is_null() && value != "")
    }

    /// A text; an empty one is none.
    fn word(&self, key: &str) -> Result<Option<&'v str>, String> {
        match &self.fields[key] {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
            _ => Err(self.wrong(&format!("has a {key} that is no text: correct it"))),
        }
    }

    fn required(&self, key: &str, advice: &str) -> Result<&'v str, String> {
        self.word(key)?.ok_or_else(|| self.wrong(&format!("has no {key}: {advice}")))
    }

    fn flag(&self, key: &str) -> Result<bool, String> {
        match self.word(key)?.map(str::to_ascii_lowercase).as_deref() {
            None | Some("false" | "no" | "off") => Ok(false),
            Some("true" | "yes" | "on") => Ok(true),
            Some(_) => Err(self.wrong(&format!("has a {key} that is neither true nor false: correct it"))),
        }
    }

    /// The entry of this kind and name: the list `contexts` has entries with `name` and `context`.
    fn find(&self, kind: &str, name: &str) -> Result<Option<Entry<'v>>, String> {
        let list = match &self.fields[format!("{kind}s")] {
            Value::Null => return Ok(None),
            Value::Array(list) => list,
            _ => return Err(self.wrong(&format!("has {kind}s that are no list: correct them"))),
        };
        let found = list.iter().find(|entry| entry["name"] == name);
        Ok(found.map(|entry| Entry { what: format!("{kind} {name}"), fields: &entry[kind] }))
    }

    /// The entry of `root` that this one names under `kind`.
    fn named(&self, root: &Entry<'v>, kind: &str) -> Result<Entry<'v>, String> {
        let name = self.required(kind, "set it to the name of one")?;
        let found = root.find(kind, name)?;
        found.ok_or_else(|| self.wrong(&format!("names {kind} {name}, which is not there: correct it")))
    }

    /// `KEY-data`, which goes before the file `KEY`.
    fn part(&self, key: &str, directory: &Path) -> Result<Option<Part>, String> {
        let data = format!("{key}-data");
        if let Some(text) = self.word(&data)? {
            let packed: String = text.split_ascii_whitespace().collect();
            let bytes = STANDARD.decode(packed);
            let bytes =
                bytes.map_err(|_| self.wrong(&format!("has {data} that is no base64: correct it")))?;
            return Ok(Some(Part::Data(bytes.into())));
        }
        Ok(self.word(key)?.map(|file| Part::File(directory.join(file))))
    }
}

fn server(cluster: &Entry<'_>) -> Result<Url, String> {
    let text = cluster.required("server", "set it to the address of the API server")?;
    let url = address(text, true).map_err(|why| cluster.wrong(&format!("has a wrong server: {why}")))?;
    if address(text, false).is_err() {
        return Err(cluster.wrong("has a server with plain http, which others can read: use https"));
    }
    match url.query() {
        None => Ok(url),
        Some(_) => Err(cluster.wrong("has a server with a query (?): remove it")),
    }
}

/// Its CAs, and whether they count.
fn trust(cluster: &Entry<'_>, directory: &Path) -> Result<(Option<Part>, bool), String> {
    let authorities = cluster.part("certificate-authority", directory)?;
    let is_insecure = cluster.flag("insecure-skip-tls-verify")?;
    if is_insecure && authorities.is_some() {
        let why = "has insecure-skip-tls-verify and a certificate-authority: remove the first";
        return Err(cluster.wrong(why));
    }
    Ok((authorities, !is_insecure))
}

type Identity = (Option<(Part, Part)>, Option<Token>);

fn identity(user: &Entry<'_>, directory: &Path) -> Result<Identity, String> {
    if let Some((_, why)) = REFUSED.iter().find(|(key, _)| user.has(key)) {
        return Err(user.wrong(why));
    }
    let (certificate, key) =
        (user.part("client-certificate", directory)?, user.part("client-key", directory)?);
    if certificate.is_some() != key.is_some() {
        return Err(user.wrong("needs client-certificate and client-key together: set both, or neither"));
    }
    // A file goes before a token: somebody renews it.
    let token = match (user.word("tokenFile")?, user.word("token")?) {
        (Some(file), _) => Some(Token::File(directory.join(file))),
        (None, Some(token)) => Some(Token::Given(token.into())),
        (None, None) => None,
    };
    Ok((certificate.zip(key), token))
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    const CONFIG: &str = "apiVersion: v1
kind: Config
current-context: one
preferences: {}
contexts:
- name: one
  context: {cluster: c, user: u, namespace: metal}
- name: two
  context: {cluster: d, user: v}
clusters:
- name: c
  cluster:
    server: https://k.example:6443
- name: d
  cluster: {server: 'http://127.0.0.1:8001/', certificate-authority: ''}
users:
- name: u
  user:
    token: s3kr1t
- name: v
  user: {}
";

    fn read(text: &str, context: Option<&str>) -> Result<Context, Unusable> {
        Context::read(text, Path::new("/etc/k"), context)
    }

    /// The first context with these lines in its cluster and its user.
    fn with(cluster: &str, user: &str) -> Context {
        read(&changed(cluster, user), None).unwrap()
    }

    fn changed(cluster: &str, user: &str) -> String {
        let text = CONFIG.replace("    server: https", &format!("    {cluster}\n    server: https"));
        text.replace("    token: s3kr1t", &format!("    {user}"))
    }

    #[test]
    fn the_current_context_or_a_named_one_is_read() {
        let one = read(CONFIG, None).unwrap();
        assert_eq!((one.name.as_str(), one.namespace.as_deref()), ("one", Some("metal")));
        assert_eq!(one.server.as_str(), "https://k.example:6443/");
        assert!(one.verify && one.authorities.is_none() && one.server_name.is_none() && one.pair.is_none());
        let Some(Token::Given(token)) = &one.token else { panic!("{one:?}") };
        assert_eq!(token.expose_secret(), "s3kr1t");
        assert!(!format!("{one:?}").contains("s3kr1t"));
        let two = read(CONFIG, Some("two")).unwrap();
        assert_eq!((two.server.as_str(), two.namespace), ("http://127.0.0.1:8001/", None));
        assert!(two.token.is_none() && two.authorities.is_none());
    }

    /// The broken variant reads YAML's values: a token of digits would be another one.
    #[test]
    fn a_kubeconfig_in_json_is_read_and_a_token_stays_as_it_is_written() {
        let text = r#"{"current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "clusters": [{"name": "a", "cluster": {"server": "https://k.example"}}],
            "users": [{"name": "a", "user": {"token": "0123"}}]}"#;
        for text in [text.to_owned(), text.replace("\"0123\"", "0123")] {
            let context = read(&text, None).unwrap();
            let Some(Token::Given(token)) = context.token else { panic!() };
            assert_eq!(token.expose_secret(), "0123");
        }
    }

    fn file(part: Option<&Part>) -> &str {
        match part {
            Some(Part::File(path)) => path.to_str().unwrap(),
            other => panic!("{other:?}"),
        }
    }

    fn data(part: Option<&Part>) -> &[u8] {
        match part {
            Some(Part::Data(bytes)) => bytes.expose_secret(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_key_of_a_cluster_counts() {
        let ca = with("certificate-authority: ca.pem", "token: t").authorities;
        assert_eq!(file(ca.as_ref()), "/etc/k/ca.pem");
        let both = "certificate-authority: /ca.pem\n    certificate-authority-data: Y2E=";
        assert_eq!(data(with(both, "token: t").authorities.as_ref()), b"ca");
        let named = with("tls-server-name: kubernetes.default", "token: t");
        assert_eq!(named.server_name.as_deref(), Some("kubernetes.default"));
        for (word, verify) in [("true", false), ("Yes", false), ("false", true), ("''", true)] {
            let context = with(&format!("insecure-skip-tls-verify: {word}"), "token: t");
            assert_eq!(context.verify, verify, "{word}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_kubeconfig_has_its_sentence() {
        let replaced = |from: &str, to: &str| CONFIG.replace(from, to);
        for (text, expected) in [
            ("- s3kr1t".to_owned(), "the kubeconfig has no current-context"),
            (String::new(), "one YAML document"),
            ("a: [s3kr1t".to_owned(), "it is not YAML"),
            (replaced("current-context: one", "x: y"), "has no current-context: set it"),
            (
                replaced("current-context: one", "current-context: [s3kr1t]"),
                "current-context that is no text",
            ),
            (replaced("current-context: one", "current-context: three"), "names three, which is no context"),
            (replaced("contexts:\n", "contexts: s3kr1t\nothers:\n"), "contexts that are no list"),
            (replaced("cluster: c,", ""), "context one has no cluster"),
            (replaced("cluster: c,", "cluster: e,"), "context one names cluster e, which is not there"),
            (replaced("user: u,", "user: w,"), "context one names user w, which is not there"),
            (replaced("server: https://k.example:6443", "x: y"), "cluster c has no server"),
            (replaced("https://k", "http://k"), "cluster c has a server with plain http"),
            (replaced("//k.", "//a:s3kr1t@k."), "must not hold a user name or password"),
            (replaced("6443", "6443/?x=s3kr1t"), "cluster c has a server with a query"),
            (changed("proxy-url: http://s3kr1t@p", "token: t"), "cluster c has a proxy-url"),
            (changed("tls-server-name: 10.0.0.1", "token: t"), "tls-server-name must be the DNS name"),
            (changed("insecure-skip-tls-verify: s3kr1t", "token: t"), "neither true nor false"),
            (
                changed("certificate-authority: c\n    insecure-skip-tls-verify: true", "token: t"),
                "remove the first",
            ),
            (
                changed("certificate-authority-data: s3kr1t!", "token: t"),
                "certificate-authority-data that is no",
            ),
            (changed("x: y", "username: a\n    password: s3kr1t"), "user u has a username"),
            (changed("x: y", "password: s3kr1t"), "user u has a password"),
            (changed("x: y", "auth-provider: {name: oidc}"), "user u has an auth-provider"),
            (changed("x: y", "token: s3kr1t\n    as: root"), "user u acts as another user"),
            (changed("x: y", "token: s3kr1t\n    as-groups: [root]"), "user u acts as another user"),
            (changed("x: y", "token: s3kr1t\n    as-uid: '7'"), "user u acts as another user"),
            (changed("x: y", "token: s3kr1t\n    as-user-extra: {a: [b]}"), "user u acts as another user"),
            (changed("x: y", "token: [s3kr1t]"), "user u has a token that is no text"),
            (changed("x: y", "client-key: s3kr1t"), "set both, or neither"),
            (changed("x: y", "client-key-data: s3kr1t!"), "client-key-data that is no base64"),
            (changed("x: y", "a: b"), "user u has no credentials"),
            (changed("x: y", "exec: {command: s3kr1t}"), "user u has exec, which is not supported"),
        ] {
            let why = read(&text, None).unwrap_err();
            assert!(why.key == KEY && why.to_string().contains(expected), "{why}");
            assert!(!why.to_string().contains("s3kr1t"), "{why}");
        }
        let why = read(CONFIG, Some("staging")).unwrap_err();
        assert_eq!(why.key, "context");
        assert!(why.to_string().contains("no context staging"), "{why}");
    }
}
