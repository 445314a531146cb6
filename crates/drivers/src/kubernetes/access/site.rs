//! An API server as the files describe it now, with its client. The files are read here.

use std::path::Path;
use std::time::Duration;

use reqwest::header::HeaderValue;
use reqwest::{Certificate, Client, Identity, Url};
use secrecy::{ExposeSecret as _, SecretSlice, SecretString};
use site::{must_be_absolute, read_private, read_trusted};

use super::kubeconfig::{Context, KEY, Kubeconfig, Part, Token};
use crate::kept::{Seen, Unusable};
use crate::web::secret::{self, line};
use crate::web::{ClientOptions, certificates_of, identity_of, shown, target, unpaired};

/// The keys of a kubeconfig that messages name.
const AUTHORITY: &str = "certificate-authority";
const CERTIFICATE: &str = "client-certificate";
const CLIENT_KEY: &str = "client-key";

/// The server, and what lets us in: a token, or the client's certificate.
pub(crate) struct Site {
    /// Its address.
    pub(super) url: Url,
    /// The context's namespace.
    pub(crate) namespace: Option<String>,
    /// The name of its context.
    pub(super) context: String,
    /// The client with our certificate, if we have one.
    pub(super) client: Client,
    /// The header with the token.
    pub(super) bearer: Option<HeaderValue>,
    /// The token again, because an answer may repeat it; empty if there is none.
    pub(super) token: SecretString,
    options: ClientOptions,
}

impl Site {
    /// Reads it as it is now, and notes each file.
    ///
    /// # Errors
    /// One sentence without a secret, and the key of the route that it concerns.
    pub(super) fn read(source: &Kubeconfig, limit: Duration, seen: &mut Seen) -> Result<Self, Unusable> {
        let Kubeconfig { file, context } = source;
        must_be_absolute(file).map_err(|why| Unusable::new(KEY, why))?;
        let named = |why: Unusable| Unusable::new(why.key, format!("{}: {why}", file.display()));
        of_file(file, context.as_deref(), limit, seen).map_err(named)
    }

    /// Which server it is.
    pub(crate) fn target(&self) -> String {
        target(&self.url).trim_end_matches('/').to_owned()
    }

    /// Its address for people, with the context.
    pub(super) fn shown(&self) -> String {
        format!("{} (context {})", shown(&self.url).trim_end_matches('/'), self.context)
    }

    /// Whether its certificate is checked, or there is none.
    pub(super) fn is_verified(&self) -> bool {
        self.options.verify || self.url.scheme() == "http"
    }

    /// Its address for the client.
    pub(super) fn address(&self) -> Url {
        self.options.target()
    }
}

/// The client, with a reason that fits what is wrong.
fn client(
    options: &ClientOptions,
    ca: Option<Vec<Certificate>>,
    identity: Option<Identity>,
) -> Result<Client, String> {
    let alone = options.with(ca.clone(), None).map_err(|_| match &ca {
        Some(_) => format!("a certificate in {AUTHORITY} cannot be used: it must hold CA certificates"),
        None => format!("the system has no CA certificates: install them, or set {AUTHORITY}"),
    })?;
    match identity {
        None => Ok(alone),
        identity => options.with(ca, identity).map_err(|error| unpaired(&error, CERTIFICATE, CLIENT_KEY)),
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
    let ca = authorities.map(|part| read_part(part, read_trusted, seen)).transpose()?;
    let none = || format!("{AUTHORITY} holds no certificate in PEM");
    let ca = ca.map(|pem| certificates_of(&pem).ok_or_else(none)).transpose()?;
    let identity = pair.map(|pair| read_pair(pair, seen)).transpose()?;
    let client = client(&options, ca, identity)?;
    let token = match token {
        Some(Token::File(path)) => Some(word(noted(&path, read_private, seen)?, &path)?),
        Some(Token::Given(token)) => Some(token),
        None => None,
    };
    let bearer = token.as_ref().map(|token| secret::bearer(token.expose_secret())).transpose()?;
    let token = token.unwrap_or_default();
    Ok(Site { url: server, namespace, context: name, client, bearer, token, options })
}

/// How a file is read, with a secret in it or without.
type Read = fn(&Path) -> Result<Vec<u8>, String>;

fn noted(path: &Path, read: Read, seen: &mut Seen) -> Result<Vec<u8>, String> {
    seen.note(path);
    read(path).map_err(|why| format!("{}: {why}", path.display()))
}

fn read_part(part: Part, read: Read, seen: &mut Seen) -> Result<Vec<u8>, String> {
    match part {
        Part::File(path) => noted(&path, read, seen),
        Part::Data(bytes) => Ok(bytes.expose_secret().to_vec()),
    }
}

fn read_pair((certificate, key): (Part, Part), seen: &mut Seen) -> Result<Identity, String> {
    let certificate = read_part(certificate, read_trusted, seen)?;
    let key = SecretSlice::from(read_part(key, read_private, seen)?);
    identity_of(certificate, key.expose_secret()).map_err(|half| half.why(CERTIFICATE, CLIENT_KEY))
}

/// The one line of a file.
fn word(content: Vec<u8>, path: &Path) -> Result<SecretString, String> {
    line(content, |text| Ok(text.into())).map_err(|why| format!("{}: {why}", path.display()))
}
