//! The manual says what the programs, the agents, the examples and the units say, and nothing else.

mod keys;
mod page;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use manual::{COMPLETIONS, PAGES, Sources, files};
use tempfile::TempDir;
use tests::installed::{self, source};
use tests::programs::built;
use tests::trials::Group;

use self::keys::{Keys, check_config};
use self::page::{heads, plain, section};

/// What must agree everywhere.
pub(crate) fn group() -> Group {
    let tests = tests::trials![
        what_is_committed_is_what_the_tables_give,
        every_option_of_the_alerter_is_on_its_page,
        every_option_of_the_agent_is_on_its_page,
        every_variable_of_the_alert_agent_is_on_its_page,
        every_parameter_of_the_resource_is_on_its_page,
        every_key_of_the_configuration_is_in_the_manual,
        every_default_in_the_manual_is_one,
        every_example_has_keys_of_the_manual,
        every_parameter_in_the_examples_for_pacemaker_is_in_the_manual,
        the_unit_says_what_the_manual_says,
        every_path_in_the_manual_is_one_of_the_program,
        every_page_that_is_named_is_there,
    ];
    Group { cannot: None, tests }
}

/// What is shown by what reads manual pages.
pub(crate) fn shown() -> Group {
    let tests = tests::trials![nobody_who_reads_a_page_complains, the_pages_are_found_by_what_they_are];
    Group { cannot: lacking(&["man", "mandoc"]), tests }
}

/// What is completed by the shells themselves.
pub(crate) fn completed() -> Group {
    let tests = tests::trials![bash_completes_what_clap_has, zsh_and_fish_complete_too];
    Group { cannot: lacking(&["bash", "zsh", "fish"]), tests }
}

fn lacking(tools: &[&str]) -> Option<String> {
    let is_there = |tool: &&&str| ["/usr/bin", "/bin"].iter().any(|dir| Path::new(dir).join(tool).exists());
    let missing = tools.iter().find(|tool| !is_there(tool))?;
    Some(format!("{missing} is not installed: run `make deps`"))
}

fn sources() -> Sources {
    Sources::read(&source("")).unwrap()
}

/// The pages of these sources, by the names of their files.
fn pages_of(sources: &Sources) -> BTreeMap<String, String> {
    let of_page = |(path, text): (String, String)| {
        Some((path.strip_prefix(PAGES)?.trim_start_matches('/').to_owned(), text))
    };
    files(sources).unwrap().into_iter().filter_map(of_page).collect()
}

/// The pages that are in the source.
fn pages() -> BTreeMap<String, String> {
    committed()
        .into_iter()
        .filter_map(|(path, text)| Some((path.strip_prefix(PAGES)?.trim_start_matches('/').to_owned(), text)))
        .collect()
}

fn committed() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for directory in [PAGES, COMPLETIONS] {
        for entry in fs::read_dir(source(directory)).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            found.insert(format!("{directory}/{name}"), fs::read_to_string(entry.path()).unwrap());
        }
    }
    found
}

/// The names of what is in one of two only, or not the same in both.
fn differing<T: PartialEq>(one: &BTreeMap<String, T>, other: &BTreeMap<String, T>) -> BTreeSet<String> {
    let names = one.keys().chain(other.keys());
    names.filter(|name| one.get(*name) != other.get(*name)).cloned().collect()
}

/// The broken variants: a file that nobody makes any more, and a source that has changed since.
fn what_is_committed_is_what_the_tables_give() {
    let made = files(&sources()).unwrap();
    assert_eq!(
        differing(&made, &committed()),
        BTreeSet::new(),
        "run `make man`, and commit what it has written"
    );
    let mut stale = committed();
    stale.insert(format!("{PAGES}/nova-host-alerter-pigeon.5"), String::new());
    assert_eq!(differing(&made, &stale).len(), 1, "a page of nothing must be seen");
    let changed = sources()
        .with("docs/drivers.md", text("docs/drivers.md").replace("for each attempt", "for all attempts"));
    let differing = differing(&files(&changed).unwrap(), &committed());
    assert_eq!(differing, BTreeSet::from([format!("{PAGES}/nova-host-alerter-http.5")]));
}

fn text(path: &str) -> String {
    fs::read_to_string(source(path)).unwrap()
}

fn run(program: &str, words: &[&str]) -> String {
    let output = Command::new(built(program).unwrap()).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A command (empty for the program itself), and an option or a word of it.
type Options = BTreeSet<(String, String)>;

/// What the built program's own help has, command by command.
fn options_of_the_alerter() -> Options {
    let mut found = Options::new();
    let mut commands = vec![Vec::new()];
    while let Some(path) = commands.pop() {
        let help = run("nova-host-alerter", &[path.as_slice(), &["--help"]].concat());
        let inherited = ["--config", "--json", "-h", "--help", "-V", "--version"];
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
    listed_below(help, "Commands:").map(str::to_owned).collect()
}

fn listed_below<'t>(help: &'t str, title: &str) -> impl Iterator<Item = &'t str> {
    let (_, rest) = help.split_once(&format!("\n{title}\n")).unwrap_or_default();
    let list = rest.lines().take_while(|line| !line.is_empty());
    list.filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
}

/// The same of the page.
fn options_on(page: &str) -> Options {
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
    let told = section(page, "EXIT STATUS");
    let help = run("nova-host-alerter", &["--help"]);
    let (_, codes) = help.split_once("Exit codes: ").unwrap();
    let codes: Vec<&str> = codes.split([' ', ',', '.']).filter(|word| word.parse::<u8>().is_ok()).collect();
    assert!(
        codes.len() >= 4 && codes.iter().all(|code| told.contains(&format!("\n{code}: "))),
        "{codes:?} {told}"
    );
}

/// The names in the metadata, each with whether it is an old one.
fn parameters_of_the_agent() -> Vec<(String, bool)> {
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
    let told: BTreeSet<String> = heads(page)
        .into_iter()
        .filter(|head| head.section == "ACTIONS")
        .flat_map(|head| {
            head.text.split(':').next().unwrap().split(", ").map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(told, actions.map(str::to_owned).collect());
}

/// The variables of an alert that the agent asks for, without what their names begin with.
fn variables_in(code: &str) -> BTreeSet<String> {
    let asked = ["text(\"", "get(\"", "number(\""].iter().flat_map(|call| code.split(call).skip(1));
    asked.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

/// `alert_mark` has no options: what it reads is the environment that Pacemaker gives it.
fn every_variable_of_the_alert_agent_is_on_its_page() {
    let page = &pages()["alert_mark.8"];
    let points = heads(page).into_iter().filter(|head| head.section == "ENVIRONMENT").map(|head| head.text);
    let words: Vec<String> =
        points.flat_map(|text| text.split([' ', ':', ',']).map(str::to_owned).collect::<Vec<_>>()).collect();
    let told: BTreeSet<String> =
        words.iter().filter_map(|word| Some(word.strip_prefix("CRM_alert_")?.to_owned())).collect();
    let code = text("fence-agent/src/alert.rs");
    assert!(told.len() > 5, "{told:?}");
    assert_eq!(variables_in(&code), told);
    assert_ne!(
        variables_in(&code.replace("\"recipient\"", "\"directory\"")),
        told,
        "a renamed variable must be seen"
    );
    assert!(!page.contains("\n.SH OPTIONS\n"), "{page}");
}

/// What the agent itself prints, with nothing of resource-agents but an empty file of functions.
fn metadata_of_the_resource(script: &str) -> String {
    let room = TempDir::new().unwrap();
    let agent = room.path().join("agent");
    fs::write(room.path().join("ocf-shellfuncs"), "").unwrap();
    fs::write(&agent, script).unwrap();
    let output = Command::new("sh")
        .arg(agent)
        .arg("meta-data")
        .env("OCF_FUNCTIONS_DIR", room.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Parameters with their defaults, and actions with what is suggested of each.
fn in_metadata(xml: &str) -> BTreeSet<String> {
    let attribute = |line: &str, name: &str| {
        Some(line.split_once(&format!("{name}=\""))?.1.split('"').next()?.to_owned())
    };
    let mut found = BTreeSet::new();
    let mut parameter = String::new();
    for line in xml.lines() {
        if line.starts_with("<parameter ") {
            parameter = attribute(line, "name").unwrap();
        } else if line.starts_with("<content ") {
            found.insert(format!("{parameter} = {}", attribute(line, "default").unwrap()));
        } else if line.starts_with("<action ") {
            found.insert(attribute(line, "name").unwrap());
        }
    }
    found
}

fn on_the_resources_page(page: &str) -> BTreeSet<String> {
    let of = ["OPTIONS", "ACTIONS"];
    heads(page).into_iter().filter(|head| of.contains(&head.section.as_str())).map(|head| head.text).collect()
}

fn every_parameter_of_the_resource_is_on_its_page() {
    let script = text("ocf/nova-host-alerter");
    let page = &pages()["ocf_openstack_nova-host-alerter.7"];
    let told = in_metadata(&metadata_of_the_resource(&script));
    assert!(told.len() >= 8, "{told:?}");
    assert_eq!(told, on_the_resources_page(page));
    let renamed = script.replace("<parameter name=\"binary\"", "<parameter name=\"program\"");
    assert_ne!(
        in_metadata(&metadata_of_the_resource(&renamed)),
        on_the_resources_page(page),
        "a renamed parameter must be seen"
    );
    assert!(
        told.iter()
            .filter(|told| !told.contains('='))
            .all(|action| section(page, "SYNOPSIS").contains(action.as_str()))
    );
}

/// What is in the code alone, and what is in the manual alone, as `[TABLE] KEY`.
fn disagreements(pages: &BTreeMap<String, String>, program: &Keys) -> Vec<String> {
    let manual = keys::of_pages(pages);
    let all = |keys: &Keys| -> BTreeSet<String> {
        keys.iter().flat_map(|(title, keys)| keys.iter().map(move |key| format!("[{title}] {key}"))).collect()
    };
    let (manual, program) = (all(&manual), all(program));
    let lacking = program.difference(&manual).map(|key| format!("the manual lacks {key}"));
    let invented = manual.difference(&program).map(|key| format!("the program does not know {key}"));
    lacking.chain(invented).collect()
}

/// The manual's keys are those of the shipped configuration: what that lacks, the manual lacks.
fn every_key_of_the_configuration_is_in_the_manual() {
    let pages = pages();
    let program = keys::of_program(keys::of_pages(&pages).keys());
    assert!(program.len() > 20 && program.values().map(BTreeSet::len).sum::<usize>() > 150, "{program:?}");
    assert_eq!(disagreements(&pages, &program), [""; 0]);
    for (read, told) in keys::of_notices(&pages) {
        assert_eq!(read, told);
    }
    let shipped = text("packaging/alerter.toml");
    let without = |from: &str, to: &str| {
        assert!(shipped.contains(from), "{from}");
        disagreements(
            &pages_of(&sources().with("packaging/alerter.toml", shipped.replace(from, to))),
            &program,
        )
    };
    assert_eq!(
        without("#coalesce = ", "#coalesec = "),
        ["the manual lacks [intake] coalesce", "the program does not know [intake] coalesec"]
    );
    assert_eq!(
        without("#tls-min = \"1.2\"\n# Whether one", "# Whether one"),
        ["the manual lacks [http.NAME] tls-min"]
    );
    assert_eq!(without("#[page]\n", "#[pages]\n").len(), 8, "a table must be missed");
}

/// The settings of the manual that are no examples, one table each, where nothing else has to stand beside them.
fn defaults(page: &str) -> Vec<(String, String)> {
    let of_table =
        |head: page::Head| Some((head.part.strip_prefix('[')?.strip_suffix(']')?.to_owned(), head.text));
    let alone = ["store", "hosts", "groups.NAME", "intake", "delivery", "history", "log", "healthcheck"];
    let all = heads(page).into_iter().filter(|head| head.section == "OPTIONS").filter_map(of_table);
    all.filter(|(title, text)| alone.contains(&title.as_str()) && !text.ends_with("(example)")).collect()
}

/// What the daemon would go by.
fn settings(table: &str, setting: &str) -> String {
    let room = TempDir::new().unwrap();
    let file = room.path().join("alerter.toml");
    let group = "[groups.a]\nhosts = [\"c1\"]\n";
    let table = table.replace("NAME", "a");
    let tables = if table == "groups.a" {
        format!("{group}{setting}\n")
    } else {
        format!("{group}[{table}]\n{setting}\n")
    };
    fs::write(&file, format!("[http.a]\nurl = \"https://localhost/\"\n{tables}")).unwrap();
    Command::new("chmod").arg("600").arg(&file).status().unwrap();
    format!("{:?}", alerter::config::load(&file).unwrap()).replace(&room.path().display().to_string(), "")
}

/// A default may be written or left out. The broken variant: an example is another setting.
fn every_default_in_the_manual_is_one() {
    let defaults = defaults(&pages()["alerter.toml.5"]);
    assert!(defaults.len() > 20, "{defaults:?}");
    // A socket without an owner belongs to whoever runs the daemon, which is root.
    let is_of_files = |text: &str| text.starts_with("owner") || text.starts_with("group");
    for (table, setting) in defaults.iter().filter(|(_, text)| !is_of_files(text)) {
        assert_eq!(settings(table, setting), settings(table, ""), "[{table}] {setting}");
    }
    assert_ne!(settings("intake", "coalesce = 181"), settings("intake", ""), "another value must be seen");
}

/// The blocks of TOML on a page of `docs/`.
fn toml_blocks(page: &str) -> Vec<String> {
    let blocks = page.split("```toml\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

/// Every example of a configuration that is shipped.
fn examples() -> Vec<(String, String)> {
    let mut found = vec![("docs/examples/groups.toml".to_owned(), text("docs/examples/groups.toml"))];
    let docs =
        fs::read_dir(source("docs")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let docs = docs.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}"));
    let own = fs::read_dir(source("manual/pages"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let own = own.map(|name| format!("manual/pages/{name}"));
    for page in docs.chain(own).chain(["README.md".to_owned()]) {
        found.extend(toml_blocks(&text(&page)).into_iter().map(|block| (page.clone(), block)));
    }
    found
}

/// What a configuration has that the program does not know.
fn unknown(configuration: &str) -> Vec<String> {
    let said = check_config(configuration);
    said.lines()
        .filter(|line| line.contains("unknown") || line.contains("not TOML"))
        .map(str::to_owned)
        .collect()
}

/// The program knows what the manual has, as is shown above.
fn every_example_has_keys_of_the_manual() {
    let examples = examples();
    assert!(examples.len() > 15, "{}", examples.len());
    for (place, example) in &examples {
        assert_eq!(unknown(example), [""; 0], "{place}:\n{example}");
    }
    let (_, groups) = &examples[0];
    assert_eq!(unknown(&groups.replace("cooldown", "coldown")).len(), 1, "a wrong key must be seen");
    assert_eq!(
        unknown(&groups.replace("[http.pager]", "[htp.pager]")).len(),
        1,
        "a wrong table must be seen"
    );
}

/// The parameters that a resource of ours is given, of each command that makes one; Pacemaker's own begin with `pcmk_`.
fn given(example: &str, agent: &str) -> BTreeSet<String> {
    let joined = example.replace("\\\n", " ");
    let lines = joined
        .lines()
        .filter(|line| line.split_whitespace().any(|word| word.trim_start_matches("stonith:") == agent));
    let before_others = |line: &str| {
        [" op ", " meta "]
            .iter()
            .fold(line.to_owned(), |line, word| line.split(word).next().unwrap().to_owned())
    };
    let words =
        lines.flat_map(|line| before_others(line).split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    words
        .filter_map(|word| Some(word.split_once('=')?.0.to_owned()))
        .filter(|name| !name.starts_with("pcmk_"))
        .collect()
}

fn every_parameter_in_the_examples_for_pacemaker_is_in_the_manual() {
    let pages = pages();
    let agent: BTreeSet<String> = parameters_of_the_agent().into_iter().map(|(name, _)| name).collect();
    let resource: BTreeSet<String> = on_the_resources_page(&pages["ocf_openstack_nova-host-alerter.7"])
        .iter()
        .filter_map(|head| Some(head.split_once(" = ")?.0.to_owned()))
        .collect();
    for path in ["packaging/examples/crmsh.txt", "packaging/examples/pcs.sh"] {
        let example = text(path);
        let of_resource = given(&example, "ocf:openstack:nova-host-alerter");
        assert_eq!(of_resource, BTreeSet::from(["config".to_owned()]), "{path}");
        assert!(
            of_resource.is_subset(&resource) && given(&example, "fence_mark").is_subset(&agent),
            "{path}"
        );
        let slip = example
            .replace("config=/etc", "conf=/etc")
            .replace("pcmk_host_list=compute1 pcmk_status", "host_list=compute1 pcmk_status");
        assert!(
            !given(&slip, "ocf:openstack:nova-host-alerter").is_subset(&resource),
            "{path}: a wrong parameter must be seen"
        );
        assert!(!given(&slip, "fence_mark").is_subset(&agent), "{path}: a wrong parameter must be seen");
    }
}

/// What a unit says that the manual does not.
fn untold(unit: &str, pages: &BTreeMap<String, String>) -> Vec<String> {
    let of =
        |key: &str| unit.lines().find_map(|line| line.strip_prefix(&format!("{key}="))).unwrap_or_default();
    let page = &pages["nova-host-alerter.8"];
    let options = options_on(page);
    let (program, words) = of("ExecStart").split_once(' ').unwrap_or_default();
    let words: Vec<&str> = words.split(' ').collect();
    let is_known = |at: usize, word: &str| match word.split('=').next().unwrap() {
        option if option.starts_with('-') => {
            options.iter().any(|(path, name)| name == option && (path.is_empty() || path == words[0]))
        }
        name => at > 0 || options.contains(&(String::new(), name.to_owned())),
    };
    let mut found: Vec<String> = words
        .iter()
        .enumerate()
        .filter(|(at, word)| !is_known(*at, word))
        .map(|(_, word)| format!("ExecStart: {word}"))
        .collect();
    let binary = format!("binary = {program}");
    if !on_the_resources_page(&pages["ocf_openstack_nova-host-alerter.7"]).contains(&binary) {
        found.push(format!("ExecStart: {program}"));
    }
    for named in of("Documentation").split(' ').filter_map(|word| word.strip_prefix("man:")) {
        if !pages.contains_key(&named.replace('(', ".").replace(')', "")) {
            found.push(format!("Documentation: {named}"));
        }
    }
    let (files, codes) = (section(page, "FILES"), section(page, "EXIT STATUS"));
    for (key, place) in [("StateDirectory", "/var/lib/"), ("RuntimeDirectory", "/run/")] {
        let path = format!("{place}{}/", of(key));
        if !files.contains(&path) {
            found.push(format!("{key}: {path}"));
        }
    }
    let code = of("RestartPreventExitStatus");
    if !codes.contains(&format!("\n{code}: ")) {
        found.push(format!("RestartPreventExitStatus: {code}"));
    }
    found
}

fn the_unit_says_what_the_manual_says() {
    let (unit, pages) = (text("packaging/systemd/nova-host-alerter.service"), pages());
    assert!(unit.contains("man:nova-host-alerter(8)"), "{unit}");
    assert_eq!(untold(&unit, &pages), [""; 0]);
    for (from, to) in [
        ("nova-host-alerter run", "nova-host-alerter start"),
        ("nova-host-alerter run", "nova-host-alerter run --fast"),
        ("/usr/sbin/nova", "/usr/bin/nova"),
        ("man:nova-host-alerter(8)", "man:nova-host-alerter(1)"),
        ("StateDirectory=nova-host-alerter", "StateDirectory=alerter"),
        ("RestartPreventExitStatus=78", "RestartPreventExitStatus=79"),
    ] {
        assert_eq!(untold(&unit.replacen(from, to, 1), &pages).len(), 1, "{to} must be seen");
    }
}

/// The paths below FILES of a page.
fn paths(page: &str) -> BTreeSet<String> {
    let text = section(page, "FILES");
    let words = text.split([' ', '\n', ',']).map(|word| word.trim_end_matches([':', '.']));
    words.filter(|word| word.starts_with('/')).map(str::to_owned).collect()
}

fn every_path_in_the_manual_is_one_of_the_program() {
    let journal = marks::journal::DEFAULT_PATH;
    let socket = alerter::daemon::socket_path(Path::new(journal));
    let known = [
        alerter::cli::DEFAULT_CONFIG.to_owned(),
        alerter::cli::DEFAULT_CONFIG.replace("alerter.toml", "alerter.d/*.toml"),
        journal.to_owned(),
        format!("{journal}.lock"),
        format!("{}/", marks::evidence::DIRECTORY),
        socket.display().to_string(),
        installed::OCF_AGENT.to_owned(),
        "/usr/share/doc/nova-host-alerter/".to_owned(),
    ];
    let known = BTreeSet::from(known);
    let pages = pages();
    for (name, page) in &pages {
        let paths = paths(page);
        assert!(!paths.is_empty() && paths.is_subset(&known), "{name}: {paths:?}");
    }
    let all: BTreeSet<String> = pages.values().flat_map(|page| paths(page)).collect();
    assert_eq!(all, known, "a path that is nowhere");
    let moved = pages["alert_mark.8"].replace("nova\\-host\\-alerter/evidence", "alerter/evidence");
    assert!(!paths(&moved).is_subset(&known), "a wrong path must be seen");
}

/// The pages that a page names: a word in bold, and a section.
fn named(page: &str) -> BTreeSet<String> {
    let spans = page.split("\\fB").skip(1).filter_map(|span| span.split_once("\\fR("));
    let of_sections = spans.filter(|(_, rest)| rest.as_bytes().get(1) == Some(&b')'));
    of_sections.map(|(name, rest)| format!("{}.{}", plain(name), &rest[..1])).collect()
}

fn every_page_that_is_named_is_there() {
    let pages = pages();
    let others = ["crm.8", "pcs.8"];
    for (name, page) in &pages {
        let named = named(page);
        assert!(named.len() >= 2, "{name}: {named:?}");
        let lost: Vec<&String> = named
            .iter()
            .filter(|named| !pages.contains_key(*named) && !others.contains(&named.as_str()))
            .collect();
        assert_eq!(lost, Vec::<&String>::new(), "{name}");
    }
    let renamed = pages["fence_mark.8"].replace("\\fBalert_mark\\fR(8)", "\\fBalertmark\\fR(8)");
    assert!(named(&renamed).contains("alertmark.8"), "a wrong name must be seen");
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

/// What man-db's roff and mandoc have against a page.
fn complaints(page: &str, name: &str) -> String {
    let room = TempDir::new().unwrap();
    let file = room.path().join(name);
    fs::write(&file, page).unwrap();
    let mut man = Command::new("man");
    man.args(["--warnings=w", "-E", "UTF-8", "-l", "-Tutf8", "-Z"])
        .arg(&file)
        .env("LC_ALL", "C.UTF-8")
        .env("MANWIDTH", "80");
    let man = man.output().unwrap();
    let mandoc = Command::new("mandoc").args(["-T", "lint", "-W", "style"]).arg(&file).output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&man.stderr), said(&mandoc))
}

fn nobody_who_reads_a_page_complains() {
    for (name, page) in pages() {
        assert_eq!(complaints(&page, &name), "", "{name}");
    }
    let page = &pages()["fence_mark.8"];
    assert!(
        complaints(&page.replacen(".SH", ".SX", 1), "fence_mark.8").contains("SX"),
        "a wrong macro must be seen"
    );
    assert!(
        !complaints(&page.replacen(".TH \"FENCE", ".TH \"fence", 1), "fence_mark.8").is_empty(),
        "a wrong title must be seen"
    );
}

/// `whatis` and `apropos` go by the line below NAME.
fn the_pages_are_found_by_what_they_are() {
    for (name, page) in pages() {
        let room = TempDir::new().unwrap();
        let file = room.path().join(&name);
        fs::write(&file, &page).unwrap();
        let found = said(&Command::new("lexgrog").arg(&file).output().unwrap());
        let (own, _) = name.rsplit_once('.').unwrap();
        assert!(found.contains(&format!(": \"{own} - ")), "{found}");
    }
}

/// What bash offers behind these words.
fn offered(script: &Path, words: &[&str]) -> BTreeSet<String> {
    let driver = r#"source "$1"; shift
        function=$(complete -p nova-host-alerter | sed 's/.*-F \([^ ]*\) .*/\1/')
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
        "$function" nova-host-alerter "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let output = Command::new("bash")
        .args(["--norc", "-c", driver, "bash"])
        .arg(script)
        .arg("nova-host-alerter")
        .args(words)
        .output()
        .unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Every command and every option of the built program, behind each command; a word that was begun, and a value of a few.
fn bash_completes_what_clap_has() {
    let script = source(COMPLETIONS).join("nova-host-alerter.bash");
    let mut of_command: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, option) in options_of_the_alerter() {
        let is_a_value = option.starts_with(char::is_uppercase);
        of_command.entry(path).or_default().extend((!is_a_value).then_some(option));
    }
    assert!(of_command.len() > 15, "{of_command:?}");
    for (path, options) in &of_command {
        let words: Vec<&str> = path.split(' ').filter(|word| !word.is_empty()).chain([""]).collect();
        let offered = offered(&script, &words);
        assert!(
            options.is_subset(&offered),
            "{path}: {:?}",
            options.difference(&offered).collect::<Vec<_>>()
        );
    }
    assert_eq!(offered(&script, &["sta"]), BTreeSet::from(["status".to_owned()]));
    assert_eq!(offered(&script, &["maintenance", "be"]), BTreeSet::from(["begin".to_owned()]));
    assert_eq!(offered(&script, &["history", "export", "--format", "c"]), BTreeSet::from(["csv".to_owned()]));

    let room = TempDir::new().unwrap();
    let old = room.path().join("old.bash");
    fs::write(&old, fs::read_to_string(&script).unwrap().replace(" --online", "")).unwrap();
    assert!(
        !offered(&old, &["check-config", ""]).contains("--online"),
        "a script without an option must be seen"
    );
}

/// fish completes by itself; zsh, which wants a terminal for that, reads its file.
fn zsh_and_fish_complete_too() {
    let directory = source(COMPLETIONS);
    let zsh = Command::new("zsh").arg("-n").arg(directory.join("_nova-host-alerter")).output().unwrap();
    assert!(zsh.status.success() && said(&zsh).is_empty(), "{zsh:?}");
    assert!(text(&format!("{COMPLETIONS}/_nova-host-alerter")).starts_with("#compdef nova-host-alerter\n"));
    let room = TempDir::new().unwrap();
    let ask = |line: &str| {
        let mut fish = Command::new("fish");
        fish.args(["--no-config", "-c", "source $argv[1]; complete --do-complete $argv[2]"]);
        let output = fish
            .arg(directory.join("nova-host-alerter.fish"))
            .arg(line)
            .env("HOME", room.path())
            .output()
            .unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ask("nova-host-alerter sta"), ["status"]);
    assert_eq!(ask("nova-host-alerter check-config --on"), ["--online"]);
    assert_eq!(ask("nova-host-alerter no-such-command --on"), [""; 0]);
}
