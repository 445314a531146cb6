//! Exchanges with an API server, with our credentials as they are now, and with others after a 401.

mod kubeconfig;
mod site;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use reqwest::{Method, RequestBuilder};
use tokio::time::Instant;

use crate::driver::{Failure, Outcome};
use crate::kept::{Kept, Unusable};
use crate::web::{Answer, authority, fault, peer, wire};
use site::Site;

/// Where the API server is and who we are there: a file as `kubectl` has it.
#[derive(Clone, Debug)]
pub struct Kubeconfig {
    /// Its absolute path.
    pub file: PathBuf,
    /// The context; if unset, the file's `current-context` at the start.
    pub context: Option<String>,
}

/// An API server, ready for requests.
pub(crate) struct Access {
    shown: String,
    sites: Kept<Arc<Site>>,
}

/// A request to the API server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    method: &'a Method,
    /// Begins with a slash, and is encoded already.
    path: &'a str,
    query: &'a [(&'a str, &'a str)],
    /// The content's type, and the content.
    body: Option<(&'static str, &'a [u8])>,
}

impl<'a> Ask<'a> {
    /// A question.
    pub(crate) fn get(path: &'a str, query: &'a [(&'a str, &'a str)]) -> Self {
        Self { method: &Method::GET, path, query, body: None }
    }

    /// A change.
    pub(crate) fn write(method: &'a Method, path: &'a str, kind: &'static str, body: &'a [u8]) -> Self {
        Self { method, path, query: &[], body: Some((kind, body)) }
    }
}

impl Access {
    /// Reads the files and makes the client.
    ///
    /// # Errors
    /// They cannot be used.
    pub(crate) fn new(source: Kubeconfig, timeout: Duration) -> Result<Self, Unusable> {
        let (named, first) = (format!("Kubernetes by {}", source.file.display()), OnceLock::new());
        let sites = Kept::new("files", named, move |seen| {
            // A person who uses another context in a shell must not lead marks to another cluster.
            let context = source.context.as_deref().or_else(|| first.get().map(String::as_str));
            let site = Site::read(&source.file, context, timeout, seen)?;
            first.get_or_init(|| site.context.clone());
            Ok(Arc::new(site))
        })?;
        let shown = sites.get().shown();
        Ok(Self { shown, sites })
    }

    /// The server for people, and its context if there is one.
    pub(crate) fn server(&self) -> String {
        self.shown.clone()
    }

    /// Which server it is, as the files are now.
    pub(crate) fn target(&self) -> String {
        self.sites.get().target()
    }

    /// The namespace of the context, if it names one.
    pub(crate) fn namespace(&self) -> Option<String> {
        self.sites.get().namespace.clone()
    }

    /// Warnings about the exchanges, one sentence each.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let sentence = "insecure-skip-tls-verify: anybody on the network path can read our credentials and forge the answers of";
        let warning =
            || format!("{sentence} {}: set certificate-authority in the kubeconfig instead", self.shown);
        (!self.sites.get().is_verified()).then(warning).into_iter().collect()
    }

    /// One request of an exchange that ends at `end`. A 401 is followed by one repetition with credentials that were read
    /// again: the server has taken nothing then.
    ///
    /// # Errors
    /// There is no answer.
    pub(crate) async fn send(&self, ask: &Ask<'_>, end: Instant) -> Result<Answer, Outcome> {
        let answer = once(&self.sites.get(), ask, end).await?;
        if answer.status != 401 || Instant::now() >= end {
            return Ok(answer);
        }
        // A change of its files can be seen, unless they changed twice in a moment.
        once(&self.sites.read_again(), ask, end).await
    }
}

async fn once(site: &Site, ask: &Ask<'_>, end: Instant) -> Result<Answer, Outcome> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(late());
    }
    let sent = request(site, ask).timeout(left).send().await;
    let response = sent.map_err(|error| fault::of(&error).at(peer(&site.url)).outcome())?;
    let (status, wish) = wire::head(&response).map_err(|fault| fault.outcome())?;
    let date = wire::date(&response);
    let (body, _) = wire::read(response, end).await;
    Ok(Answer { status, wish, date, body, at: site.target(), secret: site.token.clone() })
}

fn late() -> Outcome {
    let why = "the time limit ended before the request was sent: raise timeout if this repeats";
    Outcome::Unreachable(Failure::new("timeout", why))
}

fn request(site: &Site, ask: &Ask<'_>) -> RequestBuilder {
    let request = site.client.request(ask.method.clone(), site.address(ask.path, ask.query));
    let request = request.header(HOST, authority(&site.url)).header(ACCEPT, "application/json");
    let request = site.bearer.iter().fold(request, |all, bearer| all.header(AUTHORIZATION, bearer));
    match ask.body {
        Some((kind, body)) => request.header(CONTENT_TYPE, kind).body(body.to_vec()),
        None => request,
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("server", &self.shown).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
