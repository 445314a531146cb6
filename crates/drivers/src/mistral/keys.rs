//! The keys of `[mistral.NAME]`. All errors are found before anything runs.

use site::{Section, text_if};

use super::input::{Input, Template};
use crate::event::TimeFormat;
use crate::openstack;

/// The longest name that Mistral's databases take, in characters.
const LONGEST: usize = 255;

/// What a `mistral` route is made of.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cloud that Mistral belongs to.
    pub cloud: openstack::CloudOptions,
    /// The workflow's name or UUID.
    pub workflow: String,
    /// Its namespace, if not the default one.
    pub namespace: Option<String>,
    /// Its input.
    pub input: Input,
    /// The description of its execution.
    pub description: Option<Template>,
    /// How times are written in both.
    pub time_format: TimeFormat,
}

impl Options {
    /// A workflow of this cloud, with defaults alone.
    pub fn of(cloud: openstack::CloudOptions, workflow: &str) -> Self {
        let workflow = workflow.to_owned();
        let input = Input::default();
        Self { cloud, workflow, namespace: None, input, description: None, time_format: TimeFormat::Epoch }
    }
}

/// Reads the route's table. It asks for every key, so that each is checked whatever is wrong with the others.
pub(super) fn read(table: &mut Section<'_, '_>) -> Option<Options> {
    let cloud = openstack::read_options(table);
    let workflow = table.text("workflow", name);
    let namespace = table.text("namespace", name);
    let has_input = table.has("input");
    let input = Input::read(table.section("input"));
    let description = table.text("description", Template::parse);
    let time_format = table.choice("time-format", &TimeFormat::WORDS).unwrap_or_default();
    table.needs("workflow", "set it to the name of the workflow to start");
    let (input, workflow) = (if has_input { input } else { Input::default() }, workflow?);
    let options = Options { cloud, workflow, namespace, input, description, time_format };
    table.is_sound().then_some(options)
}

fn name(text: &str) -> Result<String, String> {
    let is_good = (1..=LONGEST).contains(&text.chars().count())
        && !text.contains(|c: char| c.is_control() || c.is_whitespace());
    text_if(is_good, text, &format!("must be a name without blanks, of at most {LONGEST} characters"))
}
