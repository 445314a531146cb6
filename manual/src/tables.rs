//! Tables in pages of `docs/` whose rows come from the code.

use anyhow::Context as _;
use drivers::{KINDS, Kind};

use crate::Sources;

/// A table: the file, its head, and the rows of a driver.
type Table = (&'static str, &'static str, fn(&Kind) -> Vec<String>);

const TABLES: [Table; 2] = [
    ("docs/drivers.md", "| driver | how it notifies |\n|---|---|\n", |kind| {
        vec![format!("| [`[{0}.NAME]`](drivers/{0}.md) | {1} |", kind.word, kind.summary)]
    }),
    (
        "docs/writes.md",
        "| driver | what it does | what must hold | how to undo it |\n|---|---|---|---|\n",
        |kind| kind.writes.iter().map(|write| format!("| {} {}", kind.word, write.row())).collect(),
    ),
];

/// Every page with such a table, as it should be.
pub(crate) fn all(sources: &Sources) -> anyhow::Result<Vec<(String, String)>> {
    let page = |(path, head, rows): &Table| {
        let rows: Vec<String> = KINDS.iter().flat_map(rows).collect();
        Ok(((*path).to_owned(), with_rows(sources.text(path)?, head, &rows.join("\n"))?))
    };
    TABLES.iter().map(page).collect()
}

fn with_rows(text: &str, head: &str, rows: &str) -> anyhow::Result<String> {
    let (before, behind) = text.split_once(head).with_context(|| format!("no page has the table {head}"))?;
    let (_, after) = behind.split_once("\n\n").context("a table does not end")?;
    Ok(format!("{before}{head}{rows}\n\n{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_between_the_head_and_the_next_paragraph() {
        let text = "a\n\n| h |\n|---|\n| old |\n| older |\n\nb\n\nc\n";
        let made = with_rows(text, "| h |\n|---|\n", "| new |").unwrap();
        assert_eq!(made, "a\n\n| h |\n|---|\n| new |\n\nb\n\nc\n");
        assert!(with_rows("a", "| h |\n|---|\n", "").is_err());
    }
}
