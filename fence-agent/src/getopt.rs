//! Options on the command line, in the manner of GNU getopt: any order, `-ostatus`, unambiguous beginnings of long names.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command};

use crate::given::{Given, GivenError};
use crate::table::{Kind, Parameter, TABLE};

/// Extra words are ignored.
const REST: &str = "rest";

/// Why the command line cannot be used. The message never shows a value: it may be secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GetoptError {
    /// Not an option, or an ambiguous beginning of one.
    #[error("unknown option {option}: see `fence_mark --help`")]
    Unknown {
        /// The option, without a value.
        option: String,
    },
    /// A value is missing, or there is one too many.
    #[error("option {option} is not written as `fence_mark --help` shows it")]
    Usage {
        /// The option.
        option: String,
    },
    /// Help or version beside an action: who asks for help wants nothing to be done.
    #[error("nothing was done: --help and --version go without an action")]
    Alone,
    /// Not UTF-8.
    #[error("the command line is not UTF-8 text: see `fence_mark --help`")]
    NotText,
    /// A value that no option could have.
    #[error(transparent)]
    Value(#[from] GivenError),
}

/// Reads the arguments that follow the program's name.
///
/// # Errors
/// [`GetoptError`]; nothing of the command line counts then.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Given, GetoptError> {
    let program = OsString::from("fence_mark");
    let matches =
        command().try_get_matches_from(std::iter::once(program).chain(args)).map_err(|e| explain(&e))?;
    let mut given = Given::default();
    for parameter in TABLE {
        if parameter.kind == Kind::Flag {
            take_flag(&mut given, parameter, matches.get_count(parameter.name))?;
        } else if let Some(values) = matches.get_many::<String>(parameter.name) {
            for value in values {
                given.take(parameter.name, value.clone())?;
            }
        }
    }
    let is_asked = |name| given.flag(name) == Some(true);
    if given.get("action").is_some() && (is_asked("help") || is_asked("version")) {
        return Err(GetoptError::Alone);
    }
    if matches.get_many::<String>(REST).is_some_and(|rest| rest.len() > 0) {
        given.warnings.push("unused words on the command line are ignored".to_owned());
    }
    Ok(given)
}

fn take_flag(given: &mut Given, parameter: &Parameter, count: u8) -> Result<(), GivenError> {
    if parameter.name == "verbose" {
        given.verbosity = count;
    }
    if count > 0 { given.take(parameter.name, "1".to_owned()) } else { Ok(()) }
}

fn command() -> Command {
    let rest = Arg::new(REST).num_args(0..).action(ArgAction::Append);
    Command::new("fence_mark")
        .infer_long_args(true)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args(TABLE.iter().map(argument))
        .arg(rest)
}

fn argument(parameter: &'static Parameter) -> Arg {
    let arg = Arg::new(parameter.name).long(parameter.long());
    let arg = if let Some(short) = parameter.short { arg.short(short) } else { arg };
    match parameter.kind {
        Kind::Flag => arg.action(ArgAction::Count),
        Kind::Text | Kind::Seconds | Kind::Integer => {
            arg.action(ArgAction::Append).num_args(1).allow_hyphen_values(true)
        }
    }
}

fn explain(error: &clap::Error) -> GetoptError {
    let named = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(text)) => text.split(['=', ' ']).next().unwrap_or_default(),
        _ => "",
    };
    let option: String = named.chars().filter(char::is_ascii_graphic).take(64).collect();
    match error.kind() {
        ErrorKind::InvalidUtf8 => GetoptError::NotText,
        ErrorKind::UnknownArgument => GetoptError::Unknown { option },
        _ => GetoptError::Usage { option },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_makes_a_sound_command() {
        command().debug_assert();
    }
}
