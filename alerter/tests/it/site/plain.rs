//! A driver that takes every event and goes no further: its exchanges are the model's.

use std::time::Duration;

use drivers::event::{Event, TimeFormat};
use drivers::{About, Driver, Exchange, Message, Outcome, Step};
use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;

#[derive(Debug)]
pub(crate) struct Plain(About);

impl Plain {
    pub(crate) fn with(steps: &'static [Step], timeout: Duration, ends_each: bool) -> Self {
        Self(About { steps, ends_each, ..About::new("http", String::new(), timeout) })
    }
}

impl Driver for Plain {
    fn about(&self) -> &About {
        &self.0
    }

    fn target(&self) -> String {
        String::new()
    }

    fn body(&self, mark: &Mark) -> Vec<u8> {
        Event::of_mark(mark, TimeFormat::Epoch).bytes()
    }

    fn return_body(&self, mark: &Mark, _sent: &[u8], _returned: Timestamp) -> Vec<u8> {
        format!("{} is back", mark.node).into_bytes()
    }

    fn test_body(&self, id: &MarkId, now: Timestamp) -> Vec<u8> {
        Event::of_test(id, now, TimeFormat::Epoch).bytes()
    }

    fn deliver<'a>(&'a self, _message: Message<'a>) -> Exchange<'a> {
        Box::pin(async { Outcome::Acknowledged { reference: None } })
    }
}
