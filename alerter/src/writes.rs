//! What this product changes outside of itself. Each driver and `setup` list their writes, and `docs/writes.md` shows all of
//! them: a test compares.

use std::fmt;

use reqwest::Method;

/// One write: what it changes, what guards it, and how it is undone.
#[derive(Debug)]
pub struct Write {
    /// What is done.
    pub what: What,
    /// What must hold before it is done.
    pub guard: &'static str,
    /// How an operator undoes it.
    pub undo: &'static str,
}

/// What is done.
#[derive(Debug)]
pub enum What {
    /// A request to an OpenStack service, and what it does there.
    Request(&'static Request, &'static str),
    /// Something else.
    Other(&'static str),
}

/// A request that changes something in an OpenStack service.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    /// Its method.
    pub method: Method,
    /// Its path behind the service's address, with capitals for what differs.
    pub path: &'static str,
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(Request { method, path }, what) => write!(f, "`{method} {path}`: {what}"),
            Self::Other(what) => f.write_str(what),
        }
    }
}

impl Write {
    /// Its row of the page.
    pub fn row(&self) -> String {
        format!("| {} | {} | {} |", self.what, self.guard, self.undo)
    }
}

#[cfg(test)]
mod tests {
    use crate::drivers;

    const PAGE: &str = include_str!("../../docs/writes.md");

    /// The rows of a section, but for its head.
    fn rows(page: &str, section: &str) -> Vec<String> {
        let (_, behind) = page.split_once(section).unwrap();
        let own = behind.split("\n## ").next().unwrap().lines();
        own.filter(|line| line.starts_with("| ")).skip(1).map(str::to_owned).collect()
    }

    /// The broken variant is a page that lacks a row.
    fn expect(section: &str, all: &[String]) {
        assert_eq!(rows(PAGE, section), all, "docs/writes.md wants\n{}\n", all.join("\n"));
        assert_ne!(rows(&PAGE.replacen(&all[0], "", 1), section), all);
    }

    #[test]
    fn the_page_has_every_write_of_a_driver() {
        let of_kind = |kind: &drivers::Kind| {
            assert!(!kind.writes.is_empty(), "{} says what it writes", kind.word);
            kind.writes.iter().map(|write| format!("| {} {}", kind.word, write.row())).collect::<Vec<_>>()
        };
        expect("\n## Recovery controllers", &drivers::KINDS.iter().flat_map(of_kind).collect::<Vec<_>>());
    }

    #[test]
    fn the_page_has_every_write_of_setup() {
        let row = |write: &setup::Write| format!("| {} | {} | {} |", write.what, write.guard, write.undo);
        let all: Vec<String> = setup::WRITES.iter().map(row).collect();
        expect("\n## Pacemaker's configuration", &all);
    }
}
