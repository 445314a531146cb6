//! The keys of the configuration, as the file that the packages ship explains them: each with its default or an example.

/// One table of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its header in the file, without brackets.
    pub header: String,
    /// The same with `NAME` for the administrator's own name.
    pub title: String,
    /// The sentences before the header.
    pub about: String,
    /// Its keys, in the order of the file.
    pub entries: Vec<Entry>,
}

/// Keys that are explained together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// One or more.
    pub keys: Vec<Key>,
    /// Their purpose; empty where the table's own sentences have it.
    pub about: String,
}

/// One key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// As it is written.
    pub name: String,
    /// Its value in the file, as TOML.
    pub value: String,
    /// Whether that is an example; else it is the default.
    pub is_example: bool,
}

/// What marks a value as an example.
const EXAMPLE: &str = "  # example";
/// A key's explanation stands at the same key of another table.
const ELSEWHERE: [&str; 2] = ["As those of [", "As that of ["];
/// The same, and it is the last table before this one that explains the key.
const ABOVE: &str = "As above";

/// Every table of the file, those of one title merged, with each explanation where it belongs.
pub fn read(text: &str) -> Vec<Table> {
    let written = parse(text);
    let explained: Vec<Table> = (0..written.len()).map(|at| resolved(&written, at)).collect();
    let mut merged: Vec<Table> = Vec::new();
    for table in explained {
        match merged.iter_mut().find(|known| known.title == table.title) {
            Some(known) => known.add(table.entries),
            None => merged.push(table),
        }
    }
    merged
}

impl Table {
    /// The names of all its keys.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().flat_map(|entry| entry.keys.iter().map(|key| key.name.as_str()))
    }

    /// Adds the entries of another example of this table, but for keys that it has already.
    fn add(&mut self, entries: Vec<Entry>) {
        for entry in entries {
            if let Some(entry) = entry.only(|name| !self.names().any(|known| known == name)) {
                self.entries.push(entry);
            }
        }
    }

    fn explanation(&self, name: &str) -> Option<&str> {
        let entry = self.entries.iter().find(|entry| entry.keys.iter().any(|key| key.name == name))?;
        Some(entry.about.as_str()).filter(|about| !about.is_empty())
    }
}

impl Entry {
    /// With some of its keys alone; none where none is left.
    pub fn only(&self, wanted: impl Fn(&str) -> bool) -> Option<Self> {
        let keys: Vec<Key> = self.keys.iter().filter(|key| wanted(&key.name)).cloned().collect();
        (!keys.is_empty()).then(|| Self { keys, about: self.about.clone() })
    }
}

/// The tables as they are written. A setting is a line with `#` and no blank behind it, a sentence has one.
fn parse(text: &str) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let mut about: Vec<&str> = Vec::new();
    let mut is_behind_a_key = false;
    for line in text.lines() {
        let setting = line.strip_prefix('#').filter(|setting| !setting.is_empty());
        match setting.map(|setting| setting.strip_prefix(' ').ok_or(setting)) {
            None => about.clear(),
            Some(Ok(sentence)) => about.push(sentence),
            Some(Err(header)) if header.starts_with('[') => {
                let header = header.trim_matches(['[', ']']).to_owned();
                let title = title(&header);
                tables.push(Table {
                    header,
                    title,
                    about: std::mem::take(&mut about).join(" "),
                    entries: Vec::new(),
                });
            }
            Some(Err(setting)) => {
                let (Some(table), Some(key)) = (tables.last_mut(), key(setting)) else { continue };
                match table.entries.last_mut().filter(|_| is_behind_a_key && about.is_empty()) {
                    Some(entry) => entry.keys.push(key),
                    None => table
                        .entries
                        .push(Entry { keys: vec![key], about: std::mem::take(&mut about).join(" ") }),
                }
            }
        }
        is_behind_a_key = setting.is_some_and(|setting| !setting.starts_with([' ', '[']));
    }
    tables
}

fn key(setting: &str) -> Option<Key> {
    let (name, value) = setting.split_once(" = ")?;
    let (value, is_example) = value.strip_suffix(EXAMPLE).map_or((value, false), |value| (value, true));
    Some(Key { name: name.to_owned(), value: value.to_owned(), is_example })
}

/// A header with `NAME` for the names that an administrator chooses.
pub fn title(header: &str) -> String {
    let parts: Vec<&str> = header.split('.').collect();
    let chosen = |at: usize| match (parts[0], at) {
        ("groups", 1) => parts[1] != "default",
        ("groups", 4) | ("api", 2) => true,
        ("groups" | "hosts" | "api" | "store", _) => false,
        (_, at) => at == 1,
    };
    let parts: Vec<&str> =
        parts.iter().enumerate().map(|(at, part)| if chosen(at) { "NAME" } else { part }).collect();
    parts.join(".")
}

/// A table with the explanations that stand elsewhere.
fn resolved(tables: &[Table], at: usize) -> Table {
    let mut table = Table { entries: Vec::new(), ..tables[at].clone() };
    for entry in &tables[at].entries {
        for key in &entry.keys {
            let about = explained(tables, at, &entry.about, &key.name);
            match table.entries.last_mut().filter(|last| last.about == about) {
                Some(last) => last.keys.push(key.clone()),
                None => table.entries.push(Entry { keys: vec![key.clone()], about }),
            }
        }
    }
    table
}

fn explained(tables: &[Table], at: usize, about: &str, name: &str) -> String {
    let (there, rest) = if let Some(rest) = ELSEWHERE.iter().find_map(|words| about.strip_prefix(words)) {
        let (header, rest) = rest.split_once(']').unwrap_or((rest, ""));
        (tables.iter().position(|table| table.header == header), rest)
    } else if let Some(rest) = about.strip_prefix(ABOVE) {
        (tables[..at].iter().rposition(|table| table.explanation(name).is_some()), rest)
    } else {
        return about.to_owned();
    };
    let Some(there) = there.filter(|there| *there != at) else { return about.to_owned() };
    let said = tables[there].explanation(name).unwrap_or_default();
    let said = explained(tables, there, said, name);
    let rest = rest.trim_start_matches([';', '.', ' ']);
    let sentence =
        rest.chars().next().map(|first| first.to_uppercase().chain(rest.chars().skip(1)).collect());
    [Some(said), sentence]
        .into_iter()
        .flatten()
        .filter(|part: &String| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# The whole file.\n\n# Where marks are.\n#[store]\n# The journal.\n#path = \"/a\"\n\n\
        # Routes.\n#[http.a]\n#url = \"u\"  # example\n# Seconds.\n#timeout = 30\n#tries = 2\n\n\
        # More.\n#[http.b]\n#url = \"v\"  # example\n# Its socket.\n#socket = \"s\"  # example\n\n\
        #[exec.c]\n# As above; of one run.\n#timeout = 20\n\n#[exec.d]\n# As those of [http.a].\n#tries = 3\n";

    #[test]
    fn each_key_has_its_explanation_wherever_that_stands() {
        let tables = read(FILE);
        let titles: Vec<&str> = tables.iter().map(|table| table.title.as_str()).collect();
        assert_eq!(titles, ["store", "http.NAME", "exec.NAME"]);
        assert_eq!(tables[0].about, "Where marks are.");
        assert_eq!(tables[1].names().collect::<Vec<_>>(), ["url", "timeout", "tries", "socket"]);
        assert_eq!(tables[1].explanation("tries"), Some("Seconds."));
        assert_eq!(tables[2].explanation("timeout"), Some("Seconds. Of one run."));
        assert_eq!(tables[2].explanation("tries"), Some("Seconds."));
        let examples = tables[1].entries.iter().flat_map(|entry| &entry.keys).map(|key| key.is_example);
        assert_eq!(examples.collect::<Vec<_>>(), [true, false, false, true]);
    }

    #[test]
    fn names_that_are_chosen_are_no_part_of_a_title() {
        for (header, wanted) in [
            ("hosts.names", "hosts.names"),
            ("store.etcd", "store.etcd"),
            ("groups.east", "groups.NAME"),
            ("groups.default", "groups.default"),
            ("groups.east.confirm.tcp.ssh", "groups.NAME.confirm.tcp.NAME"),
            ("api.tokens.portal", "api.tokens.NAME"),
        ] {
            assert_eq!(title(header), wanted);
        }
    }
}
