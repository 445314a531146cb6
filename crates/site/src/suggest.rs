//! "Did you mean": the known word that is closest to a mistyped one.

/// Longer words, in bytes, are no slips of the pen.
const LONGEST: usize = 64;

/// The closest of `known`, if it is close enough to be what was meant.
pub fn closest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if word.len() > LONGEST {
        return None;
    }
    let word = plain(word);
    let allowed = (word.chars().count() / 3).clamp(1, 3);
    let rated = known.into_iter().map(|k| (distance(&word, &plain(k)), k));
    rated.min_by_key(|(edits, _)| *edits).filter(|(edits, _)| *edits <= allowed).map(|(_, k)| k)
}

/// Those of `known` that are as close as the closest one, in their order, where one is close enough.
pub fn near<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Vec<&'k str> {
    let known: Vec<&str> = known.into_iter().collect();
    let Some(best) = closest(word, known.iter().copied()) else { return Vec::new() };
    let edits = |other: &str| distance(&plain(word), &plain(other));
    known.into_iter().filter(|other| edits(other) <= edits(best)).collect()
}

/// Case and the choice of hyphen or underscore are no difference.
fn plain(word: &str) -> String {
    word.to_lowercase().replace('_', "-")
}

/// How many letters must be put in, taken out, replaced or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut edits = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                edits = edits.min(rows[i - 2][j - 2] + 1);
            }
            row.push(edits);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 4] = ["store", "hosts", "http", "max-in-flight"];

    #[test]
    fn slips_of_the_pen_are_recognised_and_other_words_are_not() {
        for (word, meant) in [
            ("sotre", Some("store")),
            ("host", Some("hosts")),
            ("htpp", Some("http")),
            ("max_in_flight", Some("max-in-flight")),
            ("HTTP", Some("http")),
            ("healthcheck", None),
            ("", None),
        ] {
            assert_eq!(closest(word, KNOWN), meant, "{word}");
        }
    }

    #[test]
    fn of_several_that_are_as_close_all_are_near() {
        let hosts = ["compute1", "compute2", "compute10", "pager"];
        assert_eq!(near("compute", hosts), ["compute1", "compute2"]);
        assert_eq!(near("compue10", hosts), ["compute10"]);
        assert!(near("storage7", hosts).is_empty());
    }

    #[test]
    fn the_distance_is_the_same_in_both_directions() {
        for (a, b) in [("kitten", "sitting"), ("", "abc"), ("ab", "ba")] {
            assert_eq!(distance(a, b), distance(b, a));
        }
        assert_eq!((distance("kitten", "sitting"), distance("ab", "ba"), distance("", "abc")), (3, 1, 3));
    }
}
