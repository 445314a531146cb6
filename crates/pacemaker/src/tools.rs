//! The cluster's tools, each run with the remaining time.

use std::path::PathBuf;
use std::time::Instant;

use crate::child::{self, ChildError};
use crate::cib::releases::{NO_QUORUM, NOT_CONNECTED, NOTHING_FOUND};

/// The longest output. A CIB of a thousand nodes has about a tenth of it, ten thousand entries less.
pub const OUTPUT_MAX: usize = 64 << 20;

/// What the use of a tool returned.
pub type Done<T = ()> = Result<T, ToolError>;

/// Why a tool of the cluster gave nothing. The message never shows what was read.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// It failed.
    #[error("{}", of_tool(tool, source))]
    Failed {
        /// Its name.
        tool: &'static str,
        /// What happened.
        source: ChildError,
    },
    /// It printed something unexpected.
    #[error("the output of {tool} cannot be read: check Pacemaker on this controller")]
    Unreadable {
        /// Its name.
        tool: &'static str,
    },
}

fn of_tool(tool: &str, why: &ChildError) -> String {
    let said = why.to_string();
    let said = if said.starts_with(tool) { said } else { format!("{tool}: {said}") };
    match why.code() {
        Some(NOT_CONNECTED) => format!("Pacemaker does not run here, or does not answer: start it ({said})"),
        _ => format!("{said}; check Pacemaker on this controller"),
    }
}

impl ToolError {
    /// A stable machine word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Failed { .. } => "tool",
            Self::Unreadable { .. } => "unreadable",
        }
    }
}

/// The paths of Pacemaker's tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tools {
    /// Reads and writes attributes.
    pub attrd_updater: PathBuf,
    /// Reads and writes the CIB.
    pub cibadmin: PathBuf,
    /// Shows quorum.
    pub crm_node: PathBuf,
    /// Shows the fencing history.
    pub stonith_admin: PathBuf,
}

impl Default for Tools {
    fn default() -> Self {
        Self {
            attrd_updater: "/usr/sbin/attrd_updater".into(),
            cibadmin: "/usr/sbin/cibadmin".into(),
            crm_node: "/usr/sbin/crm_node".into(),
            stonith_admin: "/usr/sbin/stonith_admin".into(),
        }
    }
}

/// A tool by its name in messages.
#[derive(Clone, Copy)]
pub enum Tool {
    /// Attributes.
    AttrdUpdater,
    /// The CIB.
    Cibadmin,
    /// Quorum.
    CrmNode,
    /// Fencing.
    StonithAdmin,
}

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Self::AttrdUpdater => "attrd_updater",
            Self::Cibadmin => "cibadmin",
            Self::CrmNode => "crm_node",
            Self::StonithAdmin => "stonith_admin",
        }
    }

    /// Its output is no such thing.
    pub fn unreadable(self) -> ToolError {
        ToolError::Unreadable { tool: self.name() }
    }
}

impl Tools {
    /// Whether this partition of the cluster has quorum.
    ///
    /// # Errors
    /// [`ToolError::Failed`] and [`ToolError::Unreadable`]: it is unknown.
    pub fn quorum(&self, deadline: Instant) -> Done<bool> {
        let said = self.run(Tool::CrmNode, &["--quorum".to_owned()], &[NO_QUORUM], deadline)?;
        match said.as_deref().map(str::trim) {
            Ok("1") => Ok(true),
            Ok("0") | Err(_) => Ok(false),
            Ok(_) => Err(Tool::CrmNode.unreadable()),
        }
    }

    /// What an XPath expression finds in the local CIB, with all that is in it; empty where it finds nothing.
    ///
    /// # Errors
    /// [`ToolError::Failed`] and [`ToolError::Unreadable`].
    pub fn parts(&self, path: &str, deadline: Instant) -> Done<String> {
        self.query(&["--xpath", path], deadline)
    }

    /// The same without the children of what is found.
    ///
    /// # Errors
    /// As [`Self::parts`].
    pub fn heads(&self, path: &str, deadline: Instant) -> Done<String> {
        self.query(&["--xpath", path, "--no-children"], deadline)
    }

    /// An answer of `cibadmin` that is no CIB.
    pub(crate) fn cib_unreadable() -> ToolError {
        Tool::Cibadmin.unreadable()
    }

    /// What `cibadmin` finds in the local CIB with these arguments.
    pub(crate) fn query(&self, what: &[&str], deadline: Instant) -> Done<String> {
        let arguments = ["--query", "--local"].into_iter().chain(what.iter().copied());
        let arguments: Vec<String> = arguments.map(str::to_owned).collect();
        let answer = self.run(Tool::Cibadmin, &arguments, &[NOTHING_FOUND], deadline)?;
        Ok(answer.unwrap_or_default())
    }

    /// The fencers' whole history, as XML.
    ///
    /// # Errors
    /// [`ToolError::Failed`] and [`ToolError::Unreadable`].
    pub fn history(&self, deadline: Instant) -> Done<String> {
        let (tool, words) = (Tool::StonithAdmin, ["--history", "*", "--verbose", "--output-as=xml"]);
        self.run(tool, &words.map(str::to_owned), &[], deadline)?.map_err(|_unexpected| tool.unreadable())
    }

    /// Runs a tool. An inner `Err` has the exit code if it failed with one of `expected`.
    ///
    /// # Errors
    /// [`ToolError`]
    pub fn run(
        &self,
        tool: Tool,
        arguments: &[String],
        expected: &[i32],
        deadline: Instant,
    ) -> Done<Result<String, i32>> {
        let program = match tool {
            Tool::AttrdUpdater => &self.attrd_updater,
            Tool::Cibadmin => &self.cibadmin,
            Tool::CrmNode => &self.crm_node,
            Tool::StonithAdmin => &self.stonith_admin,
        };
        let mut command = child::cluster_tool(program);
        command.args(arguments);
        match child::output(command, deadline.saturating_duration_since(Instant::now()), OUTPUT_MAX) {
            Ok(bytes) => String::from_utf8(bytes).map(Ok).map_err(|_| tool.unreadable()),
            Err(source) => match source.code().filter(|code| expected.contains(code)) {
                Some(code) => Ok(Err(code)),
                None => Err(ToolError::Failed { tool: tool.name(), source }),
            },
        }
    }
}
