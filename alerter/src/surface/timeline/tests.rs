use std::time::Duration;

use marks::delivery::State;

use super::*;
use crate::surface::markup::sent;

const FROM: Timestamp = Timestamp(1_800_000_000_000);
const DAY: Duration = Duration::from_secs(86_400);

fn now() -> Timestamp {
    FROM + DAY * 7
}

fn minutes(number: u64) -> Timestamp {
    FROM + Duration::from_secs(60 * number)
}

fn acknowledged(host: &str, at: Timestamp) -> Episode {
    let end = at + Duration::from_secs(4);
    Episode {
        host: host.into(),
        failed: at,
        marked: at,
        acknowledged: vec![("recovery".into(), end)],
        held: Vec::new(),
        settled: Some(end),
        state: State::Acknowledged,
    }
}

fn drawn(episodes: &[Episode]) -> String {
    sent(Timeline::of(episodes, FROM, now()))
}

fn count(picture: &str, part: &str) -> usize {
    picture.matches(part).count()
}

#[test]
fn a_bar_goes_from_fencing_to_settlement() {
    let picture = drawn(&[acknowledged("compute1", FROM + DAY)]);
    assert!(
        picture.contains("<rect class=\"bar acknowledged\" x=\"15.000%\" y=\"40\" width=\"0.010%\""),
        "{picture}"
    );
    assert!(picture.contains(
        "<title>compute1: fenced 2027-01-16 08:00:00Z, marked after 0 ms; route recovery acknowledged after 4 s; settled (acknowledged) after 4 s</title>"
    ), "{picture}");
    assert!(picture.contains("recovery acknowledged</text>") && picture.contains("acknowledged in 4 s"));
    assert!(
        picture
            .contains("role=\"img\" aria-label=\"Outages: 1, open: 0, hosts: 1, from 2027-01-15 08:00:00Z")
    );
}

/// What is open goes on until now, and what was held is hatched. The broken variant is the same one settled.
#[test]
fn what_is_open_goes_on_until_now_and_what_was_held_is_hatched() {
    let open = Episode {
        settled: None,
        state: State::Held,
        acknowledged: Vec::new(),
        held: vec![(minutes(1440), None)],
        ..acknowledged("compute1", FROM + DAY)
    };
    let picture = drawn(std::slice::from_ref(&open));
    assert!(
        picture.contains("<rect class=\"bar held\" x=\"15.000%\" y=\"40\" width=\"84.000%\""),
        "{picture}"
    );
    assert_eq!(count(&picture, "class=\"hatched\" x=\"15.000%\" y=\"40\" width=\"84.000%\""), 1);
    assert!(picture.contains("held for 6 d, still; still open (held)"), "{picture}");
    let settled = Episode { settled: Some(minutes(1441)), state: State::Acknowledged, ..open };
    assert!(!drawn(&[settled]).contains("84.000%"));
}

/// The longest open comes first, then the most recent ones.
#[test]
fn what_is_open_stands_above_what_is_recent() {
    let old = Episode { settled: None, state: State::Parked, ..acknowledged("old-open", FROM - DAY * 30) };
    let young = Episode { settled: None, ..acknowledged("young-open", minutes(3)) };
    let episodes = [
        acknowledged("early", minutes(1)),
        acknowledged("late", minutes(2)),
        young,
        old,
        acknowledged("gone", FROM - DAY),
    ];
    let picture = drawn(&episodes);
    let at = |host: &str| picture.find(&format!("</title>{host}<")).unwrap_or(usize::MAX);
    assert!(at("old-open") < at("young-open") && at("young-open") < at("late"));
    assert!(at("late") < at("early") && at("early") < usize::MAX);
    assert!(!picture.contains("gone"), "it ended before the axis begins");
    assert!(
        picture.contains("<rect class=\"bar parked\" x=\"1.000%\" y=\"40\" width=\"98.000%\""),
        "{picture}"
    );
}

/// However many there are: what is left out is counted.
#[test]
fn what_is_drawn_is_bounded_and_says_what_is_left_out() {
    let many: Vec<Episode> =
        (0..100_000).map(|n| acknowledged(&format!("compute{}", n % 1000), minutes(n % 10_000))).collect();
    let picture = drawn(&many);
    assert!(picture.len() < 200_000, "{}", picture.len());
    assert_eq!(count(&picture, "class=\"row\""), 20);
    assert_eq!(count(&picture, "class=\"outage\""), 20 * 24);
    assert!(picture.contains("980 more hosts, 98000 outages, 0 open"), "{picture}");
    assert!(picture.contains(" and 76 older</tspan>"));
    let routes = (0..50).map(|n| (format!("route{n}"), minutes(n))).collect();
    let picture = drawn(&[Episode { acknowledged: routes, ..acknowledged("compute1", minutes(1)) }]);
    assert!(picture.contains("42 more routes acknowledged") && picture.contains("and 42 more routes"));
}

/// The broken variant is a picture made by joining texts.
#[test]
fn nothing_from_outside_becomes_markup() {
    let hostile = "<script>alert(1)</script>\"'&\u{7}";
    let mut episode = acknowledged(hostile, minutes(1));
    episode.acknowledged[0].0 = hostile.into();
    let picture = drawn(&[episode]);
    assert!(!picture.contains("<script") && !picture.contains("\"'") && !picture.contains('\u{7}'));
    assert!(picture.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(!picture.contains("style="), "a strict policy would drop it");
}

#[test]
fn no_time_is_too_odd() {
    for (from, to) in [(0, 0), (5, 1), (i64::MIN, i64::MAX), (0, i64::MAX), (i64::MAX, i64::MAX)] {
        let episodes = [acknowledged("compute1", Timestamp(from)), acknowledged("compute2", Timestamp(to))];
        let picture = sent(Timeline::of(&episodes, Timestamp(from), Timestamp(to)));
        assert!(picture.len() < 100_000 && !picture.contains("NaN"), "{from} {to}");
    }
    assert!(drawn(&[]).contains("no outage in this time"));
}
