//! Whether some text matches two patterns. Pure.

/// Whether a text matches both, computed from the ends of both.
pub(super) fn overlap(one: &[u8], other: &[u8]) -> bool {
    // For each place of `other`: whether its rest and the rest of `one` (nothing at first) have a common text.
    let mut below: Vec<bool> = (0..=other.len()).map(|from| other[from..].iter().all(is_star)).collect();
    for mine in one.iter().rev() {
        let mut row = vec![is_star(mine) && below[other.len()]; other.len() + 1];
        for (at, its) in other.iter().enumerate().rev() {
            row[at] = match is_star(mine) || is_star(its) {
                true => below[at] || row[at + 1],
                false => (mine == its || [mine, its].contains(&&b'?')) && below[at + 1],
            };
        }
        below = row;
    }
    below[0]
}

fn is_star(byte: &u8) -> bool {
    *byte == b'*'
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::host::glob_matches;

    #[test]
    fn patterns_overlap_that_some_name_matches_both_of() {
        for (one, other, both) in [
            ("c*", "*1", true),
            ("c*", "d*", false),
            ("rack1-*", "rack?-7", true),
            ("rack1-*", "rack2-?", false),
            ("a*bb*c", "a?c", false),
            ("a*b*c", "ab?c", true),
            ("*", "x", true),
            ("a?", "a", false),
            ("a*", "a", true),
            ("*a*", "*b*", true),
            ("?*1", "1", false),
        ] {
            assert_eq!(overlap(one.as_bytes(), other.as_bytes()), both, "{one} {other}");
            assert_eq!(overlap(other.as_bytes(), one.as_bytes()), both, "{other} {one}");
        }
    }

    /// Every text of `a` and `b` up to this length; patterns of 4 need no other letters for a common text.
    fn texts() -> Vec<String> {
        let mut all = vec![String::new()];
        let mut from = 0;
        for _ in 0..8 {
            let longer: Vec<String> =
                all[from..].iter().flat_map(|t| [format!("{t}a"), format!("{t}b")]).collect();
            from = all.len();
            all.extend(longer);
        }
        all
    }

    proptest! {
        /// Compared with all texts. The broken variant, which compares one pattern with the other as a text, fails
        /// somewhere (see below).
        #[test]
        fn it_is_as_trying_every_text(one in "[ab*?]{0,4}", other in "[ab*?]{0,4}") {
            let matches = |pattern: &str, text: &String| glob_matches(pattern.as_bytes(), text.as_bytes());
            let found = texts().iter().any(|text| matches(&one, text) && matches(&other, text));
            prop_assert_eq!(overlap(one.as_bytes(), other.as_bytes()), found);
        }

    }

    /// The broken variant: one pattern matched against the other as if that were a name.
    #[test]
    fn a_pattern_is_no_name() {
        let careless = |one: &str, other: &str| {
            let (one, other) = (one.as_bytes(), other.as_bytes());
            glob_matches(one, other) || glob_matches(other, one)
        };
        assert!(!careless("c*1", "c2*") && overlap(b"c*1", b"c2*"));
    }
}
