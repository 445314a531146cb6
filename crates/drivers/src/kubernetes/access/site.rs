//! An API server as the files describe it now, with its client. The files are read here.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderValue;
use reqwest::{Certificate, Client, Identity, Url};
use secrecy::{ExposeSecret as _, SecretSlice, SecretString};
use site::{must_be_absolute, read_private, read_trusted};

use super::kubeconfig::{Context, KEY, Part, Token};
use crate::kept::{Seen, Unusable};
use crate::web::secret::{self, line};
use crate::web::{ClientOptions, certificates_of, identity_of, shown, target, unpaired};

/// The server.
pub(super) struct Site {
    /// Its address.
    pub(super) url: Url,
    /// The context's namespace.
    pub(super) namespace: Option<String>,
    /// Our pass.
    pub(super) pass: Arc<Pass>,
    /// The name of its context.
    pub(super) context: String,
    tls: Tls,
}

/// What lets us in: a token, or the client's certificate.
pub(super) struct Pass {
    /// The client with our certificate, if we have one.
    pub(super) client: Client,
    /// The header with the token.
    pub(super) bearer: Option<HeaderValue>,
    /// The token again, because an answer may repeat it; empty if there is none.
    pub(super) token: SecretString,
}

impl Pass {
    /// A pass with this token.
    ///
    /// # Errors
    /// One sentence, without the token.
    fn new(client: Client, token: Option<SecretString>) -> Result<Self, String> {
        let bearer = token.as_ref().map(|token| secret::bearer(token.expose_secret())).transpose()?;
        Ok(Self { client, bearer, token: token.unwrap_or_default() })
    }
}

/// How the client is made.
struct Tls {
    options: ClientOptions,
    ca: Option<Vec<Certificate>>,
}

impl Site {
    /// Reads it as it is now, and notes each file.
    ///
    /// # Errors
    /// One sentence without a secret, and the key of the route that it concerns.
    pub(super) fn read(
        file: &Path,
        context: Option<&str>,
        limit: Duration,
        seen: &mut Seen,
    ) -> Result<Self, Unusable> {
        must_be_absolute(file).map_err(|why| Unusable::new(KEY, why))?;
        let named = |why: Unusable| Unusable::new(why.key, format!("{}: {why}", file.display()));
        of_file(file, context, limit, seen).map_err(named)
    }

    /// Which server it is.
    pub(super) fn target(&self) -> String {
        target(&self.url).trim_end_matches('/').to_owned()
    }

    /// Its address for people, with the context.
    pub(super) fn shown(&self) -> String {
        format!("{} (context {})", shown(&self.url).trim_end_matches('/'), self.context)
    }

    /// Whether its certificate is checked, or there is none.
    pub(super) fn is_verified(&self) -> bool {
        self.tls.options.verify || self.url.scheme() == "http"
    }

    /// The address of a path behind the server's own, for the client.
    pub(super) fn address(&self, path: &str, query: &[(&str, &str)]) -> Url {
        let mut url = self.tls.options.target();
        url.set_path(&format!("{}{path}", self.url.path().trim_end_matches('/')));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }
}

impl Tls {
    fn client(&self, identity: Option<Identity>) -> reqwest::Result<Client> {
        self.options.with(self.ca.clone(), identity)
    }

    /// The client, with a reason that fits what is wrong. `ca` is the key that names the CAs.
    fn checked(&self, identity: Option<Identity>, ca: &str) -> Result<Client, String> {
        let alone = self.client(None).map_err(|_| match &self.ca {
            Some(_) => format!("a certificate in {ca} cannot be used: it must hold CA certificates"),
            None => format!("the system has no CA certificates: install them, or set {ca}"),
        })?;
        match identity {
            None => Ok(alone),
            identity => {
                self.client(identity).map_err(|error| unpaired(&error, "client-certificate", "client-key"))
            }
        }
    }
}

fn of_file(file: &Path, wanted: Option<&str>, limit: Duration, seen: &mut Seen) -> Result<Site, Unusable> {
    let wrong = |why: String| Unusable::new(KEY, why);
    seen.note(file);
    let bytes = SecretSlice::from(read_private(file).map_err(wrong)?);
    let text = std::str::from_utf8(bytes.expose_secret());
    let text = text.map_err(|_| wrong("the file holds no text".to_owned()))?;
    // Its directory is where relative paths begin; an absolute file has one.
    let context = Context::read(text, file.parent().unwrap_or(file), wanted)?;
    of_context(context, limit, seen).map_err(wrong)
}

fn of_context(context: Context, limit: Duration, seen: &mut Seen) -> Result<Site, String> {
    let Context { name, namespace, server, server_name, authorities, verify, pair, token } = context;
    let options = ClientOptions { server_name, verify, timeout: limit, ..ClientOptions::to(server.clone()) };
    let ca = authorities.map(|part| read_part(part, trusted, seen)).transpose()?;
    let ca = ca.map(|pem| certificates("certificate-authority", &pem)).transpose()?;
    let tls = Tls { options, ca };
    let identity = pair.map(|pair| read_pair(pair, seen)).transpose()?;
    let client = tls.checked(identity, "certificate-authority")?;
    let token = match token {
        Some(Token::File(path)) => Some(word(private(&path, seen)?, &path)?),
        Some(Token::Given(token)) => Some(token),
        None => None,
    };
    let pass = Arc::new(Pass::new(client, token)?);
    Ok(Site { url: server, namespace, pass, context: name, tls })
}

/// Reads a file with a secret.
fn private(path: &Path, seen: &mut Seen) -> Result<Vec<u8>, String> {
    seen.note(path);
    read_private(path).map_err(|why| format!("{}: {why}", path.display()))
}

/// Reads a file without one.
fn trusted(path: &Path, seen: &mut Seen) -> Result<Vec<u8>, String> {
    seen.note(path);
    read_trusted(path).map_err(|why| format!("{}: {why}", path.display()))
}

type Read = fn(&Path, &mut Seen) -> Result<Vec<u8>, String>;

fn read_part(part: Part, read: Read, seen: &mut Seen) -> Result<Vec<u8>, String> {
    match part {
        Part::File(path) => read(&path, seen),
        Part::Data(bytes) => Ok(bytes.expose_secret().to_vec()),
    }
}

fn read_pair((certificate, key): (Part, Part), seen: &mut Seen) -> Result<Identity, String> {
    let certificate = read_part(certificate, trusted, seen)?;
    let key = SecretSlice::from(read_part(key, private, seen)?);
    identity_of(certificate, key.expose_secret()).map_err(|half| half.why("client-certificate", "client-key"))
}

fn certificates(key: &str, pem: &[u8]) -> Result<Vec<Certificate>, String> {
    certificates_of(pem).ok_or_else(|| format!("{key} holds no certificate in PEM"))
}

/// The one line of a file.
fn word(content: Vec<u8>, path: &Path) -> Result<SecretString, String> {
    line(content, |text| Ok(text.into())).map_err(|why| format!("{}: {why}", path.display()))
}
