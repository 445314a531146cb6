//! The body by the operator's own template (Jinja). Each value is written as JSON, so no value breaks the body.

use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;
use minijinja::machinery::{Token, tokenize};
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, Error, UndefinedBehavior};
use tracing::warn;

use super::{Event, TimeFormat};

/// The longest body, and the longest template.
pub const LONGEST: usize = 64 * 1024;
/// The most texts, words and signs of a template: the compiler calls itself for nested ones, and its stack must hold that.
const TOKENS: usize = 500;
/// Without loops and names of its own a template ends, and joins each of its texts once.
const STATEMENTS: [&str; 4] = ["if", "elif", "else", "endif"];

/// A template of bodies that gave JSON for each kind of event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(String);

impl Template {
    /// Reads a template, and tries it with each kind of event.
    ///
    /// # Errors
    /// One sentence: it cannot be read, has an unknown name, or gives no JSON, or too much.
    pub fn parse(text: &str, format: TimeFormat) -> Result<Self, String> {
        readable(text)?;
        let template = Self(text.to_owned());
        for on_shared_storage in [true, false] {
            let mark = sample(on_shared_storage);
            template.check(&Event::of_mark(&mark, format))?;
            template.check(&Event::of_return(&mark, mark.generated_time, format))?;
            template.check(&Event::of_test(&mark.id, mark.generated_time, format))?;
        }
        Ok(template)
    }

    fn check(&self, event: &Event<'_>) -> Result<(), String> {
        let said = |why| format!("it gives no body for the event \"{}\": {why}", event.event_type);
        self.render(event).map(drop).map_err(said)
    }

    /// The body of an event. What cannot be rendered is the standard event: a host is never left out for its name.
    pub fn write(&self, event: &Event<'_>) -> Vec<u8> {
        self.render(event).unwrap_or_else(|why| {
            let node = event.node;
            warn!(mark = %event.id, host = %node, "the template gives no body for a mark of {node}, and the standard event is sent instead: {why}");
            event.bytes()
        })
    }

    fn render(&self, event: &Event<'_>) -> Result<Vec<u8>, String> {
        let text = of_json().render_str(&self.0, values(event)).map_err(said)?;
        let body = text.trim();
        short(body)?;
        let json: Result<serde_json::Value, _> = serde_json::from_str(body);
        json.map_err(|why| {
            format!(
                "it is no JSON ({why}); a value has quotes of its own: write {{{{ \"host \" ~ hostname }}}}"
            )
        })?;
        Ok(body.as_bytes().to_vec())
    }
}

fn short(text: &str) -> Result<(), String> {
    if text.len() > LONGEST { Err(format!("it is longer than {LONGEST} bytes")) } else { Ok(()) }
}

/// Checks that a template can be read, and keeps the alerter busy for no time.
fn readable(text: &str) -> Result<(), String> {
    short(text)?;
    let tokens = tokenize(text, false, Default::default()).map(|token| Ok(token?.0));
    let tokens: Vec<Token<'_>> = tokens.take(TOKENS + 1).collect::<Result<_, Error>>().map_err(said)?;
    if tokens.len() > TOKENS {
        return Err(format!("it has more than {TOKENS} texts, words and signs"));
    }
    if tokens.iter().any(|token| matches!(token, Token::Mul)) {
        return Err("it has a *, which is not known".to_owned());
    }
    let known = |word: &str| STATEMENTS.contains(&word);
    tokens.windows(2).try_for_each(|two| match two {
        [Token::BlockStart, Token::Ident(word)] if !known(word) => {
            Err(format!("it has a statement {word}: only if, elif, else and endif are known"))
        }
        _ => Ok(()),
    })
}

/// The mark that templates are tried with.
fn sample(on_shared_storage: bool) -> Mark {
    let name = |text| HostName::parse(text).expect("a host's name");
    Mark {
        id: MarkId::parse("00000000-0000-7000-8000-000000000000").expect("a UUID"),
        node: name("compute1"),
        fqdn: name("compute1.example"),
        on_shared_storage,
        failure_time: Timestamp(0),
        generated_time: Timestamp(1000),
    }
}

/// The names that a template can use.
fn values(event: &Event<'_>) -> Value {
    let payload = &event.payload;
    Value::from_pairs([
        ("id", Value::from(event.id.to_string())),
        ("key", Value::from(format!("{}{}", event.id, event.suffix))),
        ("event_type", Value::from(event.event_type)),
        ("version", Value::from(event.version)),
        ("generated_time", time(&event.generated_time)),
        ("hostname", Value::from(payload.hostname)),
        ("node", Value::from(event.node)),
        ("on_shared_storage", Value::from(payload.on_shared_storage)),
        ("failure_time", time(&payload.failure_time)),
    ])
}

fn time(time: &serde_json::Value) -> Value {
    time.as_i64().map_or_else(|| Value::from(time.as_str()), Value::from)
}

/// Without filters, functions and files. A name that does not exist is an error.
fn strict() -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment
}

/// Each value is written as JSON, a text with its quotes.
fn of_json() -> Environment<'static> {
    let mut environment = strict();
    environment.set_auto_escape_callback(|_| AutoEscape::Json);
    environment
}

/// What is wrong, without the template's name, which it has not.
fn said(why: Error) -> String {
    let line = why.line().map_or_else(String::new, |line| format!(", in its line {line}"));
    let detail = why.detail().map_or_else(String::new, |detail| format!(": {detail}"));
    format!("{}{detail}{line}", why.kind())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::mark;
    use super::*;

    const ALERT: &str = r#"{% if event_type == "host returned" %}{"note": {{ hostname ~ " is back" }}}
{% else %}{"alias": {{ id }}, "message": {{ event_type ~ ": " ~ hostname }},
 "details": {"node": {{ node }}, "shared": {{ on_shared_storage }}, "at": {{ failure_time }}, "made": {{ generated_time }},
 "key": {{ key }}, "version": {{ version }}}}{% endif %}"#;

    fn parsed(body: &[u8]) -> serde_json::Value {
        serde_json::from_slice(body).unwrap()
    }

    #[test]
    fn a_template_has_every_field_of_the_event() {
        let template = Template::parse(ALERT, TimeFormat::Epoch).unwrap();
        let id = mark().id.to_string();
        let details = json!({"node": "compute1", "shared": true, "at": 1_784_600_000, "made": 1_784_600_001,
            "key": id, "version": "1.0"});
        let failure = template.write(&Event::of_mark(&mark(), TimeFormat::Epoch));
        let message = "host failure: Compute1.my.cloud.com";
        assert_eq!(parsed(&failure), json!({"alias": id, "message": message, "details": details}));
        assert_eq!(failure, template.write(&Event::of_mark(&mark(), TimeFormat::Epoch)), "the same bytes");
        let back = parsed(&template.write(&Event::of_return(&mark(), Timestamp(0), TimeFormat::Epoch)));
        assert_eq!(back, json!({"note": "Compute1.my.cloud.com is back"}));
        let test = parsed(&template.write(&Event::of_test(&mark().id, Timestamp(0), TimeFormat::Rfc3339)));
        assert_eq!(test["message"], "test: send-test.invalid");
        assert_eq!(test["details"]["at"], "1970-01-01T00:00:00Z");
    }

    #[test]
    fn a_return_has_a_key_of_its_own() {
        let template = Template::parse(r#"{"key": {{ key }}}"#, TimeFormat::Epoch).unwrap();
        let back = parsed(&template.write(&Event::of_return(&mark(), Timestamp(0), TimeFormat::Epoch)));
        assert_eq!(back["key"], format!("{}.return", mark().id));
    }

    #[test]
    fn what_gives_no_json_for_some_event_is_no_template() {
        for (text, why) in [
            (r#"{"a": "{{ hostname }}"}"#, "a value has quotes of its own"),
            (r#"{"a": {{ hostnam }}}"#, "undefined value"),
            (r#"{"a": {{ "x" ~ hostnam }}}"#, "undefined value"),
            (r#"{"a": {{ hostname"#, "syntax error"),
            (r#"{"a": {{ hostname|safe }}}"#, "filter"),
            (r#"{% include "/etc/passwd" %}"#, "statement include"),
            (r#"{% if event_type == "host returned" %}{% else %}{}{% endif %}"#, "\"host returned\""),
            (r#"{% if event_type == "test" %}oops{% else %}{}{% endif %}"#, "the event \"test\""),
            (r#"{% if on_shared_storage %}{}{% endif %}"#, "the event \"host failure\""),
            ("", "it is no JSON"),
        ] {
            let said = Template::parse(text, TimeFormat::Epoch).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
        let long = format!("\"{}\"", "x".repeat(LONGEST));
        assert!(Template::parse(&long, TimeFormat::Epoch).unwrap_err().contains("longer than 65536 bytes"));
    }

    /// The broken variant writes values as they are: a quote in one would end its text.
    #[test]
    fn no_value_breaks_the_body() {
        let hostile = "a\"b\\c\n</script>\u{7}ä";
        let values = || Value::from_pairs([("hostname", Value::from(hostile))]);
        let text = r#"{"a": {{ hostname }}, "b": {{ "host " ~ hostname }}}"#;
        let body = parsed(of_json().render_str(text, values()).unwrap().as_bytes());
        assert_eq!(body, json!({"a": hostile, "b": format!("host {hostile}")}));
        let careless = strict().render_str(text, values()).unwrap();
        assert!(serde_json::from_str::<serde_json::Value>(&careless).is_err());
    }

    /// A template that gave JSON for every sample, and gives none for a real name. The broken variant sends nothing.
    #[test]
    fn what_cannot_be_rendered_is_the_standard_event() {
        let text = r#"{% if hostname != "Compute1.my.cloud.com" %}{}{% endif %}"#;
        let template = Template::parse(text, TimeFormat::Epoch).unwrap();
        let own = mark();
        let event = Event::of_mark(&own, TimeFormat::Epoch);
        assert_eq!(template.write(&event), event.bytes());
        let mark = mark();
        let event = Event::of_mark(&mark, TimeFormat::Epoch);
        assert!(template.render(&event).is_err());
    }

    /// Each of these kept the alerter busy, took all its memory, or overflowed its stack.
    #[test]
    fn a_template_that_takes_long_is_refused() {
        let doubled = "{% set a = [1,2] %}".to_owned() + &"{% set a = a + a %}".repeat(40) + "{}";
        let refused = |text: &str, why| {
            let said = Template::parse(text, TimeFormat::Epoch).unwrap_err();
            assert!(said.contains(why), "{said}");
        };
        refused(&doubled, "statement set");
        refused("{% for a in hostname %}{% endfor %}{}", "statement for");
        refused("{%- with a = 1 %}{% endwith %}{}", "statement with");
        refused(r#"{"a": {{ 2 in [1] * 4000000000 }}}"#, "a *");
        for nested in ["not ", "-", "1 if 0 else ", "1 ~ ", "1 ** "] {
            refused(&format!("{{\"a\": {{{{ {}1 }}}}}}", nested.repeat(TOKENS)), "more than 500");
        }
        refused(&("{% if 0 %}".to_owned() + &"{% elif 0 %}".repeat(TOKENS)), "more than 500");
        refused(&format!("\"{}\"", "x".repeat(LONGEST)), "longer than 65536 bytes");
    }
}
