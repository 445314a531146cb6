//! The floor plan in `docs/design.md` matches the code: every arrow between the rooms of a crate runs down. And no merge is half done.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use tests::installed::source;
use tests::trials::Group;

use crate::papers::{at_the_root, files_below};

/// Its tests. They need nothing.
pub(crate) fn group() -> Group {
    Group {
        cannot: None,
        tests: tests::trials![
            every_arrow_runs_down,
            an_arrow_that_runs_up_is_caught,
            no_files_go_round_in_a_circle,
            no_merge_is_left_open
        ],
    }
}

/// The crates with a plan, and where each is.
const CRATES: [(&str, &str); 6] = [
    ("alerter", "alerter/src"),
    ("drivers", "crates/drivers/src"),
    ("journal", "crates/journal/src"),
    ("pacemaker", "crates/pacemaker/src"),
    ("register", "crates/register/src"),
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

/// A source without its tests.
fn without_tests(text: &str) -> &str {
    let is_tests = |(_, behind): &(usize, &str)| {
        behind.lines().nth(1).is_some_and(|line| line.split_whitespace().any(|word| word == "mod"))
    };
    let marks = text.match_indices("#[cfg(test)]\n").map(|(at, _)| (at, &text[at..]));
    marks.filter(is_tests).map(|(at, _)| &text[..at]).next().unwrap_or(text)
}

/// A source without its comments and tests.
fn code(text: &str) -> String {
    without_tests(text)
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n")
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

/// A file's path as a module: `a::b` of `a/b.rs` and of `a/b/mod.rs`.
fn module(root: &Path, file: &Path) -> Vec<String> {
    let place = file.strip_prefix(root).unwrap().with_extension("");
    let names = place.components().map(|part| part.as_os_str().to_str().unwrap().to_owned());
    names.filter(|name| name != "mod").collect()
}

/// The paths that follow `root`, each of a list in braces.
fn paths_after(code: &str, root: &str) -> Vec<Vec<String>> {
    let lists = code.split(root).skip(1).map(|behind| match behind.strip_prefix('{') {
        Some(list) => list.split('}').next().unwrap_or_default().split(',').collect(),
        None => vec![behind],
    });
    let is_of_a_path = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    let path =
        |text: &str| text.trim().split(|letter| !is_of_a_path(letter)).next().unwrap_or_default().to_owned();
    let split = |text: String| text.split("::").map(str::to_owned).collect();
    lists.flatten().map(|text| split(path(text))).collect()
}

/// The modules that a file uses, but for those that it is in.
fn uses(own: &[String], code: &str, modules: &BTreeSet<Vec<String>>) -> BTreeSet<Vec<String>> {
    let mut named = paths_after(code, "crate::");
    for up in 0..own.len() {
        let above = |path: Vec<String>| [&own[..own.len() - up - 1], &path].concat();
        // Of `super::super::x` what follows the last one alone counts, and is found once for each.
        named.extend(paths_after(code, &"super::".repeat(up + 1)).into_iter().map(above));
    }
    let whole = |path: Vec<String>| {
        (1..=path.len()).rev().map(|end| path[..end].to_vec()).find(|path| modules.contains(path))
    };
    named.into_iter().filter_map(whole).filter(|used| !own.starts_with(used)).collect()
}

/// The files that are used by each other, if there are any.
fn circle(arrows: &BTreeMap<Vec<String>, BTreeSet<Vec<String>>>) -> Option<Vec<String>> {
    let mut left = arrows.clone();
    loop {
        // A file that uses none of the rest, or that none of the rest uses, is in no circle.
        let before = left.len();
        let there: BTreeSet<Vec<String>> = left.keys().cloned().collect();
        let used: BTreeSet<Vec<String>> = left.values().flatten().cloned().collect();
        left.retain(|file, uses| used.contains(file) && !uses.is_disjoint(&there));
        if left.len() == before {
            return (before > 0).then(|| left.keys().map(|path| path.join("::")).collect());
        }
    }
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
            "| intake, health |\n| delivery, outage, serving |",
            "| intake, health, delivery, outage, serving |",
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

/// No file uses, through others, a file that uses it. The broken variant: one that goes back.
fn no_files_go_round_in_a_circle() {
    for (name, place) in CRATES {
        let root = source(place);
        let files: Vec<_> = files_below(&root).into_iter().filter(|file| is_in_a_room(&root, file)).collect();
        let modules: BTreeSet<Vec<String>> = files.iter().map(|file| module(&root, file)).collect();
        let arrow = |file: &PathBuf| {
            let own = module(&root, file);
            let used = uses(&own, &code(&fs::read_to_string(file).unwrap()), &modules);
            (own, used)
        };
        let mut arrows: BTreeMap<_, _> = files.iter().map(arrow).collect();
        assert_eq!(circle(&arrows), None, "{name}");
        let (from, to) =
            arrows.iter().find_map(|(from, used)| Some((from.clone(), used.first()?.clone()))).unwrap();
        arrows.get_mut(&to).unwrap().insert(from);
        assert!(circle(&arrows).is_some(), "{name}");
    }
}

/// What git writes at the begin of a line where two changes meet; its third mark, `=======`, also underlines titles.
fn is_left_open(text: &[u8]) -> bool {
    let marks: [&[u8]; 2] = [b"<<<<<<< ", b">>>>>>> "];
    text.split(|byte| *byte == b'\n').any(|line| marks.iter().any(|mark| line.starts_with(mark)))
}

/// In no file of the sources. The broken variants: each mark, behind a first line.
fn no_merge_is_left_open() {
    let is_made = |path: &PathBuf| path.ends_with("target") || path.ends_with(".git");
    let (directories, files): (Vec<_>, Vec<_>) =
        at_the_root().into_iter().filter(|path| !is_made(path)).partition(|path| path.is_dir());
    let files = files.into_iter().chain(directories.iter().flat_map(|inner| files_below(inner)));
    let open: Vec<PathBuf> = files.filter(|path| is_left_open(&fs::read(path).unwrap())).collect();
    assert!(open.is_empty(), "{open:?}");
    for mark in ["<<<<<<< ours", ">>>>>>> theirs"] {
        assert!(is_left_open(format!("first\n{mark}\n").as_bytes()), "{mark}");
        assert!(!is_left_open(format!("a mark is {mark}\n").as_bytes()), "{mark}");
    }
}
