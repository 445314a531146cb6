//! From Markdown, as the pages in `docs/` are written, to roff.

use anyhow::Context as _;
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::roff::{Page, code, prose};

/// A text's macros. A heading of the level `top` is a section of the page, every other one a part of a section.
pub(crate) fn to_roff(text: &str, top: HeadingLevel) -> String {
    let mut writer = Writer::new(top);
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        writer.take(event);
    }
    writer.page.into_text()
}

struct Writer {
    top: HeadingLevel,
    page: Page,
    /// The text of the paragraph, cell or title so far.
    text: String,
    fonts: Vec<char>,
    /// The lists around, each with the number of its next point where it has numbers.
    lists: Vec<Option<u64>>,
    /// The mark of a point that has no paragraph yet.
    mark: Option<String>,
    is_code: bool,
    head: Vec<String>,
    row: Vec<String>,
}

impl Writer {
    fn new(top: HeadingLevel) -> Self {
        Self {
            top,
            page: Page::default(),
            text: String::new(),
            fonts: Vec::new(),
            lists: Vec::new(),
            mark: None,
            is_code: false,
            head: Vec::new(),
            row: Vec::new(),
        }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text) if self.is_code => self.text.push_str(&text),
            Event::Text(text) => self.text.push_str(&prose(&text)),
            Event::Code(text) => {
                self.begin_font('B');
                self.text.push_str(&code(&text));
                self.end_font();
            }
            Event::SoftBreak | Event::HardBreak => self.text.push(' '),
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            // Marks for our own tests stand in comments.
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Strong => self.begin_font('B'),
            Tag::Emphasis => self.begin_font('I'),
            Tag::CodeBlock(_) => self.is_code = true,
            Tag::List(first) => {
                self.paragraph();
                self.lists.push(first);
            }
            Tag::Item => self.mark = Some(self.next_mark()),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Strong | TagEnd::Emphasis => self.end_font(),
            TagEnd::Heading(level) => self.title(level),
            TagEnd::Paragraph | TagEnd::Item => self.paragraph(),
            TagEnd::CodeBlock => self.example(),
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::TableCell => {
                let cell = self.taken();
                self.row.push(cell);
            }
            TagEnd::TableHead => self.head = std::mem::take(&mut self.row),
            TagEnd::TableRow => self.row(),
            _ => {}
        }
    }

    fn taken(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    fn begin_font(&mut self, font: char) {
        self.fonts.push(font);
        self.text.push_str(&format!("\\f{font}"));
    }

    fn end_font(&mut self) {
        self.fonts.pop();
        let font = self.fonts.last().copied().unwrap_or('R');
        self.text.push_str(&format!("\\f{font}"));
    }

    fn next_mark(&mut self) -> String {
        match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{}.", *number - 1)
            }
            _ => "\\(bu".to_owned(),
        }
    }

    fn title(&mut self, level: HeadingLevel) {
        let title = self.taken();
        if level == self.top { self.page.section(&title) } else { self.page.part(&title) }
    }

    fn paragraph(&mut self) {
        let text = self.taken();
        if text.is_empty() {
            return;
        }
        if self.lists.is_empty() {
            self.page.paragraph(&text);
        } else {
            let mark = self.mark.take();
            self.page.point(mark.as_deref(), &text);
        }
    }

    fn example(&mut self) {
        self.is_code = false;
        let text = self.taken();
        self.page.example(&text);
    }

    /// The first cell is what is explained; each further one says what it is where there are several.
    fn row(&mut self) {
        let row = std::mem::take(&mut self.row);
        let Some((first, others)) = row.split_first() else { return };
        let filled = others.iter().zip(self.head.iter().skip(1)).filter(|(cell, _)| !cell.is_empty());
        let said = |(cell, title): (&String, &String)| match others.len() > 1 && !title.is_empty() {
            true => format!("{title}: {cell}"),
            false => cell.clone(),
        };
        let paragraphs: Vec<String> = filled.map(said).collect();
        self.page.item(std::slice::from_ref(first), &paragraphs);
    }
}

/// The text below a heading of the second level, up to the next one.
///
/// # Errors
/// There is no such heading.
pub(crate) fn section<'t>(text: &'t str, heading: &str) -> anyhow::Result<&'t str> {
    let begin = format!("\n## {heading}\n");
    let (_, rest) =
        text.split_once(&begin).with_context(|| format!("no page in docs/ has a section {heading}"))?;
    Ok(rest.split("\n## ").next().unwrap_or(rest))
}
