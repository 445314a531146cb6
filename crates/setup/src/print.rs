//! The commands of pcs and crmsh for the steps. The topology changes in one go: a copy of the configuration is changed
//! and loaded at once, so that no host is without its levels in between.

mod crmsh;
mod key;
mod pcs;

use std::path::Path;

use pacemaker::cib::Target;

use super::alerter::{ALERTER_META, ALERTER_MONITOR};
use super::devices::{MARK_MONITOR, MARK_PARAMETERS};
use super::model::Cluster;
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

impl Command {
    /// On one line: a tool's input is put behind `crm configure`.
    fn typed(&self) -> String {
        match &self.input {
            Some(input) => format!("crm configure {}", input.trim().replace("#kind", "'#kind'")),
            None => self.line(),
        }
    }
}

/// The commands for all these steps: of one tool, except for steps outside of the cluster.
pub fn commands(tool: Tool, cluster: &Cluster, steps: &[Step]) -> Vec<Command> {
    let own = steps.iter().filter_map(key::command);
    let others: Vec<Step> = steps.iter().filter(|step| key::command(step).is_none()).cloned().collect();
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

/// The command line for one step alone.
pub fn advice(tool: Tool, cluster: &Cluster, step: &Step) -> String {
    let commands = match tool {
        Tool::Pcs => pcs::at_once(cluster, step),
        Tool::Crmsh => crmsh::commands(cluster, std::slice::from_ref(step)),
    };
    let lines: Vec<String> = commands.iter().map(|command| format!("`{}`", command.typed())).collect();
    lines.join(", then ")
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
            Self::Enable { resource } => format!("enable {resource}"),
            Self::Unconstrain { id } => format!("remove the constraint {id}"),
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

#[cfg(test)]
mod tests {
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
}
