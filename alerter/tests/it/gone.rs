//! What the configuration had once: it is refused, and the message names what serves instead.

use site::GONE;

use crate::config::Site;

/// S0-46. The broken variant, the list of the known keys, leaves it to the reader to guess what serves instead.
#[test]
fn what_is_gone_is_refused_with_what_serves_instead() {
    let patterns = GONE.iter().flat_map(|(paths, instead)| paths.split(' ').map(move |path| (path, instead)));
    for (pattern, instead) in patterns {
        let parts = pattern.split('.').map(|part| part.split('|').next().unwrap());
        let path = parts.collect::<Vec<_>>().join(".").replace('*', "one");
        let text = match path.rsplit_once('.') {
            Some((section, key)) => format!("[{section}]\n{key} = 1\n"),
            None => format!("[{path}.one]\n"),
        };
        let said = Site::new(&format!("{text}[http.recovery]\nurl = \"https://h/\"\n")).problems().join("\n");
        let wanted = format!("{path} is gone: {instead}");
        assert!(said.lines().any(|line| line.ends_with(&wanted)), "{path}: {said}");
    }
}
