//! The tool that changes the cluster's configuration.

use std::path::Path;

use clap::ValueEnum;

/// The known tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Tool {
    /// pcs
    Pcs,
    /// crmsh, whose program is called crm
    Crmsh,
}

impl Tool {
    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pcs => "pcs",
            Self::Crmsh => "crmsh",
        }
    }

    fn program(self) -> &'static str {
        match self {
            Self::Pcs => "pcs",
            Self::Crmsh => "crm",
        }
    }

    /// The installed one; pcs if both are.
    pub fn installed() -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let directories: Vec<_> = std::env::split_paths(&path).collect();
        let is_installed = |tool: &Self| directories.iter().any(|dir| is_program(&dir.join(tool.program())));
        [Self::Pcs, Self::Crmsh].into_iter().find(is_installed)
    }
}

fn is_program(path: &Path) -> bool {
    path.is_file()
}
