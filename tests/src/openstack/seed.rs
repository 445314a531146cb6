//! What the services know from their beginning: people, hosts, and where they are themselves.

use serde_json::{Value, json};

use super::part::{self, Part};
use super::place::Place;

/// Hosts in an enabled segment of Masakari.
pub const ENABLED: [&str; 3] = ["compute1.my.cloud.com", "compute2.my.cloud.com", "compute3.my.cloud.com"];
/// A host on maintenance, in the same segment.
pub const MAINTAINED: &str = "compute4.my.cloud.com";
/// A reserved host, in the same segment.
pub const RESERVED: &str = "compute5.my.cloud.com";
/// A host in a disabled segment.
pub const DISABLED: &str = "compute6.my.cloud.com";
/// A host that Nova knows, and Masakari does not.
pub const NOVA_ALONE: &str = "compute7.my.cloud.com";

pub(super) const PROJECT: &str = "ops";
pub(super) const REGION: &str = "RegionOne";
pub(super) const ADMIN: (&str, &str) = ("alerter", "admins-s3kr1t");
pub(super) const READER: (&str, &str) = ("watcher", "readers-s3kr1t");
pub(super) const NOBODY: (&str, &str) = ("nobody", "nobodys-s3kr1t");
pub(super) const SERVICE_PASSWORD: &str = "services-s3kr1t";
pub(super) const APPLICATION: (&str, &str) = ("0a1b2c3d4e5f60718293a4b5c6d7e8f9", "applications-s3kr1t");

/// All of it, for the programs that make the databases.
pub(super) fn wanted(place: &Place) -> Value {
    let services: Vec<Value> = part::ALL.iter().filter_map(|part| service(*part, place)).collect();
    let mut users = vec![user(READER, PROJECT, &["reader"]), user(NOBODY, PROJECT, &[])];
    users.extend(part::ALL.iter().map(|part| user((part.name(), SERVICE_PASSWORD), "services", &["admin"])));
    let mut east = ENABLED.to_vec();
    east.extend([MAINTAINED, RESERVED]);
    let computes = [&east[..], &[DISABLED, NOVA_ALONE]].concat();
    json!({
        "region": REGION, "project": PROJECT, "identity": place.identity(),
        "admin": {"name": ADMIN.0, "password": ADMIN.1},
        "users": users, "services": services,
        "application": {"id": APPLICATION.0, "name": "alerter", "secret": APPLICATION.1},
        "segments": [
            {"name": "east", "enabled": true, "hosts": east},
            {"name": "west", "enabled": false, "hosts": [DISABLED]},
        ],
        "on_maintenance": [MAINTAINED], "reserved": [RESERVED],
        "computes": computes,
    })
}

fn service(part: Part, place: &Place) -> Option<Value> {
    let (kind, path) = part.in_the_catalog()?;
    Some(json!({"type": kind, "name": part.name(), "url": format!("http://{}{path}", place.address(part))}))
}

fn user((name, password): (&str, &str), project: &str, roles: &[&str]) -> Value {
    json!({"name": name, "password": password, "project": project, "roles": roles})
}
