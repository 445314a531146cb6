//! Sightings from Pacemaker's own memory: the fencers' history, and `node_fenced` in the CIB.

use super::clock;
use super::event::{Action, is_human};
use crate::cib::Cib;
use crate::xml::{self, Element};
use marks::host::HostName;
use marks::sighting::{Sighting, Witness};
use marks::time::Timestamp;

/// The text is no fencing history, or was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the output of stonith_admin cannot be read: check Pacemaker on this controller")]
pub struct HistoryError;

impl HistoryError {
    /// A stable machine word.
    pub fn kind(self) -> &'static str {
        "unreadable"
    }
}

/// Reads `stonith_admin --history '*' --verbose --output-as=xml`: the successful fencings, in its order.
///
/// An event whose time cannot be read, or is in 1970 (the fencer's value for "unknown"), is left out.
///
/// # Errors
/// [`HistoryError`] if it was cut off.
pub fn history(xml: &str) -> Result<Vec<Sighting>, HistoryError> {
    let events = xml::elements(xml, "fence_event").map_err(|_| HistoryError)?;
    Ok(events.iter().filter_map(done).collect())
}

fn done(event: &Element) -> Option<Sighting> {
    let fenced = matches!(Action::parse(event.get("action"))?, Action::Off | Action::Reboot);
    let at = clock::read(event.get("completed")).filter(|at| *at >= UNKNOWN)?;
    let node = HostName::parse(event.get("target")).ok()?;
    (fenced && event.get("status") == "success").then(|| Sighting {
        node,
        witness: Witness::History,
        at,
        by_human: is_human(event.get("delegate")),
    })
}

/// 1971: an earlier time is not a time.
const UNKNOWN: Timestamp = Timestamp(365 * 86_400 * 1000);

/// Every host that was fenced and is not back, as the CIB has it.
///
/// A confirmation by hand sets `node_fenced` too and cannot be distinguished from a fencing here; the history and the
/// alert can do that.
pub fn node_fenced(cib: &Cib) -> Vec<Sighting> {
    let fenced = cib.fenced_nodes().into_iter();
    let sightings = fenced.map(|(node, second)| Sighting {
        node,
        witness: Witness::NodeFenced,
        at: Timestamp::from_seconds(second),
        by_human: false,
    });
    sightings.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As 2.1.5 prints it.
    const RECORDED: &str = r#"<pacemaker-result api-version="2.25" request="stonith_admin --history * --verbose --output-as=xml">
  <fence_history>
    <fence_event action="reboot" target="compute1" client="pacemaker-controld.64" origin="ctl3" status="success" delegate="ctl2" completed="2026-11-20 15:27:38Z"/>
    <fence_event action="off" target="Compute2" client="stonith_admin.812" origin="ctl1" status="success" delegate="a human" completed="2026-11-20 16:30:00 +01:00"/>
    <fence_event action="off" target="compute3" client="x" origin="ctl1" status="failed" delegate="ctl2" exit-reason="no" completed="2026-11-20 15:27:39Z"/>
    <fence_event action="on" target="compute4" client="x" origin="ctl1" status="success" delegate="ctl2" completed="2026-11-20 15:27:40Z"/>
    <fence_event action="off" target="compute5" client="x" origin="ctl1" status="pending"/>
    <fence_event action="off" target="compute6" client="x" origin="ctl1" status="success" completed="1970-01-01 00:00:00Z"/>
    <fence_event action="off" target="compute7" client="x" origin="ctl1" status="success" completed="1970-01-01 01:00:00 +01:00"/>
    <fence_event action="off" target="compute8" client="x" origin="ctl1" status="success" completed="yesterday"/>
    <fence_event action="off" target="../compute9" client="x" origin="ctl1" status="success" completed="2026-11-20 15:27:38Z"/>
  </fence_history>
  <status code="0" message="OK"/>
</pacemaker-result>
"#;

    #[test]
    fn only_what_was_done_at_a_known_time_is_a_sighting() {
        let read = history(RECORDED).unwrap();
        let sighting = |node: &str, seconds, by_human| Sighting {
            node: HostName::parse(node).unwrap(),
            witness: Witness::History,
            at: Timestamp::from_seconds(seconds),
            by_human,
        };
        let by_hand = sighting("compute2", 1_795_188_600, true);
        assert_eq!(read, [sighting("compute1", 1_795_188_458, false), by_hand]);
    }

    #[test]
    fn a_history_without_events_is_empty_and_half_of_one_an_error() {
        let empty = r#"<pacemaker-result><fence_history/><status code="0" message="OK"/></pacemaker-result>"#;
        assert_eq!(history(empty), Ok(vec![]));
        for broken in ["", "none", &RECORDED[..RECORDED.len() / 2]] {
            assert_eq!(history(broken).map_err(HistoryError::kind), Err("unreadable"));
        }
    }

    #[test]
    fn every_host_that_is_down_and_fenced_is_seen() {
        let cib = Cib::parse(
            r#"<cib><status><node_state id="1" uname="ctl1" in_ccm="true"/>
            <node_state remote_node="true" id="compute1" uname="compute1" in_ccm="false" node_fenced="1795191514"/>
            <node_state remote_node="true" id="compute2" uname="compute2" in_ccm="true" node_fenced="0"/></status></cib>"#,
        )
        .unwrap();
        let [seen] = &node_fenced(&cib)[..] else { panic!("one host was fenced") };
        assert_eq!((seen.node.as_str(), seen.at.seconds()), ("compute1", 1_795_191_514));
        assert_eq!((seen.witness, seen.by_human), (Witness::NodeFenced, false));
    }
}
