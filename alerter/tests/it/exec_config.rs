//! `[exec.NAME]`: what is read, and what is said of each mistake.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use alerter::config;

use crate::config::Site;

/// The problems of a configuration with this route, without the file's name; `DIR` stands for a directory with an
/// executable `tool`.
fn problems(route: &str) -> Vec<String> {
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    let place = dir.path().to_str().unwrap();
    let (file, tool) = (dir.path().join("alerter.toml"), dir.path().join("tool"));
    fs::write(&tool, "#!/bin/sh\n").unwrap();
    fs::write(&file, format!("[exec.a]\n{}", route.replace("DIR", place))).unwrap();
    for (path, mode) in [(&file, 0o644), (&tool, 0o755)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let Err(problems) = config::load(&file) else { return Vec::new() };
    let file = format!("{}:", file.display());
    problems.to_string().lines().map(|line| line.replace(&file, "")).collect()
}

#[test]
fn a_route_is_shown_without_its_arguments() {
    let settings = Site::new("[exec.a]\ncommand = [\"/bin/sh\", \"s3kr1t\"]\n").settings();
    let driver = &settings.routes[0].driver;
    assert_eq!((driver.about().kind, driver.about().endpoint.as_str()), ("exec", "/bin/sh"));
    assert!(!format!("{driver:?}").contains("s3kr1t"));
}

/// S1-45, S1-48: each mistake has its sentence, and nothing of an argument stands in one.
#[test]
fn each_mistake_has_its_sentence() {
    let sh = "command = [\"/bin/sh\", \"s3kr1t\"]\n";
    let bad_start = "2:11: must begin with the absolute path of a program: there is no search path";
    for (route, expected) in [
        ("", "1:7: [exec.a] has no command: set it to a program and its arguments"),
        ("command = []", bad_start),
        ("command = [\"sh\", \"s3kr1t\"]", bad_start),
        ("command = [\"/bin/sh\", \"s3kr1t\\u0000\"]", "2:23: a program cannot be given a zero byte"),
        (
            "command = [\"/nonexistent/s\", \"s3kr1t\"]",
            "2:11: the program cannot be used: it cannot be read: No such file or directory",
        ),
        ("command = [\"/etc\"]", "2:11: the program cannot be used: it is not a plain file"),
        (
            "command = [\"/etc/passwd\"]",
            "2:11: the program cannot be used: it cannot be executed: run `chmod +x /etc/passwd`",
        ),
        (
            &format!("{sh}url = \"https://s3kr1t/\""),
            "3:1: unknown key url in [exec.a]; known are: hosts, groups, required, after, after-limit, if-returned, stale-after, command, timeout, at-once, time-format, when-returned",
        ),
    ] {
        assert_eq!(problems(route), [expected], "{route}");
    }
}

/// A user who can change the program could acknowledge every mark. `/tmp` belongs to everybody.
#[test]
fn a_program_that_others_could_replace_is_refused() {
    let found = problems("command = [\"DIR/tool\", \"s3kr1t\"]");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("2:11: the program cannot be used: everybody may put files into /"),
        "{found:?}"
    );
}
