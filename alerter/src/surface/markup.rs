//! The last touch on HTML. maud escapes every text and every value on its way in.

use maud::Markup;
use site::is_hidden;

/// As it is sent. Invisible characters become visible signs: else two host names could be read as the same.
pub fn sent(markup: Markup) -> String {
    let seen = |c: char| if is_hidden(c) && c != '\n' { char::REPLACEMENT_CHARACTER } else { c };
    markup.into_string().chars().map(seen).collect()
}

#[cfg(test)]
mod tests {
    use maud::{PreEscaped, html};

    use super::*;

    const HOSTILE: &str = "</text><script>alert(\"1\")</script>&\u{0}\u{1b}[31m\u{202e}\n";

    /// The broken variant is the same text as the program's own.
    #[test]
    fn nothing_from_outside_becomes_markup() {
        let escaped = "&lt;/text&gt;&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;\u{fffd}\u{fffd}[31m\u{fffd}\n";
        assert_eq!(
            sent(html! { p title=(HOSTILE) { (HOSTILE) } }),
            format!("<p title=\"{escaped}\">{escaped}</p>")
        );
        assert!(sent(PreEscaped(HOSTILE.into())).contains("<script>"));
    }
}
