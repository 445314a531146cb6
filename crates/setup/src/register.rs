//! What the register needs on this controller: a key that root alone can read, and for etcd its tool.

use super::finding::{Finding, Kind, Then};
use super::local::{Here, Key};
use super::step::Step;

const ABOUT: &str = "this controller";

pub(super) fn check(here: &Here, found: &mut Vec<Finding>) {
    found.extend(here.no_tool.as_ref().map(|tool| {
        let what = format!("{tool} is not on this controller, so nothing here reads or writes the register");
        let then = "install etcd's client, on every controller".to_owned();
        Finding::new(Kind::NoEtcdctl, ABOUT, what, Then::Do(then))
    }));
    let Some(key) = &here.key else { return };
    found.extend(key.complaints.iter().map(|why| {
        let then = "put that right: the file is the same on every controller, and root's alone".to_owned();
        Finding::new(Kind::BadRegisterKey, ABOUT, why, Then::Do(then))
    }));
    if key.sealing.is_none() {
        found.push(missing(key));
    }
}

/// A file that is there may be what the other controllers have.
fn missing(key: &Key) -> Finding {
    let own = &key.own;
    let what = format!(
        "this controller has no key for the register, so what it writes there cannot be told from a forgery: where another controller has {own}, copy that file here, else make it once"
    );
    let then = if key.is_own_there {
        Then::Do(format!("put {own} right: setup writes over no key"))
    } else {
        Then::Setup(Step::MakeKey { file: own.clone() })
    };
    Finding::new(Kind::NoRegisterKey, ABOUT, what, then)
}
