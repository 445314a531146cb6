//! A stored message of a `mistral` route: an execution as Mistral takes it, with these keys and no other. Pure.

use std::fmt::Write as _;

use marks::id::MarkId;
use marks::mark::Mark;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::input::Template;
use super::keys::Options;
use crate::event::bytes;

/// The longest description that Mistral's databases take, in characters.
const LONGEST: usize = 255;

/// A workflow. Serialised in the order of its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Workflow {
    #[serde(skip_serializing_if = "Option::is_none")]
    workflow_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workflow_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workflow_namespace: Option<String>,
}

impl Workflow {
    /// A workflow by its name, or by its UUID.
    fn of(options: &Options) -> Self {
        let (workflow, namespace) = (options.workflow.clone(), options.namespace.clone());
        let is_id = MarkId::parse(&workflow).is_ok();
        let (id, name) = if is_id { (Some(workflow), None) } else { (None, Some(workflow)) };
        Self { workflow_id: id, workflow_name: name, workflow_namespace: namespace }
    }

    /// Its name or id.
    pub(super) fn shown(&self) -> &str {
        self.workflow_id.as_deref().or(self.workflow_name.as_deref()).unwrap_or_default()
    }

    /// Its path in the API.
    pub(super) fn path(&self) -> String {
        let mut path = "/workflows/".to_owned();
        for byte in self.shown().bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-' | b'~' => path.push(byte.into()),
                _ => {
                    let _to_a_string = write!(path, "%{byte:02X}");
                }
            }
        }
        path
    }

    /// Its namespace.
    pub(super) fn query(&self) -> Vec<(&str, &str)> {
        self.workflow_namespace.iter().map(|namespace| ("namespace", namespace.as_str())).collect()
    }
}

/// What is stored: an execution as Mistral takes it, or a test, which it never gets. Serialised in the order of its fields.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stored {
    /// The mark's id, which is the execution's.
    pub(super) id: String,
    #[serde(flatten)]
    pub(super) workflow: Workflow,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Whether it is a test; a value is only there if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    test: Option<bool>,
}

/// The execution of a mark.
pub(super) fn of_mark(mark: &Mark, options: &Options) -> Vec<u8> {
    let times = options.time_format;
    let short = |template: &Template| template.text(mark, times).chars().take(LONGEST).collect();
    let (id, workflow) = (mark.id.to_string(), Workflow::of(options));
    let (input, description) = (options.input.value(mark, times), options.description.as_ref().map(short));
    bytes(&Stored { id, workflow, input: Some(input), description, test: None })
}

/// A test of a workflow. It does not start it.
pub(super) fn of_test(id: &MarkId, options: &Options) -> Vec<u8> {
    let (id, workflow) = (id.to_string(), Workflow::of(options));
    bytes(&Stored { id, workflow, input: None, description: None, test: Some(true) })
}

impl Stored {
    /// Reads it; `None` if this driver did not make it.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let stored: Self = serde_json::from_slice(body).ok()?;
        (!stored.workflow.shown().is_empty()).then_some(stored)
    }

    /// Whether it is a test.
    pub(super) fn is_test(&self) -> bool {
        self.test == Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::TimeFormat;
    use crate::event::tests::mark;
    use crate::openstack::CloudOptions;

    fn by(workflow: &str, namespace: Option<&str>) -> Options {
        let namespace = namespace.map(str::to_owned);
        Options { namespace, ..Options::of(CloudOptions::of_file("/".into()), workflow) }
    }

    fn body(options: &Options, description: Option<&str>) -> String {
        let description = description.map(|text| Template::parse(text).unwrap());
        let body = of_mark(&mark(), &Options { description, ..options.clone() });
        String::from_utf8(body).unwrap()
    }

    /// S0-27, S1-43: an execution under the mark's id, with the input of the seed's script.
    #[test]
    fn the_body_is_an_execution_with_the_marks_id() {
        let golden = concat!(
            r#"{"id":"0193b3a4-5c6d-7e8f-9a0b-1c2d3e4f5a6b","workflow_name":"host-evacuate","#,
            r#""input":{"on_shared_storage":true,"search_opts":{"host":"Compute1.my.cloud.com"}}}"#
        );
        assert_eq!(body(&by("host-evacuate", None), None), golden);
        let id = "b8f2a9d0-1111-4222-8333-444455556666";
        let whole = body(&by(id, Some("ops")), Some("{node} failed"));
        assert!(whole.contains(&format!(r#""workflow_id":"{id}","workflow_namespace":"ops","input":"#)));
        assert!(
            whole.ends_with(r#""description":"compute1 failed"}"#) && !whole.contains("workflow_name\":")
        );
    }

    /// Mistral takes no test for an execution, and a test has no input to act on.
    #[test]
    fn a_test_starts_nothing() {
        let workflow = by("host-evacuate", Some("ops"));
        let stored = Stored::read(&of_test(&mark().id, &workflow)).unwrap();
        assert!(stored.is_test() && stored.workflow == Workflow::of(&workflow));
        let stored = Stored::read(body(&workflow, None).as_bytes()).unwrap();
        assert!(!stored.is_test() && stored.id == mark().id.to_string());
        let text = String::from_utf8(of_test(&mark().id, &workflow)).unwrap();
        assert!(!text.contains("input") && !text.contains("Compute1"));
    }

    #[test]
    fn the_bytes_of_others_are_not_read() {
        let standard = crate::event::Event::of_mark(&mark(), TimeFormat::Epoch).bytes();
        for body in [&standard[..], b"", b"{}", b"null", br#"{"id":"x","workflow_name":""}"#] {
            assert_eq!(Stored::read(body), None);
        }
    }
}
