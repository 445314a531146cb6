//! The cluster's tools, each run with the remaining time.

use std::path::PathBuf;
use std::time::Instant;

use marks::register::pages::Part;
use marks::register::{Etcd, SealKeys};

use super::error::{Done, RegisterError};
use crate::child;
use crate::cib::releases::{NO_QUORUM, NOTHING_FOUND};

/// The longest output. A CIB of a thousand nodes has about a tenth of it, ten thousand entries less.
pub(super) const OUTPUT_MAX: usize = 64 << 20;

/// The paths of Pacemaker's tools, and of etcd's.
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
    /// Accesses etcd.
    pub etcdctl: PathBuf,
    /// The settings of etcd, if the register is there.
    pub etcd: Option<Etcd>,
    /// The keys that seal and open the register's entries.
    pub keys: SealKeys,
    /// The writer that uses these tools.
    pub part: Part,
    /// This controller never wrote pages, so an upgrade may begin.
    pub is_first: bool,
}

impl Default for Tools {
    fn default() -> Self {
        Self {
            attrd_updater: "/usr/sbin/attrd_updater".into(),
            cibadmin: "/usr/sbin/cibadmin".into(),
            crm_node: "/usr/sbin/crm_node".into(),
            stonith_admin: "/usr/sbin/stonith_admin".into(),
            etcdctl: "/usr/bin/etcdctl".into(),
            etcd: None,
            keys: SealKeys::default(),
            part: Part::Alerter,
            is_first: false,
        }
    }
}

/// A tool by its name in messages.
#[derive(Clone, Copy)]
pub(super) enum Tool {
    AttrdUpdater,
    Cibadmin,
    CrmNode,
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

    pub(super) fn unreadable(self) -> RegisterError {
        RegisterError::Unreadable { tool: self.name() }
    }
}

impl Tools {
    /// These, if the register may be in etcd.
    pub fn with(etcd: Option<Etcd>) -> Self {
        Self { etcd, ..Self::default() }
    }

    /// Whether this partition of the cluster has quorum.
    ///
    /// # Errors
    /// [`RegisterError::Tool`] and [`RegisterError::Unreadable`]: it is unknown.
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
    /// [`RegisterError::Tool`] and [`RegisterError::Unreadable`].
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
    pub(crate) fn cib_unreadable() -> RegisterError {
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
    /// [`RegisterError::Tool`] and [`RegisterError::Unreadable`].
    pub fn history(&self, deadline: Instant) -> Done<String> {
        self.ask(Tool::StonithAdmin, &["--history", "*", "--verbose", "--output-as=xml"], deadline)
    }

    fn ask(&self, tool: Tool, arguments: &[&str], deadline: Instant) -> Done<String> {
        let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
        self.run(tool, &arguments, &[], deadline)?.map_err(|_unexpected| tool.unreadable())
    }

    /// Runs a tool. `Err` with the exit code if it failed with one of `expected`.
    pub(super) fn run(
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
                None => Err(RegisterError::Tool { tool: tool.name(), source }),
            },
        }
    }
}
