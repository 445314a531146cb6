//! The whole CIB as one text, put together of its parts.

use std::thread;
use std::time::{Duration, Instant};

use super::in_turns;
use crate::child::ChildError;
use crate::tools::{ToolError, Tools};
use crate::xml;

/// Elements with all that is in them, in one answer.
const ELEMENTS: usize = 300;
/// Ten times as long as Pacemaker needs for the longest answer that it can give.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two readings of a CIB that changes meanwhile.
const PAUSE: Duration = Duration::from_millis(200);
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

/// The CIB with its status, for a caller that needs all of it once, and whether it is longer than Pacemaker can say: then it
/// gives no answer at all.
///
/// # Errors
/// [`ToolError`]; also if it is too long and changes until `deadline`.
pub fn whole(tools: &Tools, deadline: Instant) -> Result<(String, bool), ToolError> {
    match tools.query(&[], deadline.min(Instant::now() + PATIENCE)) {
        Err(ToolError::Failed { source: ChildError::TooSlow(_), .. }) => {
            Ok((in_parts(tools, deadline)?, true))
        }
        text => Ok((text?, false)),
    }
}

/// As Pacemaker would print it, but for the order of the sections of a node's state. A cluster that does something changes it.
pub(super) fn in_parts(tools: &Tools, deadline: Instant) -> Result<String, ToolError> {
    loop {
        let before = version(tools, deadline)?;
        let text = assembled(tools, &before, deadline)?;
        if version(tools, deadline)? == before {
            return Ok(text);
        }
        if Instant::now() + PAUSE >= deadline {
            return Err(Tools::cib_unreadable());
        }
        thread::sleep(PAUSE);
    }
}

fn version(tools: &Tools, deadline: Instant) -> Result<String, ToolError> {
    tools.heads("/cib", deadline)
}

fn assembled(tools: &Tools, root: &str, deadline: Instant) -> Result<String, ToolError> {
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
fn states(tools: &Tools, deadline: Instant) -> Result<String, ToolError> {
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
fn all(tools: &Tools, path: &str, deadline: Instant) -> Result<String, ToolError> {
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
