//! The whole CIB as one text, put together of its parts.

use std::time::{Duration, Instant};

use super::in_turns;
use crate::child::ChildError;
use crate::register::{RegisterError, Tools};
use crate::xml;

/// Elements with all that is in them, in one answer.
const ELEMENTS: usize = 300;
/// Ten times as long as Pacemaker needs for the longest answer that it can give.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is read again because it has changed meanwhile.
const TRIES: usize = 3;
const SECTIONS: [&str; 10] = [
    "crm_config",
    "nodes",
    "resources",
    "constraints",
    "fencing-topology",
    "rsc_defaults",
    "op_defaults",
    "acls",
    "tags",
    "alerts",
];
/// Without these a CIB is none.
const NEEDED: usize = 4;

/// The CIB with its status, for a caller that needs all of it once: as Pacemaker would print it, but for the order of the
/// sections of a node's state.
///
/// # Errors
/// [`RegisterError`]; also if the CIB changes all the time.
pub fn whole(tools: &Tools, deadline: Instant) -> Result<String, RegisterError> {
    for _ in 0..TRIES {
        let before = version(tools, deadline)?;
        let text = assembled(tools, &before, deadline)?;
        if version(tools, deadline)? == before {
            return Ok(text);
        }
    }
    Err(Tools::cib_unreadable())
}

/// Whether Pacemaker answers the query for the whole CIB, which it does not if the answer is too long: then it says nothing.
pub fn is_too_large(tools: &Tools) -> bool {
    let whole = tools.query(&[], Instant::now() + PATIENCE);
    matches!(whole, Err(RegisterError::Tool { source: ChildError::TooSlow(_), .. }))
}

fn version(tools: &Tools, deadline: Instant) -> Result<String, RegisterError> {
    tools.heads("/cib", deadline)
}

fn assembled(tools: &Tools, root: &str, deadline: Instant) -> Result<String, RegisterError> {
    // A stand-in for the cluster, or a later Pacemaker, may have said everything already.
    let Some(root) = root.trim().strip_suffix("/>") else { return Ok(root.to_owned()) };
    let mut text = format!("{root}><configuration>");
    for (number, section) in SECTIONS.into_iter().enumerate() {
        let inside = all(tools, &format!("/cib/configuration/{section}/*"), deadline)?;
        if number < NEEDED || !inside.is_empty() {
            text += &format!("<{section}>{inside}</{section}>");
        }
    }
    text += "</configuration><status>";
    text += &states(tools, deadline)?;
    Ok(text + "</status></cib>")
}

/// A controller's state holds its operations on every resource of the cluster.
fn states(tools: &Tools, deadline: Instant) -> Result<String, RegisterError> {
    let mut text = String::new();
    let heads = tools.heads("/cib/status/node_state[not(@remote_node)]", deadline)?;
    let heads = xml::elements(&heads, "node_state").unwrap_or_default();
    for (number, head) in heads.iter().enumerate() {
        let path = format!("/cib/status/node_state[not(@remote_node)][{}]", number + 1);
        let attributes = all(tools, &format!("{path}/transient_attributes"), deadline)?;
        let resources = all(tools, &format!("{path}/lrm/lrm_resources/lrm_resource"), deadline)?;
        let id = xml::escape(head.get("id"));
        text += &format!(
            r#"{}{attributes}<lrm id="{id}"><lrm_resources>{resources}</lrm_resources></lrm></node_state>"#,
            head.opened()
        );
    }
    Ok(text + &all(tools, "/cib/status/node_state[@remote_node]", deadline)?)
}

/// The texts of everything that a path finds.
fn all(tools: &Tools, path: &str, deadline: Instant) -> Result<String, RegisterError> {
    let mut text = String::new();
    in_turns(
        tools,
        path,
        ELEMENTS,
        || deadline,
        |answer| {
            let (inside, found) = xml::inside(answer).ok()?;
            text += inside;
            Some(found)
        },
    )?;
    Ok(text)
}
