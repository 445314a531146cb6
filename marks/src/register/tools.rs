//! The cluster's tools, each run with what is left of the time.

use std::path::PathBuf;
use std::time::Instant;

use super::error::RegisterError;
use crate::child;

/// More than ten thousand entries.
const OUTPUT_MAX: usize = 16 << 20;

/// Where Pacemaker's tools are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tools {
    /// Reads and writes attributes.
    pub attrd_updater: PathBuf,
    /// Reads and writes the CIB.
    pub cibadmin: PathBuf,
    /// Knows whether there is quorum.
    pub crm_node: PathBuf,
}

impl Default for Tools {
    fn default() -> Self {
        Self {
            attrd_updater: "/usr/sbin/attrd_updater".into(),
            cibadmin: "/usr/sbin/cibadmin".into(),
            crm_node: "/usr/sbin/crm_node".into(),
        }
    }
}

/// A tool by its name in messages.
#[derive(Clone, Copy)]
pub(super) enum Tool {
    AttrdUpdater,
    Cibadmin,
    CrmNode,
}

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Self::AttrdUpdater => "attrd_updater",
            Self::Cibadmin => "cibadmin",
            Self::CrmNode => "crm_node",
        }
    }

    pub(super) fn unreadable(self) -> RegisterError {
        RegisterError::Unreadable { tool: self.name() }
    }
}

impl Tools {
    /// Runs a tool. `Err` with the exit code where it failed by its own account with one of `expected`.
    pub(super) fn run(
        &self,
        tool: Tool,
        arguments: &[String],
        expected: &[i32],
        deadline: Instant,
    ) -> Result<Result<String, i32>, RegisterError> {
        let program = match tool {
            Tool::AttrdUpdater => &self.attrd_updater,
            Tool::Cibadmin => &self.cibadmin,
            Tool::CrmNode => &self.crm_node,
        };
        let mut command = child::cluster_tool(program);
        command.args(arguments);
        match child::output(command, deadline.saturating_duration_since(Instant::now()), OUTPUT_MAX) {
            Ok(bytes) => String::from_utf8(bytes).map(Ok).map_err(|_| tool.unreadable()),
            Err(source) => match source.code().filter(|code| expected.contains(code)) {
                Some(code) => Ok(Err(code)),
                None => Err(RegisterError::Tool { tool: tool.name(), source }),
            },
        }
    }
}
