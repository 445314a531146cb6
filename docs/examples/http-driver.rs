//! The `ticket` driver: one ticket for each mark, at a service that takes JSON and wants its key in the body.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;
use serde_json::json;
use site::Section;

use crate::driver::{Check, Driver, Exchange, Failure, Kind, Message, Named, Outcome, usable};
use crate::kept::Unusable;
use crate::web::{self, BodySecret, Endpoint, Said};

/// The driver in the registry.
pub(crate) const KIND: Kind = Kind { word: "ticket", configure };

/// One `ticket` route.
struct Ticket {
    endpoint: Endpoint,
    secret: BodySecret,
}

impl Ticket {
    fn new(options: web::ClientOptions, secret: BodySecret) -> Result<Self, Unusable> {
        Ok(Self { endpoint: Endpoint::new(options)?, secret })
    }

    /// The stored bytes do not hold the key: it is put into what is sent.
    async fn exchange(&self, message: Message<'_>) -> Outcome {
        let said = match self.secret.within(message.body) {
            Ok(body) => self.endpoint.post(&body).await,
            Err(outcome) => return outcome,
        };
        said.map_or_else(|outcome| outcome, |said| outcome(&said))
    }
}

/// What an answer means. Pure: what is no ticket of ours stands in the table of all (`crates/drivers/src/web/plain.rs`).
fn outcome(said: &Said) -> Outcome {
    match (said.status, said.json()["ticket"].as_str()) {
        (200 | 201, Some(ticket)) => Outcome::Acknowledged { reference: Some(ticket.to_owned()) },
        (200..=299, _) => {
            Outcome::Unknown(Failure::new("protocol", "the endpoint took the message and named no ticket"))
        }
        _ => said.outcome(),
    }
}

impl Driver for Ticket {
    fn kind(&self) -> &'static str {
        KIND.word
    }

    fn endpoint(&self) -> String {
        self.endpoint.shown()
    }

    fn secret_file(&self) -> Option<&Path> {
        Some(self.secret.file())
    }

    fn body(&self, mark: &Mark) -> Vec<u8> {
        let title = format!("compute host {} failed and was fenced", mark.fqdn);
        json!({ "key": mark.id.to_string(), "title": title }).to_string().into_bytes()
    }

    fn test_body(&self, id: &MarkId, _now: Timestamp) -> Vec<u8> {
        json!({ "key": id.to_string(), "title": "test: no host failed" }).to_string().into_bytes()
    }

    fn limit(&self) -> Duration {
        self.endpoint.limit()
    }

    fn check<'a>(&'a self, _hosts: &'a [Named]) -> Check<'a> {
        Box::pin(async { Some(self.endpoint.reach().await.into_iter().collect()) })
    }

    fn certificate_end(&self) -> Option<Timestamp> {
        self.endpoint.certificate_end()
    }

    fn deliver<'a>(&'a self, message: Message<'a>) -> Exchange<'a> {
        Box::pin(self.exchange(message))
    }
}

/// Reads `[ticket.NAME]`: all keys first, and only then a decision, so that every mistake is said at once.
fn configure(table: &mut Section<'_, '_>) -> Option<Arc<dyn Driver>> {
    let options = web::read_options(table, None);
    let secret = BodySecret::read(table, "api-key-file", "api_key");
    if !table.has("api-key-file") {
        let title = table.title().to_owned();
        table.missing(format!("[{title}] has no api-key-file: set it to the file with the service's key"));
    }
    let (options, secret) = (options?, secret?);
    if !table.is_sound() {
        return None;
    }
    usable(table, Ticket::new(options, secret))
}
