//! Sections of pages in `docs/` which the manual has too.

use anyhow::Context as _;

/// The text below a heading of the second level, up to the next one.
///
/// # Errors
/// There is no such heading.
pub(crate) fn section<'t>(text: &'t str, heading: &str) -> anyhow::Result<&'t str> {
    let begin = format!("\n## {heading}\n");
    let (_, rest) =
        text.split_once(&begin).with_context(|| format!("no page in docs/ has a section {heading}"))?;
    Ok(rest.split("\n## ").next().unwrap_or(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_ends_where_the_next_begins() {
        let text = "# All\n\n## one\na\n### part\nb\n\n## two\nc\n";
        assert_eq!(section(text, "one").unwrap(), "a\n### part\nb\n");
        assert_eq!(section(text, "two").unwrap(), "c\n");
        assert!(section(text, "part").is_err());
    }
}
