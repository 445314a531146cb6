//! Names of hosts as an attacker, a typo or another tool might give them.

use crate::common::{Store, agent, call, run};

/// Names that must be refused wherever they come from.
const HOSTILE: &[&[u8]] = &[
    b"../../etc/passwd",
    b"..",
    b".",
    b"/",
    b"/etc/passwd",
    b"a/b",
    b"a\\b",
    b"~root",
    b"-",
    b"--",
    b"-N",
    b"--help",
    b"-n compute1",
    b"$(id)",
    b"`id`",
    b"${HOME}",
    b"a;id",
    b"a|id",
    b"a&id",
    b"a&&id",
    b"a>b",
    b"a<b",
    b"a*",
    b"a?",
    b"[a]",
    b"{a,b}",
    b"!a",
    b"a'b",
    b"a\"b",
    b"'compute1'",
    b"a b",
    b"a\tb",
    b"a,b",
    b"compute1,compute2",
    b"compute1:compute2",
    b"a=b",
    b"a%00b",
    b"%63ompute1",
    b"a#b",
    b"a@b",
    b"user@host",
    b"a(b)",
    b"a^b",
    b"a+b",
    b"http://a/",
    b"[::1]",
    b"fe80::1",
    b"a..b",
    b"a.",
    b".a",
    b"_a",
    b"a.b.",
    b"<a>",
    b"&amp;",
    b"a\x7f",
    b"a\x1b[2J",
    b"a\x07",
    b"a\rb",
    b"a\x0bb",
    "compüte1".as_bytes(),
    "сompute1".as_bytes(),
    "compute1\u{200b}".as_bytes(),
    "\u{202e}1etupmoc".as_bytes(),
    "computе1".as_bytes(),
    "compute１".as_bytes(),
    "\u{feff}compute1".as_bytes(),
    "💣".as_bytes(),
    "a\u{85}b".as_bytes(),
    b"\xff",
    b"compute1\xff",
    b"\xc3\x28",
    b"\xed\xa0\x80",
    b"';DROP TABLE fencing;--",
    b"a' OR '1'='1",
    b"{\"a\":1}",
    b"%s%n%x",
    b"a\\nb",
    b"a\\u0000b",
];

/// Unusual but valid names. The design has both rules: what is allowed, and that the spelling is kept.
const FINE: &[&str] = &[
    "compute1",
    "COMPUTE1",
    "c",
    "9",
    "0",
    "c-1",
    "c_1",
    "a.b.c",
    "1.2.3.4",
    "null",
    "localhost",
    "compute1.MY.cloud.com",
    "a--b",
    "xn--80ak6aa92e",
    "on",
    "off",
];

fn long(length: usize) -> Vec<u8> {
    vec![b'a'; length]
}

#[test]
fn hostile_names_are_refused_on_standard_input() {
    let store = Store::new();
    assert!(HOSTILE.len() >= 60);
    for name in HOSTILE.iter().map(|name| name.to_vec()).chain([long(256), long(4000)]) {
        for key in ["nodename", "plug", "port"] {
            let input = [store.off("").as_bytes(), key.as_bytes(), b"=", &name, b"\n"].concat();
            let outcome = run(agent(), &input);
            outcome.is_one_line_failure("");
            assert!(outcome.stderr.len() < 400, "{key} {name:?}: {outcome:?}");
        }
    }
    assert!(!store.directory().exists());
}

/// A valid plug does not repair a hostile `nodename`.
#[test]
fn a_hostile_node_name_is_not_repaired_by_a_plug() {
    let store = Store::new();
    call(&store.off("nodename=../x\nplug=compute1")).is_one_line_failure("nodename is not a host name");
    assert!(!store.directory().exists());
}

#[test]
fn odd_but_allowed_names_are_marked_with_their_spelling() {
    let store = Store::new();
    let longest = String::from_utf8(long(255)).unwrap();
    let names: Vec<&str> = FINE.iter().copied().chain([longest.as_str()]).collect();
    for name in &names {
        call(&store.off(&format!("nodename={name}"))).is_silent_success();
    }
    let seen: Vec<String> = store.fencings().iter().map(|fencing| fencing.node.to_string()).collect();
    assert_eq!(seen, names);
}
