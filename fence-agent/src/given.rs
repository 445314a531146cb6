//! The caller's values: one for each option, from any source.

use crate::table::{self, Kind, Parameter, TABLE};

/// Longest accepted value in bytes.
pub const MAX_VALUE: usize = 4096;

/// The given values, and their faults.
#[derive(Clone, Debug, Default)]
pub struct Given {
    values: Vec<Value>,
    /// How often `-v` was given.
    pub verbosity: u8,
    /// Warnings for the log. They name keys, never values.
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug)]
struct Value {
    at: usize,
    present_name: bool,
    value: String,
}

/// An unusable value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GivenError {
    /// Longer than [`MAX_VALUE`].
    #[error("the value of {name} is longer than {MAX_VALUE} bytes: correct the options of the device")]
    TooLong {
        /// The option.
        name: &'static str,
    },
    /// A control character, such as a line break.
    #[error("the value of {name} has a control character: correct the options of the device")]
    Control {
        /// The option.
        name: &'static str,
    },
}

impl Given {
    /// Adds a key and its value. An unknown key is noted by name: its value may be secret.
    ///
    /// # Errors
    /// [`GivenError`] for a value that no option could have.
    pub fn take(&mut self, key: &str, value: String) -> Result<(), GivenError> {
        let Some((at, present_name)) = table::find(key) else {
            self.warnings.push(format!("unknown option \"{}\" is ignored", printable(key)));
            return Ok(());
        };
        let name = TABLE[at].name;
        if value.len() > MAX_VALUE {
            return Err(GivenError::TooLong { name });
        }
        if value.chars().any(char::is_control) {
            return Err(GivenError::Control { name });
        }
        self.keep(Value { at, present_name, value });
        Ok(())
    }

    /// The last value of a name counts.
    fn keep(&mut self, entry: Value) {
        if self.last(entry.at, entry.present_name).is_some_and(|before| before != entry.value) {
            self.warnings
                .push(format!("{} is given more than once, the last one counts", TABLE[entry.at].name));
        }
        self.values.push(entry);
    }

    fn last(&self, at: usize, present_name: bool) -> Option<&str> {
        let of_name = |e: &&Value| e.at == at && e.present_name == present_name;
        self.values.iter().rev().find(of_name).map(|e| e.value.as_str())
    }

    /// Every value that was given for an option, also those that do not count.
    pub fn all(&self, name: &'static str) -> impl Iterator<Item = &str> {
        self.values.iter().filter(move |e| TABLE[e.at].name == name).map(|e| e.value.as_str())
    }

    /// The value of an option: of its present name, else of its old name.
    pub fn get(&self, name: &'static str) -> Option<&str> {
        let at = TABLE.iter().position(|parameter| parameter.name == name)?;
        self.last(at, true).or_else(|| self.last(at, false))
    }

    /// The value of an option, if it is not empty.
    pub fn filled(&self, name: &'static str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// A flag, if it is given and valid.
    pub fn flag(&self, name: &'static str) -> Option<bool> {
        self.get(name).and_then(yes_or_no)
    }

    /// Options with a value of the wrong type, in the order of the table.
    pub fn mistyped(&self) -> Vec<&'static Parameter> {
        let is_wrong =
            |at: usize, value: Option<&str>| value.is_some_and(|value| !fits(TABLE[at].kind, value));
        let wrong = |at: usize| [true, false].iter().any(|name| is_wrong(at, self.last(at, *name)));
        (0..TABLE.len()).filter(|at| wrong(*at)).map(|at| &TABLE[at]).collect()
    }

    /// Options with different values under their present and old name; the present name counts.
    pub fn conflicts(&self) -> Vec<&'static str> {
        let differs =
            |at: usize| matches!((self.last(at, true), self.last(at, false)), (Some(a), Some(b)) if a != b);
        (0..TABLE.len()).filter(|at| differs(*at)).map(|at| TABLE[at].name).collect()
    }
}

/// The fence agents' words for yes and no.
fn yes_or_no(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "yes" | "on" | "true" => Some(true),
        "0" | "no" | "off" | "false" => Some(false),
        _ => None,
    }
}

fn fits(kind: Kind, value: &str) -> bool {
    match kind {
        Kind::Text => true,
        Kind::Flag => yes_or_no(value).is_some(),
        Kind::Seconds => whole(value).is_some(),
        Kind::Integer => whole(value.strip_prefix('-').unwrap_or(value)).is_some(),
    }
}

/// Digits alone, as fence agents read seconds.
pub fn whole(text: &str) -> Option<u32> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// A key for a log line: short, without characters that could break the line.
fn printable(key: &str) -> String {
    key.chars().take(64).map(|c| if c.is_ascii_graphic() { c } else { '?' }).collect()
}

/// The start of this crate's unit tests.
#[cfg(test)]
pub(crate) mod tests_support {
    use super::Given;

    pub(crate) fn given(pairs: &[(&str, &str)]) -> Given {
        let mut given = Given::default();
        for (key, value) in pairs {
            given.take(key, (*value).to_owned()).unwrap();
        }
        given
    }
}

#[cfg(test)]
mod tests {
    use super::tests_support::given;
    use super::*;

    fn names(given: &Given) -> Vec<&'static str> {
        given.mistyped().into_iter().map(|parameter| parameter.name).collect()
    }

    /// Conformance 10: the last duplicate wins, in any order of keys.
    #[test]
    fn the_last_duplicate_wins() {
        let given = given(&[("plug", "a"), ("store", "/x"), ("plug", "b")]);
        assert_eq!(given.get("plug"), Some("b"));
        assert_eq!(given.warnings, ["plug is given more than once, the last one counts"]);
    }

    /// Pacemaker passes keys in random order, so the order must not decide between two names of one option.
    #[test]
    fn the_present_name_wins_over_the_old_one_in_any_order() {
        for pairs in [[("port", "a"), ("plug", "b")], [("plug", "b"), ("port", "a")]] {
            let given = given(&pairs);
            assert_eq!((given.get("plug"), given.conflicts()), (Some("b"), vec!["plug"]));
        }
        assert_eq!(given(&[("port", "a")]).get("plug"), Some("a"));
        assert!(given(&[("port", "a"), ("plug", "a")]).conflicts().is_empty());
    }

    /// Conformance 11: unknown keys are logged by name only.
    #[test]
    fn an_unknown_key_is_reported_without_its_value() {
        let given = given(&[("api_token", "s3kr1t"), ("a\u{7}b c", "s3kr1t")]);
        assert_eq!(given.warnings.len(), 2);
        assert!(given.warnings[0].contains("api_token") && given.warnings[1].contains("a?b?c"));
        assert!(!given.warnings.concat().contains("s3kr1t"));
    }

    /// Conformance 16: boolean words.
    #[test]
    fn boolean_words_mean_what_they_say() {
        for (word, meaning) in [
            ("1", true),
            ("YES", true),
            ("on", true),
            ("True", true),
            ("0", false),
            ("no", false),
            ("Off", false),
            ("FALSE", false),
        ] {
            let flag = given(&[("no_shared_storage", word)]).flag("no_shared_storage");
            assert_eq!(flag, Some(meaning), "{word}");
        }
        let odd = given(&[("no_shared_storage", "maybe")]);
        assert_eq!((odd.flag("no_shared_storage"), names(&odd)), (None, vec!["no_shared_storage"]));
    }

    #[test]
    fn values_are_checked_by_their_kind() {
        assert!(
            given(&[("delay", "7"), ("verbose_level", "-1"), ("power_timeout", "20")]).mistyped().is_empty()
        );
        let wrong = given(&[
            ("delay", "7s"),
            ("retry_on", "x"),
            ("power_timeout", ""),
            ("login_timeout", "99999999999"),
        ]);
        assert_eq!(names(&wrong), ["delay", "login_timeout", "power_timeout", "retry_on"]);
    }

    /// Conformance 15: over-long values and line breaks.
    #[test]
    fn a_value_that_no_option_could_have_is_refused() {
        let mut given = Given::default();
        let long = given.take("store", "x".repeat(MAX_VALUE + 1));
        assert_eq!(long, Err(GivenError::TooLong { name: "store" }));
        assert_eq!(given.take("port", "a\nb".to_owned()), Err(GivenError::Control { name: "plug" }));
        assert_eq!(given.take("unknown", "x".repeat(9999)), Ok(()));
    }
}
