//! Pages in `docs/`, and sections of them, which the manual has too.

use anyhow::Context as _;

/// Where the page of a driver is.
pub(crate) fn of_driver(word: &str) -> String {
    format!("docs/drivers/{word}.md")
}

/// A page without its title.
pub(crate) fn body(page: &str) -> &str {
    page.split_once("\n\n").map_or(page, |(_, rest)| rest)
}

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

/// A section taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    /// Its sentences.
    pub prose: String,
    /// Its tables, as Markdown.
    pub tables: String,
    /// Its configuration.
    pub example: String,
}

/// Takes a section apart: tables, TOML, and the rest.
pub(crate) fn parts(section: &str) -> Parts {
    let mut parts = Parts::default();
    let mut is_example = false;
    for line in section.lines() {
        let into = match line {
            "```toml" => {
                is_example = true;
                continue;
            }
            "```" if is_example => {
                is_example = false;
                continue;
            }
            _ if is_example => &mut parts.example,
            _ if line.starts_with('|') => &mut parts.tables,
            _ => &mut parts.prose,
        };
        into.push_str(line);
        into.push('\n');
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_a_title_and_a_body() {
        assert_eq!(body("# All\n\na\n\n## one\nb\n"), "a\n\n## one\nb\n");
    }

    #[test]
    fn a_section_ends_where_the_next_begins() {
        let text = "# All\n\n## one\na\n### part\nb\n\n## two\nc\n";
        assert_eq!(section(text, "one").unwrap(), "a\n### part\nb\n");
        assert_eq!(section(text, "two").unwrap(), "c\n");
        assert!(section(text, "part").is_err());
    }

    #[test]
    fn tables_and_configuration_are_taken_out() {
        let found = parts("a\n\n```toml\n[x]\n```\n\n| t | |\n|---|---|\n\nb\n");
        assert_eq!((found.example.as_str(), found.tables.as_str()), ("[x]\n", "| t | |\n|---|---|\n"));
        assert!(found.prose.contains("a\n") && found.prose.contains("b\n") && !found.prose.contains('|'));
    }
}
