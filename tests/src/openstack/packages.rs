//! Whether this machine has the programs of these services.

use std::path::Path;

use anyhow::ensure;

use super::part::Part;

/// Where Debian puts Python packages.
const MODULES: &str = "/usr/lib/python3/dist-packages";
/// Where Debian puts uwsgi's plugins.
const PLUGINS: &str = "/usr/lib/uwsgi/plugins";

/// Says why this machine cannot run these services, and Keystone and Masakari, or `None` if it can.
#[must_use]
pub fn cannot(others: &[Part]) -> Option<String> {
    let all = [&[Part::Keystone, Part::Masakari], others].concat();
    all.into_iter().try_for_each(has_module).and_then(|()| has_server()).err().map(|error| error.to_string())
}

fn has_module(part: Part) -> anyhow::Result<()> {
    let name = part.name();
    let is_there = Path::new(MODULES).join(name).is_dir();
    ensure!(is_there, "OpenStack's {name} is not installed (python3-{name} of Debian): run `make deps`");
    Ok(())
}

fn has_server() -> anyhow::Result<()> {
    for path in ["/usr/bin/uwsgi-core".into(), format!("{PLUGINS}/python3_plugin.so")] {
        ensure!(Path::new(&path).exists(), "{path} is not installed: run `make deps`");
    }
    Ok(())
}
