//! The options of the programs, and what alert_mark reads instead of options.

use std::collections::BTreeSet;

use tests::trials::Named;

use super::page::{heads, plain, section};
use super::{pages, run, text};

/// Its tests.
pub(super) fn tests() -> Vec<Named> {
    tests::trials![
        every_option_of_the_alerter_is_on_its_page,
        every_option_of_the_agent_is_on_its_page,
        every_variable_of_the_alert_agent_is_on_its_page
    ]
}

/// A command (empty for the program itself), and an option or a word of it.
pub(super) type Options = BTreeSet<(String, String)>;

/// What the built program's own help has, command by command.
pub(super) fn options_of_the_alerter() -> Options {
    let mut found = Options::new();
    let mut commands = vec![Vec::new()];
    while let Some(path) = commands.pop() {
        let help = run("nova-host-alerter", &[path.as_slice(), &["--help"]].concat());
        let inherited = ["--config", "--json", "-o", "-h", "--help", "-V", "--version"];
        let own = options_in(&help)
            .into_iter()
            .filter(|option| path.is_empty() || !inherited.contains(&option.as_str()));
        found.extend(own.map(|option| (path.join(" "), option)));
        for below in commands_in(&help) {
            found.insert((path.join(" "), below.clone()));
            let below: &'static str = below.leak();
            commands.push([path.as_slice(), &[below]].concat());
        }
    }
    found
}

/// clap indents an option by two letters or, without a short form, by six.
fn options_in(help: &str) -> Vec<String> {
    let listed = help.lines().filter(|line| line.starts_with("  -") || line.starts_with("      --"));
    let forms = listed.map(|line| line.trim().split("  ").next().unwrap());
    let words = forms.flat_map(|form| form.split([' ', ',', '=', '[']).filter(|word| word.starts_with('-')));
    let options = words.map(str::to_owned);
    let arguments =
        listed_below(help, "Arguments:").map(|word| word.trim_matches(['<', '>', '[', ']', '.']).to_owned());
    options.chain(arguments).collect()
}

fn commands_in(help: &str) -> Vec<String> {
    listed_below(help, "Commands:").filter(|command| *command != "help").map(str::to_owned).collect()
}

fn listed_below<'t>(help: &'t str, title: &str) -> impl Iterator<Item = &'t str> {
    let (_, rest) = help.split_once(&format!("\n{title}\n")).unwrap_or_default();
    let list = rest.lines().take_while(|line| !line.is_empty());
    list.filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
}

/// The same of the page.
pub(super) fn options_on(page: &str) -> Options {
    let mut found = Options::new();
    for head in
        heads(page).into_iter().filter(|head| ["OPTIONS", "COMMANDS"].contains(&head.section.as_str()))
    {
        let words = head.text.split([' ', ',', '=', '[']).filter(|word| !word.is_empty());
        match head.text.starts_with('-') && !head.text.starts_with("-- ") {
            true => found.extend(
                words.filter(|word| word.starts_with('-')).map(|word| (head.part.clone(), word.to_owned())),
            ),
            false => drop(found.insert((
                head.part.clone(),
                head.text.trim_start_matches("-- ").trim_end_matches('.').to_owned(),
            ))),
        }
    }
    let commands =
        page.split_once("\n.SH COMMANDS\n").map_or("", |(_, rest)| rest).split("\n.SH ").next().unwrap();
    for command in commands.lines().filter_map(|line| line.strip_prefix(".SS ")).map(plain) {
        let (above, name) = command.rsplit_once(' ').unwrap_or(("", &command));
        found.insert((above.to_owned(), name.to_owned()));
    }
    found
}

fn every_option_of_the_alerter_is_on_its_page() {
    let (program, page) = (options_of_the_alerter(), &pages()["nova-host-alerter.8"]);
    assert!(program.len() > 80, "{program:?}");
    assert_eq!(
        program.symmetric_difference(&options_on(page)).collect::<Vec<_>>(),
        Vec::<&(String, String)>::new()
    );
    let misspelled = page.replace("\\-\\-online", "\\-\\-onlnie");
    assert_eq!(
        program.symmetric_difference(&options_on(&misspelled)).count(),
        2,
        "a wrong option must be seen"
    );
    let forgotten = page.replace(".SS maintenance end\n", ".PP\n");
    assert!(
        program.difference(&options_on(&forgotten)).any(|(_, name)| name == "end"),
        "a command must be missed"
    );
    let documented = section(page, "EXIT STATUS");
    let help = run("nova-host-alerter", &["--help"]);
    let (_, codes) = help.split_once("Exit codes: ").unwrap();
    let codes: Vec<&str> = codes.split([' ', ',', '.']).filter(|word| word.parse::<u8>().is_ok()).collect();
    assert!(
        codes.len() >= 4 && codes.iter().all(|code| documented.contains(&format!("\n{code}: "))),
        "{codes:?} {documented}"
    );
}

/// The names in the metadata, each with whether it is an old one.
pub(super) fn parameters_of_the_agent() -> Vec<(String, bool)> {
    let metadata = run("fence_mark", &["--action=metadata"]);
    let parameters = metadata.lines().filter_map(|line| line.trim().strip_prefix("<parameter name=\""));
    parameters.map(|rest| (rest.split('"').next().unwrap().to_owned(), rest.contains("deprecated"))).collect()
}

fn options_of_the_agents_page(page: &str) -> BTreeSet<String> {
    let options = heads(page).into_iter().filter(|head| head.section == "OPTIONS");
    options
        .flat_map(|head| {
            head.text
                .split([' ', ',', '='])
                .filter(|word| word.starts_with('-'))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect()
}

fn every_option_of_the_agent_is_on_its_page() {
    let page = &pages()["fence_mark.8"];
    let help = run("fence_mark", &["--help"]);
    let listed =
        help.lines().filter_map(|line| line.strip_prefix("   ")).filter(|line| line.starts_with('-'));
    let forms = listed.flat_map(|line| {
        line.split([' ', ',', '=']).take_while(|word| word.is_empty() || word.starts_with('-'))
    });
    let in_help: BTreeSet<String> = forms.filter(|word| !word.is_empty()).map(str::to_owned).collect();
    let on_page = options_of_the_agents_page(page);
    assert!(in_help.len() > 50, "{in_help:?}");
    assert_eq!(in_help.symmetric_difference(&on_page).collect::<Vec<_>>(), Vec::<&String>::new());
    let broken = options_of_the_agents_page(&page.replace("\\-\\-delay", "\\-\\-dealy"));
    assert_eq!(in_help.symmetric_difference(&broken).count(), 2, "a wrong option must be seen");

    let parameters = parameters_of_the_agent();
    for (name, is_old) in &parameters {
        let wanted = if *is_old { format!("Formerly {name}.") } else { String::new() };
        assert!(section(page, "OPTIONS").replace('\n', " ").contains(&wanted), "{name}");
        assert!(*is_old || on_page.contains(&format!("--{}", name.replace('_', "-"))), "{name}");
    }
    let present = parameters.iter().filter(|(_, is_old)| !is_old).count();
    assert_eq!(on_page.iter().filter(|option| option.starts_with("--")).count(), present);

    let metadata = run("fence_mark", &["--action=metadata"]);
    let actions =
        metadata.lines().filter_map(|line| line.trim().strip_prefix("<action name=\"")?.split('"').next());
    let documented: BTreeSet<String> = heads(page)
        .into_iter()
        .filter(|head| head.section == "ACTIONS")
        .flat_map(|head| {
            head.text.split(':').next().unwrap().split(", ").map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(documented, actions.map(str::to_owned).collect());
}

/// The variables of an alert that the agent asks for, without what their names begin with.
fn variables_in(code: &str) -> BTreeSet<String> {
    let asked =
        ["text(\"", "get(\"", "number(\"", "says(\""].iter().flat_map(|call| code.split(call).skip(1));
    asked.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

/// `alert_mark` has no options: what it reads is the environment that Pacemaker gives it.
fn every_variable_of_the_alert_agent_is_on_its_page() {
    let page = &pages()["alert_mark.8"];
    let points = heads(page).into_iter().filter(|head| head.section == "ENVIRONMENT").map(|head| head.text);
    let words: Vec<String> =
        points.flat_map(|text| text.split([' ', ':', ',']).map(str::to_owned).collect::<Vec<_>>()).collect();
    let documented: BTreeSet<String> =
        words.iter().filter_map(|word| Some(word.strip_prefix("CRM_alert_")?.to_owned())).collect();
    let code = text("fence-agent/src/alert.rs");
    assert!(documented.len() > 5, "{documented:?}");
    assert_eq!(variables_in(&code), documented);
    assert_ne!(
        variables_in(&code.replace("\"recipient\"", "\"directory\"")),
        documented,
        "a renamed variable must be seen"
    );
    assert!(!page.contains("\n.SH OPTIONS\n"), "{page}");
}
