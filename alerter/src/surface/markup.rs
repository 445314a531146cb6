//! HTML and SVG as text, made so that nothing from outside can become markup.

use std::fmt::{self, Display, Write};

use site::is_hidden;

/// Finished markup. Names of elements and attributes are the program's own; every text and every value is escaped on its
/// way in, and there is no other way in. What is not seen becomes a sign that is: two host names could look the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Markup(String);

/// Attributes with their values.
pub type Attributes<'a> = &'a [(&'static str, &'a dyn Display)];

impl Markup {
    /// An element around what `inside` writes.
    pub fn tag(&mut self, name: &'static str, attributes: Attributes<'_>, inside: impl FnOnce(&mut Self)) {
        self.begin(name, attributes);
        self.0.push('>');
        inside(self);
        self.0.push_str("</");
        self.0.push_str(name);
        self.0.push('>');
    }

    /// An element around a text.
    pub fn leaf(&mut self, name: &'static str, attributes: Attributes<'_>, text: impl Display) {
        self.tag(name, attributes, |inside| inside.text(text));
    }

    /// An element that holds nothing.
    pub fn void(&mut self, name: &'static str, attributes: Attributes<'_>) {
        self.begin(name, attributes);
        self.0.push_str("/>");
    }

    /// A text.
    pub fn text(&mut self, text: impl Display) {
        write!(Escaping(&mut self.0), "{text}").expect("a String takes everything");
    }

    /// Markup that is finished already.
    pub fn add(&mut self, other: &Self) {
        self.0.push_str(&other.0);
    }

    /// Markup as it stands in the program's own text.
    pub fn own(&mut self, markup: &'static str) {
        self.0.push_str(markup);
    }

    /// As it is sent.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn begin(&mut self, name: &'static str, attributes: Attributes<'_>) {
        self.0.push('<');
        self.0.push_str(name);
        for (key, value) in attributes {
            self.0.push(' ');
            self.0.push_str(key);
            self.0.push_str("=\"");
            self.text(value);
            self.0.push('"');
        }
    }
}

impl Display for Markup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Markup> for String {
    fn from(markup: Markup) -> Self {
        markup.0
    }
}

struct Escaping<'a>(&'a mut String);

impl Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.chars() {
            match letter {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                '\n' | '\r' | '\t' => self.0.push(' '),
                odd if is_hidden(odd) => self.0.push(char::REPLACEMENT_CHARACTER),
                plain => self.0.push(plain),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "</text><script>alert(\"1\")</script>'&\u{0}\u{1b}[31m\u{202e}\n";

    /// The broken variant is the same text as the program's own.
    #[test]
    fn nothing_from_outside_becomes_markup() {
        let mut page = Markup::default();
        page.leaf("p", &[("title", &HOSTILE)], HOSTILE);
        let escaped = "&lt;/text&gt;&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&#39;&amp;\u{fffd}\u{fffd}[31m\u{fffd} ";
        assert_eq!(page.as_str(), format!("<p title=\"{escaped}\">{escaped}</p>"));
        page.own("<script>");
        assert!(page.as_str().ends_with("<script>"));
    }

    #[test]
    fn elements_stand_in_each_other() {
        let mut page = Markup::default();
        page.tag("g", &[("class", &"a b"), ("x", &1.5)], |g| {
            g.void("rect", &[]);
            g.text("ü");
        });
        let mut around = Markup::default();
        around.tag("svg", &[], |svg| svg.add(&page));
        assert_eq!(String::from(around), "<svg><g class=\"a b\" x=\"1.5\"><rect/>ü</g></svg>");
    }
}
