//! stub
use crate::drivers::Driver;
use marks::host::*;
use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
pub struct StorePlace {
    pub path: PathBuf,
}
pub struct HostRules {
    pub domain: Option<String>,
    pub names: BTreeMap<HostName, HostName>,
    pub on_shared_storage: Option<bool>,
    pub matching: Option<HostPatterns>,
}
pub struct RouteName(pub String);
impl RouteName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
pub struct Route {
    pub name: RouteName,
    pub driver: Arc<dyn Driver>,
}
pub struct Settings {
    pub store: StorePlace,
    pub hosts: HostRules,
    pub coalesce: Duration,
    pub degraded_after: Duration,
    pub max_in_flight: usize,
    pub log_level: tracing::Level,
    pub routes: Vec<Route>,
}
#[derive(serde::Serialize)]
pub struct Problem;
pub struct ConfigErrors(Vec<Problem>);
impl ConfigErrors {
    pub fn problems(&self) -> &[Problem] {
        &self.0
    }
}
impl fmt::Display for ConfigErrors {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}
pub fn load(_: &Path) -> Result<Settings, ConfigErrors> {
    todo!()
}
