//! Metadata, manual page and help, made of the table of options.

use std::fmt::Write;

use quick_xml::escape::escape;

use crate::call::ACTIONS;
use crate::table::{Kind, Old, Parameter, TABLE};

const SUMMARY: &str =
    "Marks a host that another device has fenced, so that its failure is reported until it is acknowledged";

/// With the macros that manual pages of fence agents carry.
const DESCRIPTION: &str = "\\fBfence_mark\\fP does not fence. It records in a journal that a compute host was fenced, and returns. nova-host-alerter then reports the failure to a recovery controller. The journal survives power loss.
.P
It belongs behind a power device, as the last device of the same level of the fencing topology: \\fIcompute1: power,mark power\\fP (crmsh), \\fIpcs stonith level add 1 compute1 power mark\\fP (pcs). Alone in a level it would report a host that no device has fenced; if Pacemaker calls it so, it refuses.
.P
It does not offer on, reboot or list, so Pacemaker never calls them. The parameters of fence_compute are accepted; some are not used, as their descriptions say.";

/// The metadata, with the name by which the agent was called.
pub fn metadata(name: &str) -> String {
    document(name, &without_macros(DESCRIPTION))
}

/// The same with the macros of a manual page in the long description.
pub fn manpage(name: &str) -> String {
    document(name, DESCRIPTION)
}

fn without_macros(text: &str) -> String {
    let lines = text.lines().filter(|line| *line != ".P");
    ["\\fB", "\\fI", "\\fP", "\\fR"]
        .iter()
        .fold(lines.collect::<Vec<_>>().join("\n"), |text, font| text.replace(font, ""))
}

fn document(name: &str, description: &str) -> String {
    let mut xml = String::with_capacity(16 * 1024);
    xml.push_str("<?xml version=\"1.0\" ?>\n");
    push(
        &mut xml,
        format_args!("<resource-agent name=\"{}\" shortdesc=\"{}\">", escape(name), escape(SUMMARY)),
    );
    push(&mut xml, format_args!("<longdesc>{}</longdesc>", escape(description)));
    xml.push_str("<vendor-url></vendor-url>\n<parameters>\n");
    for parameter in TABLE {
        if let Old::Published(old) = parameter.old {
            push_parameter(&mut xml, parameter, old, " deprecated=\"1\"");
            push_parameter(&mut xml, parameter, parameter.name, &format!(" obsoletes=\"{old}\""));
        } else {
            push_parameter(&mut xml, parameter, parameter.name, "");
        }
    }
    xml.push_str("</parameters>\n<actions>\n");
    for (action, _) in ACTIONS {
        push(&mut xml, format_args!("\t<action name=\"{action}\"/>"));
    }
    xml.push_str("</actions>\n</resource-agent>\n");
    xml
}

fn push(xml: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(xml, "{line}").expect("a String takes all that is written");
}

fn push_parameter(xml: &mut String, parameter: &Parameter, name: &str, relation: &str) {
    // The action has no default: without it nothing is done.
    let required = u8::from(parameter.name == "action");
    push(xml, format_args!("\t<parameter name=\"{name}\" unique=\"0\" required=\"{required}\"{relation}>"));
    push(xml, format_args!("\t\t<getopt mixed=\"{}\"/>", escape(parameter.synopsis())));
    let default =
        parameter.default.map_or_else(String::new, |value| format!(" default=\"{}\"", escape(value)));
    push(xml, format_args!("\t\t<content type=\"{}\"{default}/>", type_of(parameter.kind)));
    push(xml, format_args!("\t\t<shortdesc lang=\"en\">{}</shortdesc>", escape(parameter.description())));
    xml.push_str("\t</parameter>\n");
}

fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Flag => "boolean",
        Kind::Text => "string",
        Kind::Seconds => "second",
        Kind::Integer => "integer",
    }
}

/// The column of descriptions in the help.
const COLUMN: usize = 34;
/// The width of the help.
const WIDTH: usize = 100;

/// The text of `--help`.
pub fn help(name: &str) -> String {
    let mut text = format!("Usage:\n\t{name} [options]\nOptions:\n");
    for parameter in TABLE {
        push_option(&mut text, &parameter.synopsis(), &parameter.description());
    }
    text.push_str(
        "Without arguments, the options are read from standard input as KEY=VALUE, one on each line.\n",
    );
    text
}

fn push_option(text: &mut String, synopsis: &str, description: &str) {
    let mut line = format!("   {synopsis:<width$}", width = COLUMN - 4);
    let mut fresh = true;
    for word in description.split(' ') {
        if !fresh && line.len() + 1 + word.len() > WIDTH {
            text.push_str(&line);
            text.push('\n');
            line = " ".repeat(COLUMN - 1);
        }
        line.push(' ');
        line.push_str(word);
        fresh = false;
    }
    text.push_str(&line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_manual_page_holds_macros() {
        assert!(
            manpage("fence_mark").contains("\\fBfence_mark\\fP") && manpage("fence_mark").contains("\n.P\n")
        );
        assert!(!metadata("fence_mark").contains('\\') && !metadata("fence_mark").contains("\n.P"));
    }

    #[test]
    fn the_help_names_every_option_in_lines_that_fit() {
        let help = help("fence_mark");
        for parameter in TABLE {
            assert!(help.contains(&parameter.synopsis()), "{}", parameter.name);
        }
        assert!(help.lines().all(|line| line.len() <= WIDTH), "{help}");
    }
}
