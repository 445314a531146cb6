//! The CIBs of clusters of each release at the moments that matter for a host, recorded from them.

use super::Cib;
use marks::host::HostName;

const RELEASES: [(&str, &str); 5] = [
    ("2.0.5", include_str!("recorded/2.0.5.txt")),
    ("2.1.5", include_str!("recorded/2.1.5.txt")),
    ("2.1.10", include_str!("recorded/2.1.10.txt")),
    ("3.0.0", include_str!("recorded/3.0.0.txt")),
    ("3.0.3", include_str!("recorded/3.0.3.txt")),
];

fn moments(text: &str) -> impl Iterator<Item = (&str, Cib)> {
    text.split("== ").skip(1).map(|part| {
        let (name, xml) = part.split_once('\n').unwrap();
        (name, Cib::parse(xml).unwrap())
    })
}

/// The broken variant reads `in_ccm` on each release: then no host of 3.x is a member.
#[test]
fn every_release_says_who_is_a_member() {
    let (failed, alive) = (HostName::parse("compute1").unwrap(), HostName::parse("compute2").unwrap());
    for (release, text) in RELEASES {
        let mut names = Vec::new();
        for (moment, cib) in moments(text) {
            let membership = cib.membership(if moment == "confirmed-but-alive" { &alive } else { &failed });
            let is_right = match moment {
                "connected" | "back" => membership == Some(true),
                // An unknown state proves nothing, and causes nothing.
                "cleaned-up" => membership != Some(false),
                _ => membership != Some(true),
            };
            assert!(is_right, "{release}, {moment}: {membership:?}");
            assert_eq!(cib.untried_release(), None, "{release}");
            names.push(moment);
        }
        assert_eq!(names, ["connected", "fenced", "back", "cleaned-up", "confirmed-but-alive"], "{release}");
    }
}

/// The file's number, also if a distribution adds to it.
#[test]
fn every_release_says_which_it_is() {
    for (release, text) in RELEASES {
        for (_, cib) in moments(text) {
            let said = cib.release().unwrap().map(|number| number.to_string()).join(".");
            assert_eq!(said, release);
        }
    }
}
