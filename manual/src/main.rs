//! Writes the manual pages and the completions into the source: `make man`.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use manual::{COMPLETIONS, PAGES, Sources, files};

fn main() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the source has no root")?;
    let files = files(&Sources::read(root)?)?;
    for directory in [PAGES, COMPLETIONS] {
        // A page that is not made any more is removed.
        let _absent_the_first_time = fs::remove_dir_all(root.join(directory));
        fs::create_dir_all(root.join(directory))?;
    }
    for (path, text) in &files {
        fs::write(root.join(path), text).with_context(|| format!("{path} cannot be written"))?;
    }
    println!("{} files in {PAGES} and {COMPLETIONS}", files.len());
    Ok(())
}
