//! POSIX extended regular expressions of fencing levels, as far as they mean the same in `regex-lite`.

use regex_lite::Regex;

/// Longer patterns are not evaluated.
const MAX_LEN: usize = 1024;

/// Whether an unanchored POSIX extended expression matches a node name, with case. `None` if that is not certain: the
/// expression means something else here than in libc, or nothing.
pub(super) fn matches(pattern: &str, name: &str) -> Option<bool> {
    let regex = Regex::new(&translate(pattern)?).ok()?;
    Some(regex.is_match(name))
}

/// The same expression in the syntax of `regex-lite`; `None` if libc reads it differently.
fn translate(pattern: &str) -> Option<String> {
    if pattern.len() > MAX_LEN {
        return None;
    }
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern.chars().peekable();
    // Whether the part before can be repeated.
    let mut repeatable = false;
    while let Some(c) = rest.next() {
        let repeats = matches!(c, '*' | '+' | '?' | '{');
        match c {
            // "a+?" is a lazy "a+" here, but "(a+)?" in libc, and "^*" nothing.
            _ if repeats && !repeatable => return None,
            '{' => push_bounds(&mut out, &mut rest)?,
            '}' => return None,
            // Digits and letters behind a backslash are extensions, which differ, but for `\w`.
            '\\' => push_escaped(&mut out, rest.next()?)?,
            '[' => push_bracket(&mut out, &mut rest)?,
            _ => out.push(c),
        }
        repeatable = !repeats && !matches!(c, '^' | '$' | '(' | '|');
    }
    Some(out)
}

/// Copies `{1}`, `{1,}` and `{1,2}`; other braces mean different things.
fn push_bounds(out: &mut String, rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<()> {
    let start = out.len();
    out.push('{');
    loop {
        match rest.next()? {
            '}' => break,
            c @ ('0'..='9' | ',') => out.push(c),
            _ => return None,
        }
    }
    out.push('}');
    (out.len() - start > 2 && !out[start..].starts_with("{,")).then_some(())
}

fn push_escaped(out: &mut String, c: char) -> Option<()> {
    let plain = c == 'w' || c.is_ascii_punctuation() && !matches!(c, '<' | '>' | '`' | '\'');
    plain.then(|| out.extend(['\\', c]))
}

/// Copies a bracket expression. In libc a backslash, '[', '&' and '~' are plain characters in it.
fn push_bracket(out: &mut String, rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<()> {
    out.push('[');
    if rest.next_if_eq(&'^').is_some() {
        out.push('^');
    }
    if rest.next_if_eq(&']').is_some() {
        out.push_str("\\]");
    }
    // What a range can begin with, and whether a hyphen would be the first character.
    let (mut before, mut first) = (None, out.ends_with(['[', '^']));
    loop {
        let c = rest.next()?;
        let behind = rest.peek().copied();
        before = match c {
            ']' => break,
            '[' if behind == Some(':') => push_class(out, rest).map(|()| None)?,
            '[' if matches!(behind, Some('.' | '=')) => return None,
            '-' if first || behind == Some(']') => escaped(out, c),
            '-' if before.is_some() && behind.is_some_and(|c| c.is_ascii_alphanumeric()) => {
                out.extend(['-', rest.next()?]);
                None
            }
            '-' => return None,
            '\\' | '[' | '&' | '~' => escaped(out, c),
            c => {
                out.push(c);
                Some(c).filter(char::is_ascii_alphanumeric)
            }
        };
        first = false;
    }
    out.push(']');
    Some(())
}

/// A range does not begin with these.
fn escaped(out: &mut String, c: char) -> Option<char> {
    out.extend(['\\', c]);
    None
}

/// Copies `[:alpha:]` and its like; the opening bracket is copied already.
fn push_class(out: &mut String, rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<()> {
    out.push('[');
    loop {
        let c = rest.next()?;
        out.push(c);
        if c == ']' {
            return Some(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_expressions_match_anywhere_and_with_case() {
        for (pattern, name, expected) in [
            ("compute", "mycompute1", true),
            ("^compute[0-9]+$", "compute17", true),
            ("^compute[0-9]+$", "compute17x", false),
            ("^Compute", "compute1", false),
            ("^(a|b)[[:digit:]]{2}$", "b07", true),
            ("^compute-[^-]*$", "compute-1", true),
            ("^a\\.b$", "axb", false),
            ("^[]a]$", "a", true),
            ("^c[\\.]1$", "c.1", true),
            (r"^r1-\w+$", "r1-c1", true),
            ("", "anything", true),
        ] {
            assert_eq!(matches(pattern, name), Some(expected), "{pattern} {name}");
        }
    }

    /// A backslash in brackets is a plain character in libc: `[\d]` has a backslash and a "d".
    #[test]
    fn brackets_are_read_as_libc_reads_them() {
        assert_eq!(matches("^c[\\d]$", "c1"), Some(false));
        assert_eq!(matches("^c[\\d]$", "cd"), Some(true));
    }

    #[test]
    fn what_means_something_else_is_not_judged() {
        for pattern in [
            "c\\d", "(?i)c", "c+?", "c*?", "c{2}?", "\\<c", "[[.a.]]", "[a", "(", "*c", "a\\", "^*", "a**",
            "a{", "a{,2}", "a}", "(|*c)",
        ] {
            assert_eq!(matches(pattern, "c"), None, "{pattern}");
        }
        assert_eq!(matches(&"a".repeat(2000), "a"), None);
    }

    /// What libc says of each pattern and name: `[[ name =~ pattern ]]` passes the pattern to `regcomp` with `REG_EXTENDED`, as
    /// Pacemaker does. An expression that is none has no answer.
    fn libc(patterns: &[String], names: &[&str]) -> Vec<Option<bool>> {
        let script = r#"count=$1; shift; patterns=("${@:1:count}"); shift "$count"
            for pattern in "${patterns[@]}"; do for name; do [[ $name =~ $pattern ]]; printf %d "$?"; done; done"#;
        let mut bash = Command::new("bash");
        bash.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C");
        bash.args(["--noprofile", "--norc", "-c", script, "bash", &patterns.len().to_string()]);
        let said = bash.args(patterns).args(names).output().unwrap().stdout;
        said.iter().map(|digit| (*digit != b'2').then_some(*digit == b'0')).collect()
    }

    const PARTS: &str = r#"a c 1 r1 - . * + ? ( ) (a|c) [ ] [^ [a-c] []a] [\d] [[:digit:]] [:alpha:] { } {1,2} {2} ^ $ | \
        \w \d \. \< \b \1 \/ \" \- [.a.] [a\] [&&a] [a~~c] (?i) [a--c] [+--] {,2} {1,} {2,1} [c-a] [[:digit:]-c] ()"#;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn nothing_is_certain_that_libc_reads_otherwise(
            patterns in vec(vec(any::<prop::sample::Index>(), 0..6).prop_map(|parts| {
                let all: Vec<&str> = PARTS.split_whitespace().collect();
                parts.iter().map(|part| *part.get(&all)).collect::<String>()
            }), 100),
        ) {
            let names = ["r1-c1", "r2-c1", "a", "aa", "ac.1", "c", "C", "d", "\\", "x-1"];
            let said = libc(&patterns, &names);
            let pairs = patterns.iter().flat_map(|pattern| names.map(|name| (pattern, name)));
            for ((pattern, name), said) in pairs.zip(said) {
                if let Some(certain) = matches(pattern, name) {
                    prop_assert_eq!(said, Some(certain), "{} {}", pattern, name);
                }
            }
        }
    }
}
