//! A manual page as it was committed, read back: what stands in bold at the head of each explanation, and where.

/// What is explained on a page.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Head {
    /// The section.
    pub(super) section: String,
    /// The part of the page; empty outside of parts.
    pub(super) part: String,
    /// The whole line, without fonts.
    pub(super) text: String,
}

/// Every head of the page, those of points too.
pub(super) fn heads(page: &str) -> Vec<Head> {
    let (mut section, mut part, mut found) = (String::new(), String::new(), Vec::new());
    let mut before = "";
    for line in page.lines() {
        if let Some(title) = line.strip_prefix(".SH ") {
            (section, part) = (plain(title), String::new());
        } else if let Some(title) = line.strip_prefix(".SS ") {
            part = plain(title);
        } else if before == ".TP" || before == ".TQ" || before.starts_with(".IP \\(bu") {
            found.push(Head { section: section.clone(), part: part.clone(), text: plain(line) });
        }
        before = line;
    }
    found
}

/// A section without its macros and fonts.
pub(super) fn section(page: &str, title: &str) -> String {
    let begin = format!("\n.SH {title}\n");
    let text = page.split_once(&begin).map_or("", |(_, rest)| rest).split("\n.SH ").next().unwrap();
    plain(text)
}

/// Without fonts and escapes.
pub(super) fn plain(text: &str) -> String {
    let escapes = [
        ("\\fB", ""),
        ("\\fI", ""),
        ("\\fR", ""),
        ("\\fP", ""),
        ("\\-", "-"),
        ("\\&", ""),
        ("\\(aq", "'"),
        ("\\(ti", "~"),
        ("\\e", "\\"),
    ];
    escapes.iter().fold(text.to_owned(), |text, (escape, letter)| text.replace(escape, letter))
}
