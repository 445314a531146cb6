//! The clouds of a YAML file as flat words: `auth.password` and so on.

use std::collections::BTreeMap;

use saphyr::{Mapping, Yaml};
use secrecy::SecretString;

use crate::yaml::{documents, scalar};

/// The settings of one cloud. Each value counts as secret unless it is known not to be.
pub(super) type Words = BTreeMap<String, SecretString>;

/// A file for us has no more levels.
const DEPTH: usize = 8;

/// Reads the clouds of a file. A scalar stays as written: a password of digits is not a number.
///
/// # Errors
/// One sentence, without any part of the file.
pub(super) fn clouds(text: &str) -> Result<BTreeMap<String, Words>, String> {
    let documents = documents(text)?;
    let root = match documents.as_slice() {
        [Yaml::Mapping(root)] => root,
        [] => return Ok(BTreeMap::new()),
        _ => {
            return Err(
                "it is not a file of clouds: it must be one YAML mapping with the key clouds".to_owned()
            );
        }
    };
    let clouds = root.iter().find_map(|(key, value)| match value {
        Yaml::Mapping(clouds) if scalar(key) == Some("clouds") => Some(clouds),
        _ => None,
    });
    let named = |(name, cloud): (&Yaml<'_>, &Yaml<'_>)| Some((scalar(name)?.to_owned(), words(cloud)));
    Ok(clouds.into_iter().flatten().filter_map(named).collect())
}

fn words(cloud: &Yaml<'_>) -> Words {
    let mut words = Words::new();
    if let Yaml::Mapping(cloud) = cloud {
        flatten(cloud, "", DEPTH, &mut words);
    }
    words
}

/// A word of a nearer key overrides one of a merged mapping (`<<`).
fn flatten(mapping: &Mapping<'_>, before: &str, depth: usize, into: &mut Words) {
    let Some(depth) = depth.checked_sub(1) else { return };
    for (key, value) in mapping {
        let Some(key) = scalar(key).filter(|key| *key != "<<") else { continue };
        let key = format!("{before}{}", key.replace('-', "_"));
        match value {
            Yaml::Mapping(below) => flatten(below, &format!("{key}."), depth, into),
            value => put(key, value, into),
        }
    }
    for (_, merged) in mapping.iter().filter(|(key, _)| scalar(key) == Some("<<")) {
        let mut others = Words::new();
        match merged {
            Yaml::Mapping(one) => flatten(one, before, depth, &mut others),
            Yaml::Sequence(many) => many
                .iter()
                .rev()
                .filter_map(Yaml::as_mapping)
                .for_each(|one| flatten(one, before, depth, &mut others)),
            _ => {}
        }
        for (key, value) in others {
            into.entry(key).or_insert(value);
        }
    }
}

/// A list becomes its entries with commas between them.
fn put(key: String, value: &Yaml<'_>, into: &mut Words) {
    let value = match value {
        Yaml::Sequence(entries) => Some(entries.iter().filter_map(scalar).collect::<Vec<_>>().join(",")),
        value => scalar(value).map(str::to_owned),
    };
    if let Some(value) = value {
        into.insert(key, value.into());
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
        assert_eq!(
            of(text, "a"),
            pairs(&[("auth.auth_url", "u"), ("auth.username", "x"), ("region_name", "two")])
        );
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
