//! The program `nova-host-alerter`; all it does is in the library.

use std::panic;
use std::process::{self, ExitCode};

fn main() -> ExitCode {
    // In a build that unwinds too: a panicking task must not leave a daemon that only seems alive.
    let say = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        say(panic);
        process::abort();
    }));
    alerter::commands::main()
}
