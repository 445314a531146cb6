//! Keystone's catalog: where a service is. Pure.

use std::collections::BTreeSet;

use serde::Deserialize;

/// A service that drivers use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    /// Its name for people.
    pub(crate) who: &'static str,
    /// Its types in a catalog; the first is the official one.
    pub(crate) types: &'static [&'static str],
    /// Whether its requests stand behind the version in its address. The others have it in their own paths, or a project
    /// behind it that only the catalog knows.
    pub(crate) is_versioned: bool,
}

pub(crate) const INSTANCE_HA: Service =
    Service { who: "Masakari", types: &["instance-ha", "ha"], is_versioned: true };
pub(crate) const WORKFLOW: Service =
    Service { who: "Mistral", types: &["workflow", "workflowv2"], is_versioned: true };
pub(crate) const ORCHESTRATION: Service =
    Service { who: "Heat", types: &["orchestration"], is_versioned: false };
pub(crate) const COMPUTE: Service = Service { who: "Nova", types: &["compute"], is_versioned: true };
pub(crate) const CLUSTERING: Service = Service { who: "Senlin", types: &["clustering"], is_versioned: true };

impl Service {
    /// The official type.
    pub(crate) fn name(&self) -> &'static str {
        self.types.first().copied().unwrap_or_default()
    }
}

/// What a token gives access to.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// Its project; `None` for the whole system.
    pub(super) project: Option<String>,
    /// The services.
    pub(super) catalog: Vec<Offer>,
}

/// One service.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Offer {
    r#type: String,
    #[serde(default)]
    endpoints: Vec<Endpoint>,
}

/// One address of it.
#[derive(Clone, Debug, Deserialize)]
struct Endpoint {
    interface: String,
    #[serde(default)]
    region: Option<String>,
    #[serde(default)]
    region_id: Option<String>,
    url: String,
}

/// Which address of a service is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// The interfaces, the preferred one first.
    pub(super) interfaces: Vec<String>,
    /// The region; any if unset.
    pub(super) region: Option<String>,
    /// This address, whatever the catalog has.
    pub(super) instead: Option<String>,
}

/// The address of a service, without a slash at its end.
///
/// # Errors
/// A clause for people.
pub(super) fn address(found: &Found, service: &Service, choice: &Choice) -> Result<String, String> {
    let url = match &choice.instead {
        Some(instead) => expand(instead, found.project.as_deref())?,
        None => find(found, service, choice)?.to_owned(),
    };
    // The request's path is put behind the address.
    match url.contains('?') {
        true => {
            Err(format!("the address of {} has a query (?): correct the catalog or endpoint", service.name()))
        }
        false => Ok(url.trim_end_matches('/').to_owned()),
    }
}

fn find<'f>(found: &'f Found, service: &Service, choice: &Choice) -> Result<&'f str, String> {
    let of_type = |wanted: &&str| found.catalog.iter().any(|entry| entry.r#type == *wanted);
    let Some(word) = service.types.iter().copied().find(of_type) else {
        return Err(format!("Keystone's catalog has no service of the type {}", service.name()));
    };
    let endpoints: Vec<&Endpoint> = found
        .catalog
        .iter()
        .filter(|entry| entry.r#type == word)
        .flat_map(|entry| &entry.endpoints)
        .collect();
    let fitting = |wanted: &String| -> Vec<&Endpoint> {
        let fits = |endpoint: &&Endpoint| endpoint.is(wanted, choice.region.as_deref());
        endpoints.iter().copied().filter(fits).collect()
    };
    let chosen = choice.interfaces.iter().map(fitting).find(|fitting| !fitting.is_empty());
    let none = || {
        format!(
            "Keystone's catalog has no {} of {word} in this region: check interface and region_name in clouds.yaml",
            choice.interfaces.join(" or ")
        )
    };
    the_one(word, &chosen.ok_or_else(none)?)
}

/// The first, unless no region is set and there are several: the same host names may exist in each.
fn the_one<'f>(word: &str, fitting: &[&'f Endpoint]) -> Result<&'f str, String> {
    let regions: BTreeSet<&str> = fitting.iter().map(|endpoint| endpoint.region()).collect();
    let first = fitting.first().map(|endpoint| endpoint.url.as_str()).unwrap_or_default();
    match regions.len() > 1 && fitting.iter().any(|endpoint| endpoint.url != first) {
        false => Ok(first),
        true => {
            let all: Vec<&str> = regions.into_iter().collect();
            Err(format!(
                "Keystone's catalog has {word} in {}: set region_name in clouds.yaml to one of them",
                all.join(" and ")
            ))
        }
    }
}

impl Endpoint {
    fn region(&self) -> &str {
        self.region_id.as_deref().or(self.region.as_deref()).unwrap_or("no region")
    }

    fn is(&self, interface: &str, region: Option<&str>) -> bool {
        // Older catalogs have publicURL.
        let own = self.interface.strip_suffix("URL").unwrap_or(&self.interface);
        let there =
            |region: &str| [&self.region, &self.region_id].into_iter().flatten().any(|own| own == region);
        own == interface && region.is_none_or(there)
    }
}

/// Both names of the project's id, in both spellings.
fn expand(url: &str, project: Option<&str>) -> Result<String, String> {
    let names = ["%(project_id)s", "$(project_id)s", "%(tenant_id)s", "$(tenant_id)s"];
    if !names.iter().any(|name| url.contains(name)) {
        return Ok(url.to_owned());
    }
    let project = project.ok_or("the endpoint needs a project's id, but the token has no project")?;
    Ok(names.iter().fold(url.to_owned(), |url, name| url.replace(name, project)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found() -> Found {
        let endpoint = |interface: &str, region: &str, url: &str| json!({"id": "x", "interface": interface, "region": region, "region_id": region, "url": url});
        let catalog = json!([
            {"type": "identity", "name": "keystone", "id": "k", "endpoints": [endpoint("public", "one", "http://k")]},
            {"type": "ha", "name": "masakari", "id": "m", "endpoints": [
                endpoint("public", "one", "http://p1/v1/"), endpoint("internal", "one", "http://i1/v1/p"),
                endpoint("public", "two", "http://p2/v1"), endpoint("adminURL", "two", "http://a2/v1")]},
            {"type": "workflowv2", "endpoints": [endpoint("public", "one", "http://w/v2")]},
        ]);
        Found { project: Some("p".into()), catalog: serde_json::from_value(catalog).unwrap() }
    }

    fn choice(interfaces: &[&str], region: Option<&str>) -> Choice {
        let interfaces = interfaces.iter().map(|word| (*word).to_owned()).collect();
        Choice { interfaces, region: region.map(str::to_owned), instead: None }
    }

    #[test]
    fn a_service_is_found_by_any_of_its_types() {
        for (service, interfaces, region, expected) in [
            (INSTANCE_HA, vec!["public"], Some("one"), Ok("http://p1/v1")),
            (INSTANCE_HA, vec!["public"], None, Err("ha in one and two: set region_name")),
            (INSTANCE_HA, vec!["internal", "public"], None, Ok("http://i1/v1/p")),
            (INSTANCE_HA, vec!["internal"], Some("one"), Ok("http://i1/v1/p")),
            (INSTANCE_HA, vec!["internal", "public"], Some("two"), Ok("http://p2/v1")),
            (INSTANCE_HA, vec!["admin"], None, Ok("http://a2/v1")),
            (INSTANCE_HA, vec!["internal"], Some("two"), Err("no internal of ha in this region")),
            (WORKFLOW, vec!["public"], None, Ok("http://w/v2")),
            (COMPUTE, vec!["public"], None, Err("no service of the type compute")),
        ] {
            let got = address(&found(), &service, &choice(&interfaces, region));
            match expected {
                Ok(url) => assert_eq!(got.as_deref(), Ok(url)),
                Err(part) => assert!(got.as_ref().unwrap_err().contains(part), "{got:?}"),
            }
        }
    }

    #[test]
    fn an_endpoint_of_ones_own_may_name_the_project() {
        let with = |instead: &str| Choice { instead: Some(instead.to_owned()), ..choice(&["public"], None) };
        let own = |instead: &str| address(&found(), &COMPUTE, &with(instead)).unwrap();
        assert_eq!(own("https://h/v1/%(project_id)s/"), "https://h/v1/p");
        assert_eq!(own("https://h/v1/$(tenant_id)s"), "https://h/v1/p");
        assert_eq!(own("https://h/v1"), "https://h/v1");
        assert!(address(&found(), &COMPUTE, &with("https://h/v1?x=y")).unwrap_err().contains("has a query"));
        let none = Found { project: None, ..found() };
        assert!(address(&none, &COMPUTE, &with("https://h/%(project_id)s")).is_err());
    }
}
