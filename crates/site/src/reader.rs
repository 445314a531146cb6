//! A typed reader of the merged tree: it goes on after a problem, and finds unknown keys.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::DeValue;

use crate::gone;
use crate::inputs::{Setting, Table, Value};
use crate::problem::{Place, Problems};
use crate::suggest;

/// One table of the configuration while it is read. An absent table reads as an empty one.
///
/// Every value of a key is checked, also an overridden one; the last one counts.
#[derive(Debug)]
pub struct Section<'a, 'p> {
    /// As in a header, without brackets; empty for the whole configuration.
    title: String,
    table: Option<&'a Table<'a>>,
    place: Place<'a>,
    asked: Vec<&'static str>,
    problems: &'p mut Problems,
    problems_before: usize,
}

impl<'a, 'p> Section<'a, 'p> {
    /// The whole configuration.
    pub fn root(table: &'a Table<'a>, problems: &'p mut Problems) -> Self {
        Self::new(String::new(), Some(table), table.place, problems)
    }

    fn new(
        title: String,
        table: Option<&'a Table<'a>>,
        place: Place<'a>,
        problems: &'p mut Problems,
    ) -> Self {
        let problems_before = problems.count();
        Self { title, table, place, asked: Vec::new(), problems, problems_before }
    }

    /// A table below this one.
    pub fn section(&mut self, key: &'static str) -> Section<'a, '_> {
        let entry = self.ask(key);
        let title = self.path(key);
        if let Some(value) = entry.and_then(|entry| entry.values.first()) {
            self.problems.at(value.place, format!("must be a table: write [{title}]"));
        }
        let place = entry.map_or(self.place, |entry| entry.key);
        Section::new(title, entry.and_then(|entry| entry.table.as_ref()), place, self.problems)
    }

    /// The tables below this one, whatever their names, each with its key; anything else is a problem.
    pub fn sections(&self) -> Vec<&'a str> {
        self.entries().filter(|(_, entry)| entry.table.is_some()).map(|(key, _)| key).collect()
    }

    /// A table below this one with a name from the configuration.
    pub fn named_section(&mut self, key: &'a str) -> Section<'a, '_> {
        let entry = self.table.and_then(|table| table.entries.get(key));
        let place = entry.map_or(self.place, |entry| entry.key);
        let title = self.path(&shown(key));
        Section::new(title, entry.and_then(|entry| entry.table.as_ref()), place, self.problems)
    }

    /// The whole table; `None` if it is missing.
    pub fn table(&self) -> Option<&'a Table<'a>> {
        self.table
    }

    /// Every entry of this table, in the order of the keys.
    pub fn entries(&self) -> impl Iterator<Item = (&'a str, &'a Setting<'a>)> + use<'a> {
        self.table.into_iter().flat_map(|table| table.entries.iter().map(|(key, entry)| (*key, entry)))
    }

    /// A text, parsed.
    pub fn text<T>(&mut self, key: &'static str, parse: impl FnMut(&str) -> Result<T, String>) -> Option<T> {
        let entry = self.ask(key)?;
        self.last_text(entry, parse)
    }

    /// The text of an entry with a key from the configuration, parsed.
    pub fn last_text<T>(
        &mut self,
        entry: &Setting<'a>,
        mut parse: impl FnMut(&str) -> Result<T, String>,
    ) -> Option<T> {
        self.last(entry, "text in quotes", |value| value.as_str().map(&mut parse))
    }

    /// One of a few words.
    pub fn choice<T: Copy>(&mut self, key: &'static str, words: &[(&'static str, T)]) -> Option<T> {
        self.text(key, |text| match words.iter().find(|(word, _)| *word == text) {
            Some((_, meaning)) => Ok(*meaning),
            None => Err(unknown_word("word", text, words.iter().map(|(word, _)| *word))),
        })
    }

    /// `true` or `false`.
    pub fn flag(&mut self, key: &'static str) -> Option<bool> {
        let entry = self.ask(key)?;
        self.last(entry, "true or false", |value| value.as_bool().map(Ok))
    }

    /// A whole number within `range`.
    pub fn number(&mut self, key: &'static str, range: RangeInclusive<u32>) -> Option<u32> {
        let entry = self.ask(key)?;
        self.last(entry, "a whole number", |value| whole_number(value, &range))
    }

    /// The same, also below zero.
    pub fn whole(&mut self, key: &'static str, range: RangeInclusive<i64>) -> Option<i64> {
        let entry = self.ask(key)?;
        self.last(entry, "a whole number", |value| signed_number(value, &range))
    }

    /// A whole number within `range`, or a text; each converted.
    pub fn number_or_text<T>(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u32>,
        mut of_number: impl FnMut(u32) -> T,
        mut of_text: impl FnMut(&str) -> Result<T, String>,
    ) -> Option<T> {
        let entry = self.ask(key)?;
        self.last(entry, "a whole number, or text in quotes", |value| match value.as_str() {
            Some(text) => Some(of_text(text)),
            None => whole_number(value, &range).map(|number| number.map(&mut of_number)),
        })
    }

    /// A list of tables, such as `example`; each is read by itself.
    pub fn tables<T>(
        &mut self,
        key: &'static str,
        example: &str,
        mut read: impl FnMut(Section<'a, '_>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let entry = self.ask(key)?;
        let title = self.path(key);
        if entry.table.is_some() {
            self.problems.at(entry.key, format!("must be a list of tables: write [{example}]"));
        }
        let mut last = None;
        for value in &entry.values {
            let is_sound = self.only_tables_in(value, example);
            let mut each = |table| read(Section::new(title.clone(), Some(table), table.place, self.problems));
            let read: Option<Vec<T>> = value.tables.iter().map(&mut each).collect();
            last = read.filter(|_| is_sound);
        }
        last
    }

    fn only_tables_in(&mut self, value: &Value<'a>, example: &str) -> bool {
        let Some(list) = value.value.as_array() else {
            self.problems.at(value.place, wrong_type(&format!("a list such as [{example}]"), value.value));
            return false;
        };
        for item in list.into_iter().filter(|item| !item.get_ref().is_table()) {
            let place = Place { offset: item.span().start, ..value.place };
            self.problems.at(place, wrong_type(&format!("a table such as {example}"), item.get_ref()));
        }
        list.into_iter().all(|item| item.get_ref().is_table())
    }

    /// A list of texts; each entry is checked at its own place.
    pub fn texts(
        &mut self,
        key: &'static str,
        check: impl FnMut(&str) -> Result<(), String>,
    ) -> Option<Vec<&'a str>> {
        let entry = self.ask(key)?;
        self.last_texts(entry, check)
    }

    /// The list of an entry with a key from the configuration, each of its texts checked at its own place.
    pub fn last_texts(
        &mut self,
        entry: &Setting<'a>,
        mut check: impl FnMut(&str) -> Result<(), String>,
    ) -> Option<Vec<&'a str>> {
        let mut last = None;
        self.no_table(entry);
        for value in &entry.values {
            last = self.list(value, &mut check);
        }
        last
    }

    fn list(
        &mut self,
        value: &Value<'a>,
        check: &mut impl FnMut(&str) -> Result<(), String>,
    ) -> Option<Vec<&'a str>> {
        let Some(list) = value.value.as_array() else {
            self.problems.at(value.place, wrong_type("a list such as [\"a\", \"b\"]", value.value));
            return None;
        };
        let read: Vec<Option<&'a str>> = list.into_iter().map(|item| self.item(value, item, check)).collect();
        read.into_iter().collect()
    }

    fn item(
        &mut self,
        list: &Value<'a>,
        item: &'a Spanned<DeValue<'a>>,
        check: &mut impl FnMut(&str) -> Result<(), String>,
    ) -> Option<&'a str> {
        let place = Place { offset: item.span().start, ..list.place };
        let text = item.get_ref().as_str();
        match text.map(check) {
            Some(Ok(())) => return text,
            Some(Err(why)) => self.problems.at(place, why),
            None => self.problems.at(place, wrong_type("text in quotes", item.get_ref())),
        }
        None
    }

    /// Notes a problem with a key's last value, or with the table if the key is missing.
    pub fn complain(&mut self, key: &str, message: impl Into<String>) {
        let entry = self.table.and_then(|table| table.entries.get(key));
        let place = entry.and_then(|entry| entry.values.last()).map_or(self.place, |value| value.place);
        self.problems.at(place, message);
    }

    /// The place of a key's last value.
    pub fn place_of(&self, key: &str) -> Option<Place<'a>> {
        Some(self.table?.entries.get(key)?.values.last()?.place)
    }

    /// Notes a problem with one entry of a key's last list, counted from 0; with the list if there is no such entry.
    pub fn complain_in_list(&mut self, key: &str, index: usize, message: impl Into<String>) {
        match self.place_in_list(key, index) {
            Some(place) => self.problems.at(place, message),
            None => self.complain(key, message),
        }
    }

    /// The place of an entry of a key's last list, counted from 0.
    pub fn place_in_list(&self, key: &str, index: usize) -> Option<Place<'a>> {
        let list = self.table?.entries.get(key)?.values.last()?;
        let item = list.value.as_array()?.into_iter().nth(index)?;
        Some(Place { offset: item.span().start, ..list.place })
    }

    /// The place of the table.
    pub fn place(&self) -> Place<'a> {
        self.place
    }

    /// Notes a warning about a key's last value.
    pub fn warn(&mut self, key: &str, message: impl Into<String>) {
        let place = self.place_of(key).unwrap_or(self.place);
        self.problems.warn(place, message);
    }

    /// Notes a problem at a place.
    pub fn complain_at(&mut self, place: Place<'a>, message: impl Into<String>) {
        self.problems.at(place, message);
    }

    /// Notes a problem with the table itself.
    pub fn complain_here(&mut self, message: impl Into<String>) {
        self.problems.at(self.place, message);
    }

    /// Notes that something is missing.
    pub fn missing(&mut self, message: impl Into<String>) {
        self.missing_at(self.place, message);
    }

    /// Notes that a key is missing, and what to do, unless it is there.
    pub fn needs(&mut self, key: &str, advice: &str) {
        if !self.has(key) {
            self.missing(format!("[{}] has no {key}: {advice}", self.title));
        }
    }

    /// Notes a problem with a key that is there, if it does not fit the others.
    pub fn complain_if(&mut self, is_wrong: bool, key: &str, message: &str) {
        if is_wrong && self.has(key) {
            self.complain(key, message);
        }
    }

    /// Notes each of two keys that is there without the other.
    pub fn both_or_neither(&mut self, one: &str, other: &str) {
        for (there, missing) in [(one, other), (other, one)] {
            let why = format!("{there} has no effect without {missing}: set both, or neither");
            self.complain_if(!self.has(missing), there, &why);
        }
    }

    /// Notes that something is missing at this place.
    pub fn missing_at(&mut self, place: Place<'a>, message: impl Into<String>) {
        self.problems.missing(place, message);
    }

    /// Whether the table exists.
    pub fn is_there(&self) -> bool {
        self.table.is_some()
    }

    /// Whether the key is in the table, with any value.
    pub fn has(&self, key: &str) -> bool {
        self.table.is_some_and(|table| table.entries.contains_key(key))
    }

    /// Whether all files could be read: otherwise an unknown name may be defined in the rest.
    pub fn is_whole(&self) -> bool {
        !self.problems.is_incomplete()
    }

    /// Whether nothing was wrong in this table so far.
    pub fn is_sound(&self) -> bool {
        self.problems.count() == self.problems_before
    }

    /// The table's title, as in its header.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Notes entries that are not tables: all entries here must be tables with names from the configuration, each a
    /// `what`.
    pub fn only_tables(&mut self, what: &str) {
        for (key, entry) in self.entries() {
            if let Some(value) = entry.values.first() {
                let (title, key) = (&self.title, shown(key));
                let message = format!(
                    "{title}.{key} must be inside a {what}: write [{title}.NAME], one table for each"
                );
                self.problems.at(value.place, message);
            }
        }
    }

    /// Ends the reading: the remaining keys are unknown.
    pub fn finish(self) {
        for (key, entry) in self.entries().filter(|(key, _)| !self.asked.contains(key)) {
            let message = self.unknown(key, entry);
            self.problems.at(entry.key, message);
        }
    }

    fn unknown(&self, key: &str, entry: &Setting<'a>) -> String {
        if let Some(instead) = gone::instead(&self.path(key)) {
            return format!("{} is gone: {instead}", self.path(key));
        }
        let mut message = match self.title.as_str() {
            "" if entry.table.is_none() => format!("unknown key {} outside of any section", shown(key)),
            "" => format!("unknown section {}", shown(key)),
            title => format!("unknown key {} in [{title}]", shown(key)),
        };
        let known = self.asked.iter().copied();
        let _to_a_string = match suggest::closest(key, known.clone()) {
            Some(meant) => write!(message, "; did you mean {meant}?"),
            None if self.asked.is_empty() => write!(message, "; it has none"),
            None => write!(message, "; known are: {}", known.collect::<Vec<_>>().join(", ")),
        };
        message
    }

    fn ask(&mut self, key: &'static str) -> Option<&'a Setting<'a>> {
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
        self.table?.entries.get(key)
    }

    fn path(&self, key: &str) -> String {
        if self.title.is_empty() { key.to_owned() } else { format!("{}.{key}", self.title) }
    }

    fn no_table(&mut self, entry: &Setting<'a>) {
        if entry.table.is_some() {
            self.problems.at(entry.key, "must be a value, not a table (a key with dots needs quotes)");
        }
    }

    /// Checks all values of a key and returns the last. `read` returns `None` for another type.
    fn last<T>(
        &mut self,
        entry: &Setting<'a>,
        wanted: &str,
        mut read: impl FnMut(&'a DeValue<'a>) -> Option<Result<T, String>>,
    ) -> Option<T> {
        self.no_table(entry);
        let mut last = None;
        for value in &entry.values {
            last = match read(value.value).unwrap_or_else(|| Err(wrong_type(wanted, value.value))) {
                Ok(read) => Some(read),
                Err(why) => {
                    self.problems.at(value.place, why);
                    None
                }
            };
        }
        last
    }
}

/// A text, if it is what `why` says that it must be.
pub fn text_if(is_good: bool, text: &str, why: &str) -> Result<String, String> {
    if is_good { Ok(text.to_owned()) } else { Err(why.to_owned()) }
}

/// The message for a text that is none of the known words, with the known ones. The text itself is not shown.
pub fn unknown_word<'k>(what: &str, text: &str, known: impl Iterator<Item = &'k str> + Clone) -> String {
    let list: Vec<String> = known.clone().map(|word| format!("\"{word}\"")).collect();
    match suggest::closest(text, known) {
        Some(meant) => format!("unknown {what}; did you mean \"{meant}\"? Known are: {}", list.join(", ")),
        None => format!("unknown {what}; known are: {}", list.join(", ")),
    }
}

fn whole_number(value: &DeValue<'_>, range: &RangeInclusive<u32>) -> Option<Result<u32, String>> {
    let integer = value.as_integer()?;
    let number = u32::from_str_radix(integer.as_str(), integer.radix()).ok();
    let fits = number.filter(|number| range.contains(number));
    Some(fits.ok_or_else(|| format!("must be from {} to {}", range.start(), range.end())))
}

fn signed_number(value: &DeValue<'_>, range: &RangeInclusive<i64>) -> Option<Result<i64, String>> {
    let integer = value.as_integer()?;
    let number = i64::from_str_radix(integer.as_str(), integer.radix()).ok();
    let fits = number.filter(|number| range.contains(number));
    Some(fits.ok_or_else(|| format!("must be from {} to {}", range.start(), range.end())))
}

fn wrong_type(wanted: &str, found: &DeValue<'_>) -> String {
    let found = match found {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    };
    format!("must be {wanted}, not {found}")
}

/// A key as a message may show it: only if it is a plain word.
pub fn shown(key: &str) -> String {
    let plain = key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    if plain && (1..=64).contains(&key.len()) {
        key.to_owned()
    } else {
        "(not shown: not a plain word)".to_owned()
    }
}
