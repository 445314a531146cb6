//! The clouds of a YAML file as flat words: `auth.password` and so on.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde_json::{Map, Value};

use crate::yaml::documents;

/// The settings of one cloud. Each value counts as secret unless it is known not to be.
pub(super) type Words = BTreeMap<String, SecretString>;

/// Reads the clouds of a file. A scalar stays as written: a password of digits is not a number.
///
/// # Errors
/// One sentence, without any part of the file.
pub(super) fn clouds(text: &str) -> Result<BTreeMap<String, Words>, String> {
    let documents = documents(text)?;
    let clouds = match documents.as_slice() {
        [Value::Object(root)] => root.get("clouds").and_then(Value::as_object),
        [] => None,
        _ => {
            return Err(
                "it is not a file of clouds: it must be one YAML mapping with the key clouds".to_owned()
            );
        }
    };
    let named = |(name, cloud): (&String, &Value)| {
        let mut words = Words::new();
        cloud.as_object().into_iter().for_each(|cloud| flatten(cloud, "", &mut words));
        (name.clone(), words)
    };
    Ok(clouds.into_iter().flatten().map(named).collect())
}

/// A word of a nearer key overrides one of a merged mapping (`<<`).
fn flatten(mapping: &Map<String, Value>, before: &str, into: &mut Words) {
    for (key, value) in mapping.iter().filter(|(key, _)| *key != "<<") {
        let key = format!("{before}{}", key.replace('-', "_"));
        match value {
            Value::Object(below) => flatten(below, &format!("{key}."), into),
            // A list becomes its entries with commas between them.
            Value::Array(all) => {
                let all: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
                into.insert(key, all.join(",").into());
            }
            value => into.extend(value.as_str().map(|text| (key, text.into()))),
        }
    }
    let merged = match mapping.get("<<") {
        Some(Value::Array(many)) => many.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    for one in merged.iter().filter_map(Value::as_object) {
        let mut others = Words::new();
        flatten(one, before, &mut others);
        for (key, value) in others {
            into.entry(key).or_insert(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    fn of(text: &str, cloud: &str) -> Vec<(String, String)> {
        let clouds = clouds(text).unwrap();
        clouds[cloud].iter().map(|(key, value)| (key.clone(), value.expose_secret().to_owned())).collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    /// The broken variant reads scalars as values: the password would be 83, or 123.
    #[test]
    fn a_scalar_stays_as_it_is_written() {
        let text = "clouds:\n  a:\n    auth: {password: 0123, username: 'yes', project-id: 1e3}\n    verify: no\n    region_name: ~\n    key: '~'\n    interface: [internal, public]\n";
        assert_eq!(
            of(text, "a"),
            pairs(&[
                ("auth.password", "0123"),
                ("auth.project_id", "1e3"),
                ("auth.username", "yes"),
                ("interface", "internal,public"),
                ("key", "~"),
                ("verify", "no"),
            ])
        );
    }

    #[test]
    fn mappings_are_merged_and_the_nearer_word_counts() {
        let text = "common: &common\n  region_name: one\n  auth: {auth_url: u, username: x}\nclouds:\n  a:\n    <<: *common\n    region_name: two\n";
        let expected = [("auth.auth_url", "u"), ("auth.username", "x"), ("region_name", "two")];
        assert_eq!(of(text, "a"), pairs(&expected));
    }

    #[test]
    fn what_is_no_yaml_is_not_repeated() {
        for text in [
            "clouds: [s3kr1t",
            "clouds:\n  a: s3kr1t\n b: {",
            "- s3kr1t",
            "clouds: {a: {b: 1, b: s3kr1t}}",
            "a: *s3kr1t",
        ] {
            let why = clouds(text).unwrap_err();
            assert!(!why.contains("s3kr1t"), "{why}");
        }
        assert!(clouds("").unwrap().is_empty());
        assert!(clouds("clouds: 7").unwrap().is_empty());
    }

    /// A few lines that expand to thousands of nodes end in an error or a mapping, never in a full memory.
    #[test]
    fn anchors_do_not_multiply_without_end() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let below = level - 1;
            text.push_str(&format!("a{level}: &a{level} [{}]\n", vec![format!("*a{below}"); 10].join(", ")));
        }
        assert!(clouds(&text).is_err());
    }
}
