//! The keys of `[mistral.NAME]`: what is wrong with them is said before anything runs.

use std::sync::Arc;

use site::Section;

use super::input::Input;
use super::template::Template;
use super::{Mistral, Options};
use crate::driver::{Driver, usable};
use crate::event::TimeFormat;
use crate::openstack;

/// Mistral's databases have room for a name of so many characters.
const LONGEST: usize = 255;

/// Reads `[mistral.NAME]`.
pub(super) fn configure(table: &mut Section<'_, '_>) -> Option<Arc<dyn Driver>> {
    let options = options(table);
    if !table.has("workflow") {
        let title = table.title().to_owned();
        table.missing(format!("[{title}] has no workflow: set it to the name of the one to start"));
    }
    let options = options.filter(|_| table.is_sound())?;
    usable(table, Mistral::new(options))
}

/// Asks for every key, so that each is checked whatever is wrong with the others.
fn options(table: &mut Section<'_, '_>) -> Option<Options> {
    let cloud = openstack::read_options(table);
    let workflow = table.text("workflow", name);
    let namespace = table.text("namespace", name);
    let has_input = table.has("input");
    let input = Input::read(table.section("input"));
    let description = table.text("description", Template::parse);
    let time_format = table.choice("time-format", &TimeFormat::WORDS).unwrap_or_default();
    let input = if has_input { input } else { Input::default() };
    Some(Options { cloud, workflow: workflow?, namespace, input, description, time_format })
}

fn name(text: &str) -> Result<String, String> {
    let is_good = (1..=LONGEST).contains(&text.chars().count())
        && !text.contains(|c: char| c.is_control() || c.is_whitespace());
    match is_good {
        true => Ok(text.to_owned()),
        false => Err(format!("must be a name without blanks, of at most {LONGEST} characters")),
    }
}
