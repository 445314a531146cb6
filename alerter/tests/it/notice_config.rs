//! `[notice.NAME]`: what is read of it, and what is said of what is wrong.

use alerter::config::NoticeWay;

use crate::config::Site;

const ROUTE: &str = "[http.recovery]\nurl = \"http://127.0.0.1:8080/\"\n";

/// The problems of a target that has these keys, without the file's name.
fn problems(title: &str, keys: &str) -> Vec<String> {
    let found = Site::new(&format!("[notice.{title}]\n{keys}\n{ROUTE}")).problems();
    found.into_iter().map(|problem| problem.trim_start_matches("alerter.toml:").to_owned()).collect()
}

#[test]
fn a_target_is_the_log_or_goes_through_a_driver() {
    let site = Site::new(&format!(
        "{ROUTE}[notice.log]\nto = \"syslog\"\n[notice.oncall]\nto = \"http\"\nurl = \"https://oncall.example/x\"\ntimeout = 5\n\
         [notice.recovery]\nto = \"exec\"\ncommand = [\"/bin/true\"]\n"
    ));
    let targets = site.settings().notices;
    let shown: Vec<String> = targets
        .iter()
        .map(|target| match &target.way {
            NoticeWay::Syslog => format!("{} log", target.name),
            NoticeWay::Driver(driver) => format!("{} {} {}", target.name, driver.kind(), driver.endpoint()),
        })
        .collect();
    assert_eq!(shown, ["log log", "oncall http https://oncall.example/x", "recovery exec /bin/true"]);
    assert!(Site::new(ROUTE).settings().notices.is_empty());
}

/// S1-48: each problem at its place, with what to do.
#[test]
fn what_makes_no_sense_for_a_notice_is_refused() {
    let url = "to = \"http\"\nurl = \"https://oncall.example/\"\n";
    for (keys, expected) in [
        ("", "1:9: [notice.a] has no to: set to = \"syslog\", \"http\" or \"exec\""),
        (
            "to = \"sislog\"",
            "2:6: unknown word; did you mean \"syslog\"? Known are: \"syslog\", \"http\", \"exec\"",
        ),
        ("to = 1", "2:6: must be text in quotes, not a whole number"),
        (
            "to = \"syslog\"\nurl = \"https://oncall.example/\"",
            "3:1: unknown key url in [notice.a]; known are: to",
        ),
        (&format!("{url}body = \"doctor\""), "4:8: a notice has a form of its own: remove body"),
        (
            &format!("{url}time-format = \"rfc3339\""),
            "4:15: a notice has a form of its own: remove time-format",
        ),
        (&format!("{url}extensions = true"), "4:14: a notice has a form of its own: remove extensions"),
        (
            &format!("{url}when-returned = \"notify\""),
            "4:17: a notice has a form of its own: remove when-returned",
        ),
        (
            "to = \"exec\"\ncommand = [\"sh\"]",
            "3:11: must begin with the absolute path of a program: there is no search path",
        ),
    ] {
        assert_eq!(problems("a", keys), [expected], "{keys}");
    }
    for key in ["hosts = [\"compute*\"]", "required = false", "groups = [\"east\"]"] {
        let found = problems("a", &format!("{url}{key}"));
        assert!(found.len() == 1 && found[0].starts_with("4:1: unknown key "), "{key}: {found:?}");
    }
    let url_is_missing = problems("a", "to = \"http\"");
    assert!(url_is_missing.len() == 1 && url_is_missing[0].contains("has no url"), "{url_is_missing:?}");
    assert_eq!(
        problems("\"a b\"", "to = \"syslog\""),
        ["1:9: the name of a target must be 1 to 64 letters, digits, '-' or '_'"]
    );
    let found = Site::new(&format!("{ROUTE}[notice]\nto = \"syslog\"\n")).problem();
    assert_eq!(
        found,
        "alerter.toml:4:6: notice.to must be inside a target: write [notice.NAME], one table for each"
    );
}
