//! "Did you mean": the known word that is closest to a mistyped one.

use strsim::osa_distance;

/// Longer words, in bytes, are no typos.
const LONGEST: usize = 64;

/// The closest of `known`, if it is close enough to be meant.
pub fn closest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    near(word, known).first().copied()
}

/// All of `known` that are as close as the closest one, in order, if close enough.
pub fn near<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Vec<&'k str> {
    if word.len() > LONGEST {
        return Vec::new();
    }
    let word = plain(word);
    let allowed = (word.chars().count() / 3).clamp(1, 3);
    let rated: Vec<_> = known.into_iter().map(|k| (osa_distance(&word, &plain(k)), k)).collect();
    let best = rated.iter().map(|(edits, _)| *edits).min().filter(|best| *best <= allowed);
    rated.into_iter().filter(|(edits, _)| Some(*edits) == best).map(|(_, k)| k).collect()
}

/// Case and the choice of hyphen or underscore do not count.
fn plain(word: &str) -> String {
    word.to_lowercase().replace('_', "-")
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
}
