//! Seals in etcd: each entry has a key of its own there, and its seal is behind its value.

use marks::register::pages::Part;
use marks::register::{Entries, Entry, Key, SealKeys, Unsealed};

/// The separator before the seal: no value of an entry has it.
const SEPARATOR: char = '|';
/// The length of a seal with its separator.
pub(super) const LENGTH: usize = 32;

/// The value of an entry, with its seal if there is a key.
pub(super) fn write(entry: &Entry, prefix: &str, (part, keys): (Part, &SealKeys)) -> String {
    let value = entry.value();
    match keys.seal(&place(part, prefix, &entry.key().to_string()), &value) {
        Some(seal) => format!("{value}{SEPARATOR}{seal}"),
        None => value,
    }
}

/// A value and its seal.
pub(super) fn parts(text: &str) -> (&str, &str) {
    text.split_once(SEPARATOR).unwrap_or((text, ""))
}

/// The entries of these keys and values.
pub(super) fn read(values: Vec<(String, String)>, prefix: &str, keys: &SealKeys) -> Entries {
    let mut entries = Entries::default();
    for (key, text) in values {
        let (value, seal) = parts(&text);
        entries.take(&key, value);
        let Some(known) = Key::parse(&key).filter(|known| entries.sound.contains_key(known)) else {
            continue;
        };
        let opens = |part| keys.opens(&place(part, prefix, &key), value, seal);
        // An alerter has read the fencing that it sealed elsewhere: only the agent's own seal proves it.
        let part = if matches!(known, Key::Fencing(_)) { Part::Agent } else { Part::Alerter };
        if opens(part) {
            entries.sealed.insert(known);
        } else if !keys.is_empty() && !Part::ALL.into_iter().any(opens) {
            entries.unsealed.insert(known, Unsealed::Unknown);
        }
    }
    entries
}

/// The seal of one entry is invalid in another cluster's directory, and an alerter's for an agent's.
fn place(part: Part, prefix: &str, key: &str) -> String {
    format!("{};{prefix}{key}", part.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::register::tests::sample_entries;

    const PREFIX: &str = "/nova-host-alerter/east/";

    fn keys(secret: &str) -> SealKeys {
        SealKeys::derive([secret.as_bytes()])
    }

    /// A fencing, and the end of a mark.
    fn samples() -> [Entry; 2] {
        let all = sample_entries();
        let one = |is: fn(&Entry) -> bool| all.iter().find(|entry| is(entry)).unwrap().clone();
        [one(|entry| matches!(entry, Entry::Fencing(_))), one(|entry| matches!(entry, Entry::Settled(_)))]
    }

    /// For a fencing and an end, each written by this part: whether it is sealed, and whether it does not count.
    fn read_back(part: Part, prefix: &str, (wrote, reads): (&SealKeys, &SealKeys)) -> [(bool, bool); 2] {
        samples().map(|entry| {
            let key = entry.key();
            let text = write(&entry, prefix, (part, wrote));
            let read = read(vec![(key.to_string(), text)], PREFIX, reads);
            assert_eq!(read.sound.get(&key), Some(&entry));
            (read.sealed.contains(&key), read.unsealed.contains_key(&key))
        })
    }

    /// S1-16: the broken variants trust an alerter's copy of a fencing, and an entry of another prefix.
    #[test]
    fn each_part_seals_what_it_vouches_for() {
        let (ours, others, none) = (keys("ours"), keys("others"), SealKeys::default());
        let (agent, alerter) = (Part::Agent, Part::Alerter);
        assert_eq!(read_back(agent, PREFIX, (&ours, &ours))[0], (true, false));
        assert_eq!(read_back(alerter, PREFIX, (&ours, &ours)), [(false, false), (true, false)]);
        for wrote in [&others, &none] {
            assert_eq!(read_back(alerter, PREFIX, (wrote, &ours)), [(false, true); 2]);
        }
        assert_eq!(read_back(alerter, "/other/", (&ours, &ours)), [(false, true); 2]);
        assert_eq!(read_back(alerter, PREFIX, (&ours, &none)), [(false, false); 2], "they are alike");
    }

    #[test]
    fn a_seal_does_for_no_other_entry() {
        let [fencing, end] = samples();
        let (text, ours) = (write(&end, PREFIX, (Part::Alerter, &keys("ours"))), keys("ours"));
        let (_, seal) = parts(&text);
        let moved = format!("{}{SEPARATOR}{seal}", fencing.value());
        let read = read(vec![(fencing.key().to_string(), moved)], PREFIX, &ours);
        assert!(read.sealed.is_empty() && read.unsealed.len() == 1);
        assert!(text.len() - end.value().len() <= LENGTH);
    }
}
