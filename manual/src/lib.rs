//! Makes the manual pages and the completions of the tables in the code and of the pages in `docs/`.

mod agent;
mod commands;
mod completions;
mod markdown;
mod ocf;
mod pages;
mod roff;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context as _;

/// Where the pages are in the source.
pub const PAGES: &str = "packaging/man";
/// Where the completions are.
pub const COMPLETIONS: &str = "packaging/completions";

/// The files that the pages are made of, beside the tables of the code.
const FILES: [&str; 5] = [
    "docs/operate.md",
    "ocf/nova-host-alerter",
    "packaging/alerter.toml",
    "packaging/examples/crmsh.txt",
    "packaging/examples/pcs.sh",
];

/// The files that the pages are made of.
#[derive(Clone, Debug)]
pub struct Sources(BTreeMap<String, String>);

impl Sources {
    /// Reads it from the root of the source.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read(root: &Path) -> anyhow::Result<Self> {
        let text = |path: &str| {
            fs::read_to_string(root.join(path)).with_context(|| format!("{path} cannot be read"))
        };
        let files = FILES.iter().map(|path| text(path).map(|text| ((*path).to_owned(), text)));
        Ok(Self(files.collect::<anyhow::Result<_>>()?))
    }

    /// The same with another text of one file.
    #[must_use]
    pub fn with(mut self, path: &str, text: String) -> Self {
        self.0.insert(path.to_owned(), text);
        self
    }

    fn text(&self, path: &str) -> anyhow::Result<&str> {
        self.0.get(path).map(String::as_str).with_context(|| format!("the manual reads no {path}"))
    }
}

/// Every file that is made, by its path from the root of the source.
///
/// # Errors
/// Something that belongs to a page is missing.
pub fn files(sources: &Sources) -> anyhow::Result<BTreeMap<String, String>> {
    let pages = pages::all(sources)?.into_iter().map(|(name, text)| (format!("{PAGES}/{name}"), text));
    let scripts = completions::all().into_iter().map(|(name, text)| (format!("{COMPLETIONS}/{name}"), text));
    Ok(pages.chain(scripts).collect())
}
