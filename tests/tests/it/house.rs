//! The floor plan in `docs/design.md` is that of the code: every arrow between the rooms of a crate runs down.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use tests::installed::source;
use tests::trials::Group;

use crate::papers::files_below;

/// Its tests. They need nothing.
pub(crate) fn group() -> Group {
    Group { cannot: None, tests: tests::trials![every_arrow_runs_down, an_arrow_that_runs_up_is_caught] }
}

/// The crates with a plan, and where each is.
const CRATES: [(&str, &str); 5] = [
    ("alerter", "alerter/src"),
    ("drivers", "crates/drivers/src"),
    ("journal", "crates/journal/src"),
    ("pacemaker", "crates/pacemaker/src"),
    ("marks", "crates/marks/src"),
];

/// On which floor each room is, from the top.
fn plan(page: &str, name: &str) -> BTreeMap<String, usize> {
    let (_, behind) = page.split_once(&format!("| `{name}` |\n|---|\n")).unwrap();
    let rows = behind.lines().take_while(|line| line.starts_with("| "));
    let rooms = rows.enumerate().flat_map(|(floor, row)| {
        row.trim_matches(['|', ' ']).split(", ").map(move |room| (room.to_owned(), floor))
    });
    rooms.collect()
}

/// A source without its comments and tests.
fn code(text: &str) -> String {
    let own = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    own.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The first name of everything that follows `root`, braces included.
fn named_after(code: &str, root: &str) -> Vec<String> {
    let mut found = Vec::new();
    for behind in code.split(root).skip(1) {
        let list = behind.strip_prefix('{').and_then(|list| list.split('}').next()).unwrap_or(behind);
        let all = if behind.starts_with('{') { list.split(',').collect() } else { vec![list] };
        for one in all {
            let word = one.trim().split(|c: char| !(c.is_alphanumeric() || c == '_')).next();
            found.extend(word.filter(|word| !word.is_empty()).map(str::to_owned));
        }
    }
    found
}

/// Whether a file is a source in a room: neither a crate's face, which opens them all, nor its tests.
fn is_in_a_room(root: &Path, file: &Path) -> bool {
    let place = file.strip_prefix(root).unwrap();
    let is_face = ["lib.rs", "main.rs", "tests.rs"].iter().any(|face| place == Path::new(face));
    file.extension().is_some_and(|kind| kind == "rs")
        && !is_face
        && place.components().all(|part| part.as_os_str() != "tests")
}

/// The room of a file, and those that it uses.
fn arrows(root: &Path, file: &Path, rooms: &BTreeMap<String, usize>) -> (String, Vec<String>) {
    let place = file.strip_prefix(root).unwrap();
    let first = place.components().next().unwrap().as_os_str().to_str().unwrap();
    let room = first.trim_end_matches(".rs").to_owned();
    let text = code(&fs::read_to_string(file).unwrap());
    let mut used = named_after(&text, "crate::");
    // From the outermost files of a crate on, `super` is the crate.
    let depth = place.components().count() + usize::from(!place.ends_with("mod.rs"));
    used.extend(named_after(&text, &"super::".repeat(depth.saturating_sub(1))));
    used.retain(|name| *name != room && rooms.contains_key(name));
    (room, used)
}

/// Each arrow that does not run down, and each room that the plan lacks or has too many.
fn faults(page: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, place) in CRATES {
        let (root, rooms) = (source(place), plan(page, name));
        let mut seen = BTreeSet::new();
        for file in files_below(&root).iter().filter(|file| is_in_a_room(&root, file)) {
            let (room, used) = arrows(&root, file, &rooms);
            match rooms.get(&room) {
                None => faults.push(format!("{name}: the plan lacks {room}")),
                Some(floor) => {
                    let up = used.iter().filter(|other| rooms[*other] <= *floor);
                    faults.extend(up.map(|other| format!("{name}: {} uses {other}", file.display())));
                }
            }
            seen.insert(room);
        }
        let gone = rooms.keys().filter(|room| !seen.contains(*room));
        faults.extend(gone.map(|room| format!("{name}: there is no {room}")));
    }
    faults.sort();
    faults.dedup();
    faults
}

fn every_arrow_runs_down() {
    let page = fs::read_to_string(source("docs/design.md")).unwrap();
    let faults = faults(&page);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The broken variants: a room on the floor of one that it uses, one that is no room, and one that is left out.
fn an_arrow_that_runs_up_is_caught() {
    let page = fs::read_to_string(source("docs/design.md")).unwrap();
    for (old, new, said) in [
        (
            "| intake, health |\n| delivery, serving |",
            "| intake, health, delivery, serving |",
            "uses delivery",
        ),
        ("| reload |", "| reload, attic |", "there is no attic"),
        ("| row |\n", "", "the plan lacks row"),
    ] {
        let other = page.replacen(old, new, 1);
        assert_ne!(page, other);
        assert!(faults(&other).iter().any(|fault| fault.contains(said)), "{said}");
    }
}
