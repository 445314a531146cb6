//! YAML of files that people write: a scalar stays as it is written, and no error repeats a part of the file.

use saphyr::{Yaml, YamlLoader};
use saphyr_parser::Parser;
use serde_json::{Map, Value};

/// A file for us has no more levels.
const DEPTH: usize = 8;

/// The documents of a file as JSON, each scalar a text.
///
/// # Errors
/// One sentence, without any part of the file.
pub(crate) fn documents(text: &str) -> Result<Vec<Value>, String> {
    let mut loader = YamlLoader::default();
    loader.early_parse(false);
    let read = Parser::new_from_str(text).load(&mut loader, true);
    // The parser's own message may quote the file.
    match read.err().as_ref().or(loader.error()) {
        Some(why) => Err(format!("it is not YAML: check line {}", why.marker().line())),
        None => Ok(loader.into_documents().iter().map(|document| json(document, DEPTH)).collect()),
    }
}

/// The only document of a file.
///
/// # Errors
/// As [`documents`]; or there is none, or more than one.
pub(crate) fn value(text: &str) -> Result<Value, String> {
    let only = <[Value; 1]>::try_from(documents(text)?);
    only.map(|[document]| document).map_err(|_| "it must be one YAML document".to_owned())
}

/// A scalar as written; an empty one is none.
fn scalar<'y>(node: &'y Yaml<'_>) -> Option<&'y str> {
    match node {
        Yaml::Representation(text, style, _) => {
            let is_nothing = *style == saphyr::ScalarStyle::Plain
                && matches!(&**text, "" | "~" | "null" | "Null" | "NULL");
            (!is_nothing).then_some(text)
        }
        Yaml::Tagged(_, node) => scalar(node),
        _ => None,
    }
}

/// What lies deeper is left out: nobody here reads it.
fn json(node: &Yaml<'_>, depth: usize) -> Value {
    let Some(depth) = depth.checked_sub(1) else { return Value::Null };
    let entry = |(key, value): (&Yaml<'_>, &Yaml<'_>)| Some((scalar(key)?.to_owned(), json(value, depth)));
    match node {
        Yaml::Mapping(mapping) => mapping.iter().filter_map(entry).collect::<Map<_, _>>().into(),
        Yaml::Sequence(all) => all.iter().map(|one| json(one, depth)).collect(),
        Yaml::Tagged(_, node) => json(node, depth),
        node => scalar(node).into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The broken variant resolves scalars: a token of digits would be a number, and `no` a truth value.
    #[test]
    fn a_scalar_is_a_text_in_yaml_and_in_json() {
        let all = json!({"a": {"b": ["0123", "no", "1e3"], "c": null}, "d": "~"});
        assert_eq!(value("a: {b: [0123, no, '1e3'], c: ~}\nd: '~'\n").unwrap(), all);
        assert_eq!(value(r#"{"a": {"b": ["0123", "no", 1e3], "c": null}, "d": "\u007e"}"#).unwrap(), all);
    }

    #[test]
    fn only_one_document_of_a_few_levels_is_read() {
        for text in ["", "a: s3kr1t\n---\nb: 1", "a: [s3kr1t", "a: 1\na: s3kr1t"] {
            let why = value(text).unwrap_err();
            assert!(!why.contains("s3kr1t"), "{why}");
        }
        let deep = format!("{}x{}", "[".repeat(20), "]".repeat(20));
        let levels = std::iter::successors(Some(&value(&deep).unwrap()), |level| level.get(0)).count();
        assert_eq!(levels, DEPTH + 1);
    }
}
