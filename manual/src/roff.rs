//! The few macros of man(7) that the pages are made of, and what has to be escaped in a text.

/// Columns of a line of the source; the program that shows the page breaks the lines again.
const WIDTH: usize = 78;

/// A text as it may stand anywhere in a line.
pub(crate) fn prose(text: &str) -> String {
    text.chars().map(escaped).collect()
}

/// The same of a command or a word that is typed: its hyphens can be copied.
pub(crate) fn code(text: &str) -> String {
    text.chars().map(|letter| if letter == '-' { "\\-".to_owned() } else { escaped(letter) }).collect()
}

/// Letters that roff takes for something else, or that not every terminal has.
fn escaped(letter: char) -> String {
    let name = match letter {
        '\\' => "\\e",
        '\'' => "\\(aq",
        '`' => "\\(ga",
        '^' => "\\(ha",
        '~' => "\\(ti",
        '…' => "...",
        '×' => "\\(mu",
        '–' => "\\(en",
        '→' => "->",
        other => return other.to_string(),
    };
    name.to_owned()
}

/// A text that is typed as it stands here.
pub(crate) fn bold(text: &str) -> String {
    format!("\\fB{}\\fR", code(text))
}

/// A word that stands for something else.
pub(crate) fn italic(text: &str) -> String {
    format!("\\fI{}\\fR", code(text))
}

/// A page, or a part of one.
#[derive(Debug, Default)]
pub(crate) struct Page(String);

impl Page {
    /// The head of a page. The date is that of the release: the same source gives the same page. Typed text is neither
    /// hyphenated nor stretched.
    pub(crate) fn titled(name: &str, section: char, date: &str, source: &str) -> Self {
        let title = code(&name.to_uppercase());
        Self(format!(".TH \"{title}\" {section} {date} \"{source}\" \"nova-host-alerter\"\n.nh\n.ad l\n"))
    }

    /// A section.
    pub(crate) fn section(&mut self, title: &str) {
        self.line(&format!(".SH {}", prose(&title.to_uppercase())));
    }

    /// A part of a section.
    pub(crate) fn part(&mut self, title: &str) {
        self.line(&format!(".SS {}", prose(title)));
    }

    /// A paragraph.
    pub(crate) fn paragraph(&mut self, text: &str) {
        self.new_paragraph();
        self.filled(text);
    }

    /// Heads, and the paragraphs that explain them.
    pub(crate) fn item(&mut self, heads: &[String], paragraphs: &[String]) {
        for (at, head) in heads.iter().enumerate() {
            self.line(if at == 0 { ".TP" } else { ".TQ" });
            self.line(&guarded(head));
        }
        for (at, paragraph) in paragraphs.iter().enumerate() {
            if at > 0 {
                self.line(".IP");
            }
            self.filled(paragraph);
        }
    }

    /// A paragraph behind a mark, or a further one of that where there is none.
    pub(crate) fn point(&mut self, mark: Option<&str>, text: &str) {
        match mark {
            Some(mark) => self.line(&format!(".IP {mark} 3")),
            None => self.line(".IP"),
        }
        self.filled(text);
    }

    /// Lines that stay as they are.
    pub(crate) fn example(&mut self, text: &str) {
        self.new_paragraph();
        self.line(".RS 4");
        self.line(".nf");
        for line in text.trim_end().lines() {
            self.line(&guarded(&code(line)));
        }
        self.line(".fi");
        self.line(".RE");
    }

    /// Further lines, which are roff already.
    pub(crate) fn add(&mut self, roff: &str) {
        let lines = roff.strip_prefix(".PP\n").filter(|_| self.is_behind_a_title()).unwrap_or(roff);
        self.0.push_str(lines);
    }

    /// The whole text.
    pub(crate) fn into_text(self) -> String {
        self.0
    }

    /// A title begins a paragraph by itself.
    fn new_paragraph(&mut self) {
        if !self.is_behind_a_title() {
            self.line(".PP");
        }
    }

    fn is_behind_a_title(&self) -> bool {
        self.0.lines().last().is_some_and(|line| line.starts_with(".S"))
    }

    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    fn filled(&mut self, text: &str) {
        let mut line = String::new();
        for word in text.split_whitespace() {
            if !line.is_empty() && line.len() + 1 + word.len() > WIDTH {
                self.line(&guarded(&line));
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        if !line.is_empty() {
            self.line(&guarded(&line));
        }
    }
}

/// A line that begins like a macro is one.
fn guarded(line: &str) -> String {
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_taken_for_a_macro() {
        let mut page = Page::default();
        page.paragraph(&prose(".confirm isn't \\fBold\\fP"));
        page.example("'quoted'\n.dotted --long");
        assert_eq!(
            page.into_text(),
            ".PP\n\\&.confirm isn\\(aqt \\efBold\\efP\n.PP\n.RS 4\n.nf\n\\(aqquoted\\(aq\n\\&.dotted \\-\\-long\n.fi\n.RE\n"
        );
    }

    #[test]
    fn a_title_begins_its_paragraph_by_itself() {
        let mut page = Page::default();
        page.section("Files");
        page.paragraph("one");
        page.paragraph("two");
        page.part("more");
        page.add(".PP\nthree\n");
        assert_eq!(page.into_text(), ".SH FILES\none\n.PP\ntwo\n.SS more\nthree\n");
    }
}
