//! Second stage: all files merged into one tree, each value with its place.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::fragments::Fragment;
use crate::problem::Place;

/// A table, merged key by key from every file that has a part of it.
#[derive(Debug)]
pub struct Table<'a> {
    /// Where it first appears.
    pub place: Place<'a>,
    /// Its keys.
    pub entries: BTreeMap<&'a str, Setting<'a>>,
}

/// Everything under one key.
#[derive(Debug)]
pub struct Setting<'a> {
    /// Where the key first appears.
    pub key: Place<'a>,
    /// Its plain values in the order of the files: the last one counts, but all must be valid.
    pub values: Vec<Value<'a>>,
    /// Its tables, merged.
    pub table: Option<Table<'a>>,
}

/// A plain value.
#[derive(Debug)]
pub struct Value<'a> {
    /// Its place.
    pub place: Place<'a>,
    /// The value.
    pub value: &'a DeValue<'a>,
    /// The tables of a list, in order.
    pub tables: Vec<Table<'a>>,
}

impl<'a> Table<'a> {
    fn empty(place: Place<'a>) -> Self {
        Self { place, entries: BTreeMap::new() }
    }

    fn add(&mut self, more: &'a DeTable<'a>, fragment: &'a Fragment<'a>) {
        for (key, value) in more {
            let place = |offset| Place { source: fragment.source, offset };
            let key_place = place(key.span().start);
            let new = || Setting { key: key_place, values: Vec::new(), table: None };
            let entry = self.entries.entry(key.get_ref().as_ref()).or_insert_with(new);
            match value.get_ref() {
                DeValue::Table(table) => {
                    entry.table.get_or_insert_with(|| Table::empty(key_place)).add(table, fragment);
                }
                plain => entry.values.push(Value {
                    place: place(value.span().start),
                    value: plain,
                    tables: tables(plain, fragment),
                }),
            }
        }
    }
}

fn tables<'a>(list: &'a DeValue<'a>, fragment: &'a Fragment<'a>) -> Vec<Table<'a>> {
    let items = list.as_array().into_iter().flatten();
    let table = |item: &'a Spanned<DeValue<'a>>| {
        let place = Place { source: fragment.source, offset: item.span().start };
        let mut table = Table::empty(place);
        table.add(item.get_ref().as_table()?, fragment);
        Some(table)
    };
    items.filter_map(table).collect()
}

/// Merges the files in order. `start` is the place of the configuration as a whole.
pub(crate) fn merge<'a>(fragments: &'a [Fragment<'a>], start: Place<'a>) -> Table<'a> {
    let mut root = Table::empty(start);
    for fragment in fragments {
        root.add(&fragment.table, fragment);
    }
    root
}
