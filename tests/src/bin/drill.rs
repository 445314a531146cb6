//! `make drill`: a fault is prepared on this machine, an alert is shown as a pager would, and somebody finds out what it is.

use std::fs::{self, File, Permissions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail, ensure};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, setsid};
use tests::faults::{self, Fault, Place, Stand};
use tests::lab::wait;
use tests::programs::built;

/// A forgotten drill ends by itself after this time.
const LONGEST: Duration = Duration::from_secs(900);
/// How long a guard may take to end everything.
const END: Duration = Duration::from_secs(90);
/// What fires of each fault, as it is shipped.
const ALERTS: &str = include_str!("../../../packaging/prometheus/alerts.yml");
const USAGE: &str = "usage: drill [N] | drill begin [N] DIR | drill end DIR [ANSWER] | drill --list
without N one is chosen at random; `begin` returns at once; `end` judges the answer, shows the fault and ends the drill
a wrong answer exits with 1; after 15 minutes a drill ends by itself";

fn main() -> ExitCode {
    let words: Vec<String> = tests::process::words();
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
    let right = |done: anyhow::Result<()>| done.map(|()| true);
    let done = match words.as_slice() {
        ["--list"] => right(list()),
        ["begin", directory] => right(begin(None, Path::new(directory))),
        ["begin", number, directory] => right(begin(Some(number), Path::new(directory))),
        ["end", directory, answer @ ..] => end(Path::new(directory), &answer.join(" ")),
        ["guard", directory] => right(guard(Path::new(directory))),
        [] => play(None),
        [number] if number.parse::<usize>().is_ok() => play(Some(number)),
        _ => Err(anyhow::Error::msg(USAGE)),
    };
    match done {
        Ok(is_right) => ExitCode::from(u8::from(!is_right)),
        Err(error) => {
            eprintln!("drill: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn list() -> anyhow::Result<()> {
    for (at, fault) in faults::ALL.iter().enumerate() {
        let skipped = fault.cannot().map(|why| format!(" (skipped here: {why})")).unwrap_or_default();
        say(&format!("{:2}  {:15} {}{skipped}", at + 1, fault.name, fault.truth));
    }
    Ok(())
}

/// The one that is asked for, or any that this machine can prepare.
fn choose(number: Option<&str>) -> anyhow::Result<usize> {
    let Some(number) = number else {
        let able: Vec<usize> =
            (1..=faults::ALL.len()).filter(|at| faults::ALL[at - 1].cannot().is_none()).collect();
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.subsec_micros();
        return Ok(able[usize::try_from(now)? % able.len()]);
    };
    let count = faults::ALL.len();
    let chosen = number.parse().ok().filter(|at| (1..=count).contains(at));
    chosen.with_context(|| format!("{number} is no fault: they are 1 to {count}"))
}

/// Prepares a fault in a directory of its own and asks on the terminal what it is. Gives whether the answer is right.
fn play(number: Option<&str>) -> anyhow::Result<bool> {
    let room = tempfile::Builder::new().prefix("drill-").tempdir()?;
    let fault = &faults::ALL[choose(number)? - 1];
    let mut guard = Guard::start(room.path(), fault)?;
    let begun = Instant::now();
    say(&alert(fault, room.path())?);
    print!("\nFind out in another shell what is wrong. Then write it here, in one line: ");
    io::stdout().flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    let took = begun.elapsed();
    guard.end()?;
    Ok(judge(answer.trim(), fault, took))
}

fn begin(number: Option<&str>, directory: &Path) -> anyhow::Result<()> {
    let fault = &faults::ALL[choose(number)? - 1];
    if let Some(why) = fault.cannot() {
        bail!("this fault is skipped on this machine: {why}");
    }
    let directory = empty(directory)?;
    let mut guard = Guard::start(&directory, fault)?;
    let text = alert(fault, &directory)?;
    seal(&directory, fault)?;
    guard.leave()?;
    say(&text);
    let own = std::env::current_exe()?;
    say(&format!(
        "\nWhen you know what is wrong:\n\n    {} end {} 'your answer'",
        own.display(),
        directory.display()
    ));
    Ok(())
}

/// The directory, new or as an ended drill left it.
fn empty(directory: &Path) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(directory)?;
    let directory = directory.canonicalize()?;
    if fs::read_to_string(pid_of(&directory)).is_ok_and(|pid| !is_guard(&pid)) {
        fs::remove_dir_all(&directory)?;
        fs::create_dir(&directory)?;
    }
    let is_empty = fs::read_dir(&directory)?.next().is_none();
    let name = directory.display();
    ensure!(
        is_empty,
        "{name} is not empty: take another directory, or `drill end {name}` where a drill runs"
    );
    // Others may pass, as through the directories that a package makes.
    fs::set_permissions(&directory, Permissions::from_mode(0o755))?;
    Ok(directory)
}

fn end(directory: &Path, answer: &str) -> anyhow::Result<bool> {
    let pid = fs::read_to_string(pid_of(directory)).context("no drill was begun there")?;
    let (fault, begun) = unseal(directory).context("the drill in this directory was never ready")?;
    let took = SystemTime::now().duration_since(begun).unwrap_or_default();
    if is_guard(&pid) {
        let _already_gone = kill(Pid::from_raw(pid.parse()?), Signal::SIGTERM);
    }
    wait::until("the drill's end", END, || Ok((!is_guard(&pid)).then_some(())))?;
    Ok(judge(answer, fault, took))
}

/// Whether this process is still ours, and no other that has its number now.
fn is_guard(pid: &str) -> bool {
    fs::read_link(format!("/proc/{pid}/exe")).ok() == std::env::current_exe().ok()
}

/// Keeps which fault it is, and since when, so that it is not read by chance: milliseconds, and two digits behind them.
fn seal(directory: &Path, fault: &Fault) -> anyhow::Result<()> {
    let number = faults::ALL.iter().position(|one| one.name == fault.name).context("no such fault")?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
    Ok(fs::write(sealed(directory), format!("{now}{number:02}"))?)
}

fn unseal(directory: &Path) -> anyhow::Result<(&'static Fault, SystemTime)> {
    let both: u64 = fs::read_to_string(sealed(directory))?.parse()?;
    let fault = faults::ALL.get(usize::try_from(both % 100)?).context("no such fault")?;
    Ok((fault, UNIX_EPOCH + Duration::from_millis(both / 100)))
}

/// Shows the verdict on an answer, and gives whether it is right.
fn judge(answer: &str, fault: &Fault, took: Duration) -> bool {
    let is_right = fault.is_named_by(answer);
    let (verdict, yours) = match (is_right, answer) {
        (_, "") => ("not answered", "none"),
        (true, answer) => ("right", answer),
        (false, answer) => ("wrong: it does not name the fault", answer),
    };
    say(&format!(
        "\nverdict      {verdict}\nyour answer  {yours}\nthe fault    {}: {}\ntime         {} s since the alert",
        fault.name,
        fault.truth,
        took.as_secs()
    ));
    is_right
}

fn sealed(directory: &Path) -> PathBuf {
    directory.join(".drill/begun")
}

fn pid_of(directory: &Path) -> PathBuf {
    directory.join(".drill/guard")
}

/// The process that has everything else, as its parent sees it. It ends with its input, unless that says to stay.
struct Guard {
    child: Child,
}

impl Guard {
    /// Returns when the fault is there and `status` shows it.
    fn start(directory: &Path, fault: &Fault) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("guard").arg(directory).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn()?;
        // Not as an argument: a list of processes would show the answer.
        writeln!(child.stdin.as_mut().context("no pipe to the guard")?, "{}", fault.name)?;
        let said = first_line(child.stdout.take().context("no pipe from the guard")?)?;
        ensure!(said == "ready", "the fault cannot be prepared: {said}");
        Ok(Self { child })
    }

    /// Lets it stay until `drill end`, or its time is over.
    fn leave(&mut self) -> anyhow::Result<()> {
        Ok(writeln!(self.child.stdin.as_mut().context("no pipe to the guard")?, "stay")?)
    }

    fn end(&mut self) -> anyhow::Result<()> {
        drop(self.child.stdin.take());
        self.child.wait()?;
        Ok(())
    }
}

fn first_line(pipe: ChildStdout) -> anyhow::Result<String> {
    let mut line = String::new();
    BufReader::new(pipe).read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

/// Prepares the fault, stays until its end is asked for, and ends all that it has started.
fn guard(directory: &Path) -> anyhow::Result<()> {
    // A Ctrl-C in the terminal is for the parent, whose end we see.
    let _is_leader_already = setsid();
    let mut input = BufReader::new(io::stdin());
    let fault = asked_for(&mut input)?;
    let prepared = prepare(directory, fault);
    let word = prepared
        .as_ref()
        .map_or_else(|error| format!("{error:#}").replace('\n', " "), |_| "ready".to_owned());
    let _nobody_waits = writeln!(io::stdout(), "{word}");
    let _stand = prepared?;
    stay(&mut input, Instant::now() + LONGEST)
}

fn asked_for(input: &mut impl io::BufRead) -> anyhow::Result<&'static Fault> {
    let mut name = String::new();
    input.read_line(&mut name)?;
    faults::ALL.iter().find(|fault| fault.name == name.trim()).context("no such fault")
}

fn prepare(directory: &Path, fault: &Fault) -> anyhow::Result<Stand> {
    fs::create_dir(directory.join(".drill"))?;
    fs::write(pid_of(directory), std::process::id().to_string())?;
    let stand = (fault.prepare)(Place::At(directory))?;
    stand.until_noticed()?;
    commands(directory, &stand)?;
    Ok(stand)
}

/// Until the end of the input (unless it says to stay), or the time is over.
fn stay(input: &mut BufReader<io::Stdin>, limit: Instant) -> anyhow::Result<()> {
    let stdin = io::stdin();
    let mut sources = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    let mut line = String::new();
    let longest = || PollTimeout::try_from(limit.saturating_duration_since(Instant::now()));
    if poll(&mut sources, longest().unwrap_or(PollTimeout::MAX))? > 0 && input.read_line(&mut line)? > 0 {
        thread::sleep(limit.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

/// The commands of an operator, for this installation alone.
fn commands(directory: &Path, stand: &Stand) -> anyhow::Result<()> {
    let bin = directory.join("bin");
    fs::create_dir(&bin)?;
    let inside = stand.site.apart().map(|apart| apart.entering().join(" ")).unwrap_or_default();
    let alerter = format!(
        "exec {inside} '{}' --config '{}' \"$@\"",
        built("nova-host-alerter")?.display(),
        stand.site.config().display()
    );
    command(&bin, "nova-host-alerter", &alerter)?;
    command(&bin, "journalctl", &JOURNALCTL.replace("LOG", &directory.join("log").display().to_string()))?;
    command(&bin, "crm_mon", "echo 'drill: this controller stands alone, there is no Pacemaker here'")?;
    command(&bin, "crm_resource", "echo 'drill: this controller stands alone, there is no Pacemaker here'")?;
    if !inside.is_empty() {
        for name in ["df", "ls", "du", "mount"] {
            command(&bin, name, &format!("exec {inside} /bin/{name} \"$@\""))?;
        }
    }
    Ok(())
}

fn command(bin: &Path, name: &str, script: &str) -> anyhow::Result<()> {
    let path = bin.join(name);
    write!(File::create(&path)?, "#!/bin/sh\n{script}\n")?;
    Ok(fs::set_permissions(path, Permissions::from_mode(0o755))?)
}

/// The alerter's log as the system's journal would show it.
const JOURNALCTL: &str = r#"pattern=. lines=1000 follow=
while test $# -gt 0; do
  case $1 in
  -g|--grep) pattern=$2; shift ;;
  --grep=*) pattern=${1#*=} ;;
  -n|--lines) lines=$2; shift ;;
  -n*) lines=${1#-n} ;;
  --lines=*) lines=${1#*=} ;;
  -f|--follow) follow=1 ;;
  -t|-u|-p|-S|-U|-o|--since|--until) shift ;;
  esac
  shift
done
test -e 'LOG' || exit 0
test -z "$follow" || exec tail -n "$lines" -F 'LOG'
grep -iE -- "$pattern" 'LOG' | tail -n "$lines""#;

/// What the pager says, and the way to the terminal.
fn alert(fault: &Fault, directory: &Path) -> anyhow::Result<String> {
    let (rule, labels) = fault.alert;
    let controller = nix::unistd::gethostname()?.to_string_lossy().into_owned();
    let (severity, summary, description) = rule_of(rule)?;
    let fill = |text: String| {
        let filled = text.replace("{{ $labels.instance }}", &controller);
        labels
            .iter()
            .fold(filled, |text, (name, value)| text.replace(&format!("{{{{ $labels.{name} }}}}"), value))
    };
    let (summary, description) = (fill(summary), fill(description));
    Ok(format!(
        "[FIRING] {rule} ({severity})\n{summary}\n{description}\n\n\
         (A drill: the fault is some seconds old, where the alert would come after minutes.)\n\n\
         You are root on {controller}. This shell line takes you there; then `nova-host-alerter status`, `show`, `retry` … and\n\
         `journalctl` work as they are typed:\n\n    export PATH={}/bin:$PATH",
        directory.display()
    ))
}

/// Severity, summary and description of a rule.
fn rule_of(name: &str) -> anyhow::Result<(String, String, String)> {
    let (_, rest) =
        ALERTS.split_once(&format!("- alert: {name}\n")).with_context(|| format!("no rule {name}"))?;
    let key = |key: &str| {
        let line = rest.lines().find_map(|line| line.trim().strip_prefix(key));
        let text = line.with_context(|| format!("{name} has no {key}"))?.trim();
        Ok::<_, anyhow::Error>(text.trim_matches('\'').replace("''", "'"))
    };
    Ok((key("severity:")?, key("summary:")?, key("description:")?))
}

fn say(text: &str) {
    println!("{text}");
}
