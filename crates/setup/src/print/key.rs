//! The command that makes the register's key: it runs in a shell, since it does not concern the cluster.

use super::{Command, shell};
use crate::step::Step;

/// `None` for any other step.
pub(super) fn command(step: &Step) -> Option<Command> {
    let Step::MakeKey { file } = step else { return None };
    Some(Command { input: Some(script(file)), does: vec![step.shown()], ..Command::new(["sh"]) })
}

/// An existing file stays (`-C`), and the file is never made with half a key.
fn script(file: &str) -> String {
    format!(
        r#"set -Ce
umask 077
key=$(od -An -vtx1 -N32 /dev/urandom | tr -d ' \n')
test ${{#key}} = 64
printf '%s\n' '# The key of the register: the same file on every controller.' "$key" > {}
"#,
        shell(file)
    )
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use crate::run::run;

    use super::*;

    /// The broken variants: a file that others can read, the same key twice, a key that is overwritten.
    #[test]
    fn a_key_is_made_for_its_owner_alone_and_never_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let file = dir.path().join(name);
            let ran = run(&[command(&Step::MakeKey { file: file.display().to_string() }).unwrap()], |_| {});
            (fs::read_to_string(&file).unwrap(), fs::metadata(&file).unwrap().permissions().mode(), ran)
        };
        let (text, mode, ran) = make("a key");
        let secret = text.lines().nth(1).unwrap();
        assert!(text.starts_with("# ") && text.lines().count() == 2 && mode & 0o777 == 0o600, "{mode:o}");
        assert!(secret.len() == 64 && secret.bytes().all(|byte| byte.is_ascii_hexdigit()), "{secret}");
        assert!(ran.failed.is_none() && ran.sentence().contains("scp -p "), "{}", ran.sentence());
        assert_ne!(make("other").0, text);
        let (again, _, ran) = make("a key");
        assert!(again == text && ran.failed.is_some());
    }
}
