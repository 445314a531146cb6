//! Exchanges with an API server, with our credentials as they are now, and with others after a 401.

mod kubeconfig;
mod site;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::RequestBuilder;
use reqwest::header::{AUTHORIZATION, HOST};
use tokio::time::Instant;

use crate::driver::{Failure, Outcome};
use crate::kept::{Kept, Unusable};
use crate::web::{Answer, Ask, authority, peer, wire};
pub use kubeconfig::Kubeconfig;
use site::Site;

/// An API server, ready for requests.
pub(crate) struct Access {
    /// The server for people, and its context.
    pub(crate) shown: String,
    sites: Kept<Arc<Site>>,
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
            let context = source.context.clone().or_else(|| first.get().cloned());
            let site = Site::read(&Kubeconfig { context, ..source.clone() }, timeout, seen)?;
            first.get_or_init(|| site.context.clone());
            Ok(Arc::new(site))
        })?;
        let shown = sites.get().shown();
        Ok(Self { shown, sites })
    }

    /// The server as the files are now.
    pub(crate) fn site(&self) -> Arc<Site> {
        self.sites.get()
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
    let came = wire::came(request(site, ask).timeout(left).send().await, |_| end).await;
    let came = came.map_err(|fault| fault.at(peer(&site.url)).outcome())?;
    Ok(came.answer(site.target(), site.token.clone()))
}

fn late() -> Outcome {
    let why = "the time limit ended before the request was sent: raise timeout if this repeats";
    Outcome::Unreachable(Failure::new("timeout", why))
}

fn request(site: &Site, ask: &Ask<'_>) -> RequestBuilder {
    let request = ask.to(&site.client, site.address()).header(HOST, authority(&site.url));
    site.bearer.iter().fold(request, |all, bearer| all.header(AUTHORIZATION, bearer))
}

#[cfg(test)]
mod tests;
