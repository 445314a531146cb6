//! POSIX extended regular expressions of fencing levels, as far as they mean the same in `regex-lite`.

use regex_lite::Regex;

/// Longer patterns are not judged.
const MAX_LEN: usize = 1024;

/// Whether an unanchored POSIX extended expression matches a node name, case and all.
/// `None` where this is not certain: the expression means something else here than in libc, or nothing.
pub(super) fn matches(pattern: &str, name: &str) -> Option<bool> {
    let regex = Regex::new(&translate(pattern)?).ok()?;
    Some(regex.is_match(name))
}

/// The same expression in the syntax of `regex-lite`; `None` where libc would read it differently.
fn translate(pattern: &str) -> Option<String> {
    if pattern.len() > MAX_LEN {
        return None;
    }
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern.chars().peekable();
    let mut quantified = false;
    while let Some(c) = rest.next() {
        let quantifier = matches!(c, '*' | '+' | '?' | '}');
        match c {
            // "a+?" is a lazy "a+" here, but "(a+)?" in libc.
            '?' if quantified => return None,
            '(' if rest.peek() == Some(&'?') => return None,
            // Digits and letters behind a backslash are extensions, and not the same ones.
            '\\' => push_escaped(&mut out, rest.next()?)?,
            '[' => push_bracket(&mut out, &mut rest)?,
            _ => out.push(c),
        }
        quantified = quantifier;
    }
    Some(out)
}

fn push_escaped(out: &mut String, c: char) -> Option<()> {
    let plain = c.is_ascii_punctuation() && !matches!(c, '<' | '>' | '`' | '\'');
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
    loop {
        match rest.next()? {
            ']' => break,
            '[' if rest.peek() == Some(&':') => push_class(out, rest)?,
            '[' if matches!(rest.peek(), Some('.' | '=')) => return None,
            c @ ('\\' | '[' | '&' | '~') => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out.push(']');
    Some(())
}

/// Copies `[:alpha:]` and its like; the opening bracket is taken already.
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
            ("", "anything", true),
        ] {
            assert_eq!(matches(pattern, name), Some(expected), "{pattern} {name}");
        }
    }

    /// A backslash in brackets is a plain character in libc: `[\d]` holds a backslash and a "d".
    #[test]
    fn brackets_are_read_as_libc_reads_them() {
        assert_eq!(matches("^c[\\d]$", "c1"), Some(false));
        assert_eq!(matches("^c[\\d]$", "cd"), Some(true));
    }

    #[test]
    fn what_means_something_else_is_not_judged() {
        for pattern in ["c\\d", "(?i)c", "c+?", "c*?", "c{2}?", "\\<c", "[[.a.]]", "[a", "(", "*c", "a\\"] {
            assert_eq!(matches(pattern, "c"), None, "{pattern}");
        }
        assert_eq!(matches(&"a".repeat(2000), "a"), None);
    }
}
