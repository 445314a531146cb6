//! `docs/writes.md` shows everything that this product changes outside of itself.

const PAGE: &str = include_str!("../../../docs/writes.md");

/// The rows of a section without its head.
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
    let all = rows(PAGE, "\n## Recovery controllers");
    for kind in drivers::KINDS {
        assert!(all.iter().any(|row| row.starts_with(&format!("| {} ", kind.word))), "{}", kind.word);
    }
}

#[test]
fn the_page_has_every_write_of_setup() {
    let row = |write: &setup::Write| format!("| {} | {} | {} |", write.what, write.guard, write.undo);
    let all: Vec<String> = setup::WRITES.iter().map(row).collect();
    expect("\n## Pacemaker's configuration", &all);
}
