//! The names that a CIB's patterns match, by the regular expressions of this system's own libc, which Pacemaker uses too.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use pacemaker::child;
use pacemaker::cib::Target;

/// `[[ name =~ pattern ]]` passes the pattern to `regcomp` with `REG_EXTENDED`, as Pacemaker does, and bash exists
/// wherever Pacemaker's resource agents do. One digit for each pattern and name: 0 matches, 1 does not, 2 is no
/// expression.
const SCRIPT: &str = r#"count=$1; shift; patterns=("${@:1:count}"); shift "$count"
for pattern in "${patterns[@]}"; do for name; do [[ $name =~ $pattern ]]; printf %d "$?"; done; done"#;

/// The time limit for all of it.
const LIMIT: Duration = Duration::from_secs(10);

/// The known results. For others `regex-lite` gives its sure results.
#[derive(Clone, Debug, Default)]
pub struct Patterns(BTreeMap<String, BTreeMap<String, Option<bool>>>);

impl Patterns {
    /// Tests every name against every pattern. Without an answer of bash, nothing is known.
    pub(super) fn ask(patterns: &[&str], names: &[&str]) -> Self {
        let patterns: Vec<&str> = patterns.iter().copied().filter(|pattern| is_plain(pattern)).collect();
        let answers = answers(&patterns, names).unwrap_or_default();
        if answers.len() != patterns.len() * names.len() {
            return Self::default();
        }
        let rows = patterns.iter().zip(answers.chunks(names.len().max(1)));
        let row = |answers: &[u8]| {
            names.iter().map(|&name| name.to_owned()).zip(answers.iter().map(read)).collect()
        };
        Self(rows.map(|(pattern, answers)| ((*pattern).to_owned(), row(answers))).collect())
    }

    /// Whether a pattern matches a name; `None` if that is not certain.
    pub(super) fn matches(&self, pattern: &str, name: &str) -> Option<bool> {
        let known = self.0.get(pattern).and_then(|names| names.get(name)).copied();
        known.unwrap_or_else(|| Target::Pattern(pattern.to_owned()).covers(name, std::iter::empty()))
    }
}

/// An invalid expression matches nothing for Pacemaker, but that is not what was meant.
fn read(answer: &u8) -> Option<bool> {
    match answer {
        b'0' => Some(true),
        b'1' => Some(false),
        _ => None,
    }
}

/// Control characters are special in bash, and others depend on Pacemaker's locale.
fn is_plain(pattern: &str) -> bool {
    pattern.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

fn answers(patterns: &[&str], names: &[&str]) -> Option<Vec<u8>> {
    if patterns.is_empty() || names.is_empty() {
        return None;
    }
    let mut bash = Command::new("bash");
    // BASH_ENV, BASHOPTS and the locale would change the result.
    bash.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C");
    bash.args(["--noprofile", "--norc", "-c", SCRIPT, "bash", &patterns.len().to_string()]);
    bash.args(patterns).args(names);
    child::output(bash, LIMIT, patterns.len() * names.len() + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn patterns_are_read_as_pacemaker_reads_them() {
        let names = ["r1-c1", "r2-c1", "CTL", ""];
        let patterns =
            [r"^r1-\w+$", r"\<c1\>", "[[:upper:]]", "c+?", r"[\d]", "", "(", "a{2", "c'$(reboot)\"*"];
        let known = Patterns::ask(&patterns, &names);
        let of = |pattern: &str| names.map(|name| known.matches(pattern, name));
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(of(r"^r1-\w+$"), [yes, no, no, no]);
        assert_eq!(of(r"\<c1\>"), [yes, yes, no, no]);
        assert_eq!(of("[[:upper:]]"), [no, no, yes, no]);
        assert_eq!(of("c+?"), [yes; 4], "not a lazy one");
        assert_eq!(of(r"[\d]"), [no; 4]);
        assert_eq!(of(""), [yes; 4]);
        assert_eq!(of("("), [None; 4], "no expression");
        assert_eq!(of("c'$(reboot)\"*"), [no; 4], "it is never part of the script");
    }

    const PARTS: [&str; 50] = [
        "a",
        "c",
        "1",
        "r1",
        "-",
        ".",
        "*",
        "+",
        "?",
        "(",
        ")",
        "(a|c)",
        "[",
        "]",
        "[^",
        "[a-c]",
        "[]a]",
        "[\\d]",
        "[[:digit:]]",
        "[:alpha:]",
        "{",
        "}",
        "{1,2}",
        "{2}",
        "^",
        "$",
        "|",
        "\\",
        "\\w",
        "\\d",
        "\\.",
        "\\<",
        "\\b",
        "\\1",
        "\\/",
        "\\\"",
        "\\-",
        "[.a.]",
        "[a\\]",
        "[&&a]",
        "[a~~c]",
        "(?i)",
        "[a--c]",
        "[+--]",
        "{,2}",
        "{1,}",
        "{2,1}",
        "[c-a]",
        "[[:digit:]-c]",
        "()",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        /// A sure result without bash equals that of `regcomp` and `regexec`.
        #[test]
        fn nothing_is_certain_that_libc_reads_otherwise(
            patterns in vec(vec(0..PARTS.len(), 0..6).prop_map(|parts| parts.iter().map(|at| PARTS[*at]).collect::<String>()), 100),
        ) {
            let names = ["r1-c1", "r2-c1", "a", "aa", "ac.1", "c", "C", "d", "\\", "x-1"];
            let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
            let (known, unasked) = (Patterns::ask(&patterns, &names), Patterns::default());
            for (pattern, name) in patterns.iter().flat_map(|pattern| names.map(|name| (*pattern, name))) {
                if let Some(certain) = unasked.matches(pattern, name) {
                    prop_assert_eq!(known.matches(pattern, name), Some(certain), "{} {}", pattern, name);
                }
            }
        }
    }

    #[test]
    fn what_was_not_answered_is_only_known_where_it_means_the_same_everywhere() {
        let none = Patterns::default();
        assert_eq!((none.matches("^c[0-9]$", "c1"), none.matches(r"^\w$", "c")), (Some(true), None));
        let odd = Patterns::ask(&["c\u{1}", "\u{e4}"], &["c1"]);
        assert!(odd.0.is_empty());
    }
}
