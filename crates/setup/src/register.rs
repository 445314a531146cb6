//! The register's needs on this controller: a key that only root can read, and for etcd its tool.

use super::finding::{Finding, Kind, Then};
use super::local::{Here, Key};
use super::step::Step;

const ABOUT: &str = "this controller";

pub(super) fn check(here: &Here, found: &mut Vec<Finding>) {
    found.extend(here.no_tool.as_ref().map(|tool| {
        let what = format!("{tool} is not on this controller, so it cannot read or write the register");
        let then = "install etcd's client, on every controller".to_owned();
        Finding::new(Kind::NoEtcdctl, ABOUT, what, Then::Do(then))
    }));
    let Some(key) = &here.key else { return };
    found.extend(key.complaints.iter().map(|why| {
        let then = "correct that: the file must be the same on every controller, and only root's".to_owned();
        Finding::new(Kind::BadRegisterKey, ABOUT, why, Then::Do(then))
    }));
    if key.sealing.is_none() {
        found.push(missing(key));
    }
}

/// An existing file may be the one of the other controllers.
fn missing(key: &Key) -> Finding {
    let own = &key.own;
    let what = format!(
        "this controller has no key for the register, so its entries cannot be distinguished from forgeries: copy {own} from another controller, or make it if no controller has one"
    );
    let then = if key.is_own_there {
        Then::Do(format!("correct {own}: setup does not overwrite a key"))
    } else {
        Then::Setup(Step::MakeKey { file: own.clone() })
    };
    Finding::new(Kind::NoRegisterKey, ABOUT, what, then)
}
