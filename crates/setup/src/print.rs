//! The commands of pcs and crmsh for the steps. The topology changes in one go: a copy of the configuration is changed
//! and loaded at once, so that no host is without its levels in between.

mod crmsh;
mod pcs;

use std::path::Path;

use pacemaker::cib::Target;

use super::alerter::{ALERTER_META, ALERTER_MONITOR};
use super::devices::{MARK_MONITOR, MARK_PARAMETERS};
use super::model::{Cluster, Operation};
use super::step::Step;
use super::tool::Tool;

/// A command and its purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// Its standard input.
    pub input: Option<String>,
    /// The part of the plan that is done once it has succeeded.
    pub does: Vec<String>,
}

impl Command {
    fn new<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        Self { words: words.into_iter().map(str::to_owned).collect(), input: None, does: Vec::new() }
    }

    /// The command line for a shell.
    pub fn line(&self) -> String {
        let words: Vec<String> = self.words.iter().map(|word| shell(word)).collect();
        match &self.input {
            Some(input) => format!("{} <<'END'\n{input}END", words.join(" ")),
            None => words.join(" "),
        }
    }
}

/// The commands for all these steps: of one tool, except for steps outside of the cluster.
pub fn commands(tool: Tool, cluster: &Cluster, steps: &[Step]) -> Vec<Command> {
    let own = steps.iter().filter_map(command);
    let others: Vec<Step> = steps.iter().filter(|step| command(step).is_none()).cloned().collect();
    let by_tool = match (tool, others.as_slice()) {
        (_, []) => Vec::new(),
        (Tool::Pcs, steps) => pcs::commands(cluster, steps),
        (Tool::Crmsh, steps) => crmsh::commands(cluster, steps),
    };
    own.chain(by_tool).collect()
}

/// The same changes, on a copy of the configuration in a file: crmsh gets it by `CIB_file`.
pub(super) fn on_copy(tool: Tool, cluster: &Cluster, steps: &[Step], file: &Path) -> Vec<Command> {
    match tool {
        Tool::Pcs => pcs::on_copy(cluster, steps, &file.display().to_string()).collect(),
        Tool::Crmsh => crmsh::commands(cluster, steps),
    }
}

/// Removes the files of failed commands: they have passwords in them.
pub fn tidy() {
    let _nothing_there = std::fs::remove_dir_all(pcs::ROOM);
}

/// A word, quoted for a shell.
pub fn shell(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"@%+=:,./-_".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// `name=value` each.
fn settings<'a, T: AsRef<str> + 'a>(pairs: impl IntoIterator<Item = (T, T)>) -> Vec<String> {
    pairs.into_iter().map(|(name, value)| format!("{}={}", name.as_ref(), value.as_ref())).collect()
}

fn owned<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    words.into_iter().map(str::to_owned).collect()
}

/// The interval and time limit of the health monitor, in seconds.
const HEALTH_MONITOR: (u32, u32) = (2, 20);

/// The monitors of a resource.
fn monitors<'a>(cluster: &'a Cluster, resource: &str) -> impl Iterator<Item = &'a Operation> {
    let operations = cluster.resource(resource).into_iter().flat_map(|resource| &resource.operations);
    operations.filter(|operation| operation.name == "monitor")
}

fn mark_settings(hosts: &[String]) -> Vec<String> {
    let list = hosts.join(",");
    settings([("pcmk_host_list", list.as_str())].into_iter().chain(MARK_PARAMETERS))
}

impl Step {
    /// The step, for people.
    pub fn shown(&self) -> String {
        let pairs = |values: &std::collections::BTreeMap<String, String>| settings(values.iter()).join(" ");
        match self {
            Self::MakeKey { file } => {
                let word = shell(file);
                format!(
                    "make the register's key {file}; copy it to every other controller: `scp -p {word} CONTROLLER:{word}`"
                )
            }
            Self::CreateMark { id, hosts } => format!("create the mark device {id} for {}", hosts.join(", ")),
            Self::SetLevels { target, levels } => {
                let levels: Vec<String> = levels.iter().map(|devices| devices.join(" and ")).collect();
                format!("levels of {}: {}", target_shown(target), levels.join(", else "))
            }
            Self::SetParameters { resource, values } | Self::SetMeta { resource, values } => {
                format!("set {} on {resource}", pairs(values))
            }
            Self::AddMonitor { resource, interval, .. } => format!("monitor {resource} every {interval} s"),
            Self::CreateAlerter { id, .. } => format!("create the alerter {id}, for controllers alone"),
            Self::KeepToControllers { resource, .. } => format!("keep {resource} to controllers"),
            Self::SetAlert { id, path, .. } => format!("have the alert {id} run {path}"),
            Self::SetProperties(values) => format!("set {}", pairs(values)),
            Self::CreateHealth { id } => format!("create {id}, which observes each compute host"),
            Self::FenceUnhealthy { resource, now } => {
                let now = if now.is_empty() { "none".to_owned() } else { now.join(", ") };
                format!(
                    "have Pacemaker fence hosts that fail their health check ({resource}); it would fence at this moment: {now}. The agents start again, so each of these must be well once before"
                )
            }
        }
    }
}

fn target_shown(target: &Target) -> String {
    match target {
        Target::Name(name) => name.clone(),
        Target::Pattern(text) => format!("nodes like {text}"),
        Target::Attribute { name, value } => format!("nodes with {name}={value}"),
    }
}

/// `None` for any other step.
fn command(step: &Step) -> Option<Command> {
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

    #[test]
    fn words_are_quoted_as_a_shell_wants_them() {
        let words = ["pcmk_host_list=a,b", "#kind", "regexp%^c(1|2)$", "it's", ""].map(shell);
        assert_eq!(words, ["pcmk_host_list=a,b", "'#kind'", "'regexp%^c(1|2)$'", r"'it'\''s'", "''"]);
    }

    #[test]
    fn what_is_read_stands_behind_its_command() {
        let command = Command { input: Some("a\nb\n".into()), ..Command::new(["crm", "x", "-"]) };
        assert_eq!(command.line(), "crm x - <<'END'\na\nb\nEND");
    }

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
