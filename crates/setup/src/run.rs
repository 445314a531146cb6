//! Runs the commands one after the other, and stops at the first failure.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Output, Stdio};
use std::thread;

use pacemaker::child::{self, Failure};

use super::print::Command;

/// The result of running commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// The parts of the plan that are done.
    pub done: Vec<String>,
    /// The parts that are not.
    pub left: Vec<String>,
    /// The failed command, and the reason.
    pub failed: Option<(String, String)>,
}

impl Ran {
    /// One sentence.
    pub fn sentence(&self) -> String {
        let list = |what: &[String]| if what.is_empty() { "nothing".to_owned() } else { what.join("; ") };
        match &self.failed {
            None => format!("Done: {}.", list(&self.done)),
            Some((command, why)) => {
                format!(
                    "`{command}` failed: {why}; done: {}; not done: {}.",
                    list(&self.done),
                    list(&self.left)
                )
            }
        }
    }
}

/// Runs all of them; `report` is called before each.
pub fn run(commands: &[Command], mut report: impl FnMut(&Command)) -> Ran {
    let mut ran = Ran::default();
    for command in commands {
        if ran.failed.is_some() {
            ran.left.extend(command.does.iter().cloned());
            continue;
        }
        report(command);
        match one(command, None) {
            Ok(()) => ran.done.extend(command.does.iter().cloned()),
            Err(why) => {
                ran.failed = Some((command.words.join(" "), why));
                ran.left.extend(command.does.iter().cloned());
            }
        }
    }
    ran
}

/// Runs all of them on a copy of the configuration; returns the failed one with the reason.
pub(super) fn run_on_copy(commands: &[Command], file: &Path) -> Result<(), String> {
    let failed =
        |command: &Command, why: String| format!("`{}` fails on a copy: {why}", command.words.join(" "));
    commands.iter().try_for_each(|command| one(command, Some(file)).map_err(|why| failed(command, why)))
}

fn one(command: &Command, copy: Option<&Path>) -> Result<(), String> {
    let output = output(command, copy).map_err(|e| e.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(Failure::new(output.status, &output.stderr, &output.stdout).to_string())
}

fn output(command: &Command, copy: Option<&Path>) -> io::Result<Output> {
    let (program, arguments) = command.words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut started = child::cluster_tool(program.as_ref());
    started.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    started.envs(copy.map(|file| ("CIB_file", file)));
    let mut running = started.spawn()?;
    let (input, pipe) = (command.input.clone().unwrap_or_default(), running.stdin.take());
    // In parallel with reading its output: it may print much before it has read everything.
    let writer = thread::spawn(move || pipe.map_or(Ok(()), |mut pipe| pipe.write_all(input.as_bytes())));
    let output = running.wait_with_output()?;
    // It may ignore the rest.
    let _unread = writer.join();
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(script: &str, does: &str, input: Option<&str>) -> Command {
        let words = ["sh", "-c", script].map(str::to_owned).to_vec();
        Command { words, input: input.map(str::to_owned), does: vec![does.to_owned()] }
    }

    /// After the first failure nothing is run, and the rest is reported.
    #[test]
    fn the_first_failure_ends_it() {
        let dir = tempfile::tempdir().unwrap();
        let note = dir.path().join("note");
        let write = |word: &str| format!("echo {word} >> {}", note.display());
        let commands = [
            command(&write("one"), "a", None),
            command("echo first; echo why it is >&2; exit 3", "b", None),
            command(&write("three"), "c", None),
        ];
        let mut reported = 0;
        let ran = run(&commands, |_| reported += 1);
        assert_eq!(std::fs::read_to_string(&note).unwrap(), "one\n");
        assert_eq!(
            (ran.done.as_slice(), ran.left.as_slice(), reported),
            (&["a".to_owned()][..], &["b".to_owned(), "c".to_owned()][..], 2)
        );
        let said = ran.sentence();
        assert!(said.ends_with("failed: why it is (exit status: 3); done: a; not done: b; c."), "{said}");
    }

    #[test]
    fn a_command_reads_what_it_is_given() {
        let ran = run(
            &[
                command("test \"$(cat)\" = x", "a", Some("x\n")),
                command("exit 0", "b", Some(&"x".repeat(1 << 20))),
            ],
            |_| {},
        );
        assert_eq!(ran.sentence(), "Done: a; b.");
        let none = Command { words: vec!["/nonexistent".into()], input: None, does: vec!["a".into()] };
        assert!(run(&[none], |_| {}).failed.is_some());
    }
}
