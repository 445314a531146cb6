use marks::register::Entry;

use super::*;
use crate::tests::sample_entries;

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
        let text = text_of((&key.to_string(), &entry.value()), prefix, (part, wrote));
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
    let ours = keys("ours");
    let text = text_of((&end.key().to_string(), &end.value()), PREFIX, (Part::Alerter, &ours));
    let (_, seal) = parts(&text);
    let moved = format!("{}{SEPARATOR}{seal}", fencing.value());
    let read = read(vec![(fencing.key().to_string(), moved)], PREFIX, &ours);
    assert!(read.sealed.is_empty() && read.unsealed.len() == 1);
    assert!(text.len() - end.value().len() <= 32);
}
