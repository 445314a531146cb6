//! stub
use marks::{id::MarkId, mark::Mark, time::Timestamp};
use std::{fmt, future::Future, pin::Pin, time::Duration};
pub struct Message<'a> {
    pub id: &'a MarkId,
    pub body: &'a [u8],
}
pub enum Outcome {
    Acknowledged { reference: Option<String> },
    Retry(Failure),
    Refused(Failure),
    Unknown(Failure),
}
pub struct Failure {
    pub kind: &'static str,
    pub detail: String,
    pub after: Option<Duration>,
}
pub type Exchange<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;
pub trait Driver: Send + Sync + fmt::Debug {
    fn kind(&self) -> &'static str;
    fn endpoint(&self) -> String;
    fn body(&self, mark: &Mark) -> Vec<u8>;
    fn test_body(&self, id: &MarkId, now: Timestamp) -> Vec<u8>;
    fn deliver<'a>(&'a self, message: Message<'a>) -> Exchange<'a>;
}
