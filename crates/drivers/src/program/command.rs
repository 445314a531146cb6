//! The key `command`: the program.

use std::path::Path;

use site::{Section, check_program};

/// Reads `command`. Its arguments may be secret: no message shows them.
pub fn command(table: &mut Section<'_, '_>) -> Option<Vec<String>> {
    let no_nul = |text: &str| match text.contains('\0') {
        true => Err("a program cannot be given a zero byte".to_owned()),
        false => Ok(()),
    };
    let command = table.texts("command", no_nul);
    table.needs("command", "set it to a program and its arguments");
    let command = command?;
    if let Err(why) = program_of(&command) {
        table.complain("command", why);
        return None;
    }
    Some(command.into_iter().map(str::to_owned).collect())
}

/// Checks the program of a command. A person who can change it can acknowledge marks.
fn program_of(command: &[&str]) -> Result<(), String> {
    let Some(program) = command.first().map(Path::new).filter(|program| program.is_absolute()) else {
        return Err("must begin with the absolute path of a program: there is no search path".to_owned());
    };
    check_program(program).map_err(|why| format!("the program cannot be used: {why}"))
}
