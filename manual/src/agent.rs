//! `fence_mark` on its page: its description and its table of options.

use anyhow::Context as _;
use fence_agent::metadata;
use fence_agent::table::{Old, Parameter, TABLE, Use};

use crate::ocf::text_of;
use crate::roff::{Page, bold, italic, prose};

/// What it says of itself as a manual page, which is roff.
///
/// # Errors
/// Its metadata has no description.
pub(crate) fn description() -> anyhow::Result<String> {
    let long = text_of(&metadata::manpage("fence_mark"), &["longdesc"])?;
    let long = long.first().context("fence_mark has no description")?;
    let mut page = Page::default();
    long.split("\n.P\n").for_each(|paragraph| page.paragraph(paragraph));
    Ok(page.into_text())
}

/// Its options of one use.
pub(crate) fn options(usage: Use) -> String {
    let mut page = Page::default();
    for parameter in TABLE.iter().filter(|parameter| parameter.usage == usage) {
        page.item(&[head(parameter)], &[explanation(parameter)]);
    }
    page.into_text()
}

fn head(parameter: &Parameter) -> String {
    let short = parameter.short.map(|letter| format!("{}, ", bold(&format!("-{letter}"))));
    let value = match parameter.placeholder {
        "" => String::new(),
        placeholder => format!("={}", italic(placeholder)),
    };
    format!("{}{}{value}", short.unwrap_or_default(), bold(&format!("--{}", parameter.long())))
}

fn explanation(parameter: &Parameter) -> String {
    let summary = parameter.summary;
    let stop = if summary.ends_with('.') { "" } else { "." };
    let usual = parameter.default.filter(|value| !value.is_empty());
    let shown = |value: &str| match value.contains(char::is_alphanumeric) {
        true => bold(value),
        false => bold(&format!("\"{value}\"")),
    };
    let usual = usual.map(|value| format!(" Default: {}.", shown(value)));
    let name = (parameter.name != parameter.long())
        .then(|| format!(" On standard input: {}.", bold(parameter.name)));
    let old = match parameter.old {
        Old::None => None,
        Old::Published(old) | Old::Silent(old) => Some(format!(" Formerly {}.", bold(old))),
    };
    let all = [Some(format!("{}{stop}", prose(summary))), usual, name, old];
    all.into_iter().flatten().collect()
}
