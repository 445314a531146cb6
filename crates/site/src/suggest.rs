//! "Did you mean": the known word that is closest to a mistyped one.

use strsim::osa_distance;

/// Longer words, in bytes, are no typos.
const LONGEST: usize = 64;

/// The closest of `known`, if it is close enough to be meant.
pub fn closest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if word.len() > LONGEST {
        return None;
    }
    let word = plain(word);
    let allowed = (word.chars().count() / 3).clamp(1, 3);
    let rated = known.into_iter().map(|known| (osa_distance(&word, &plain(known)), known));
    let (_, closest) = rated.filter(|(edits, _)| *edits <= allowed).min_by_key(|(edits, _)| *edits)?;
    Some(closest)
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
}
