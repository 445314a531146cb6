//! The checks. Each runs in a child with nothing of its parent's, and is remembered while it hangs. What it found is its exit code.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use nix::libc;

use crate::settings::{KERNEL, Kind, Target};
use crate::tools::own;

/// What a child's words begin with.
pub(crate) const WORD: &str = "check";
/// An exit code from here on is no error of the system.
const FOUND: i32 = 200;
/// That of a bond which lost a leg and has carrier: that is shown, and is no failure.
const LEG: i32 = 199;

/// A check with all that is remembered of it.
#[derive(Debug)]
pub(crate) struct Check {
    target: Target,
    /// How things were when the checker started.
    then: String,
    child: Option<(Child, Instant)>,
    failing: Option<Instant>,
    lost_leg: bool,
    said: String,
    /// Whether it was good since the checker started: else it says nothing new.
    pub(crate) was_good: bool,
}

impl Check {
    pub(crate) fn new(target: Target) -> Self {
        let then = match target.kind {
            Kind::Directory => mount_of(&target.name).unwrap_or_default(),
            Kind::Kernel => counts().map(|count| count.to_string()).join(" "),
            Kind::Device | Kind::Link | Kind::Process => String::new(),
        };
        Self {
            target,
            then,
            child: None,
            failing: None,
            lost_leg: false,
            said: String::new(),
            was_good: false,
        }
    }

    /// Begins a look, but where the last one still hangs.
    pub(crate) fn begin(&mut self, host: &str, now: Instant) {
        if self.child.is_some() {
            return;
        }
        match own(&[WORD, self.target.kind.word(), &self.target.name, &self.then, host]).env_clear().spawn() {
            Ok(child) => self.child = Some((child, now)),
            Err(error) if self.target.kind == Kind::Process => self.fails(error.to_string(), now),
            // Another check's matter: of this one nothing is known.
            Err(_) => {}
        }
    }

    /// Takes what a look found that has ended.
    pub(crate) fn end(&mut self) {
        let Some((child, begun)) = &mut self.child else { return };
        let begun = *begun;
        let Ok(Some(ended)) = child.try_wait() else { return };
        self.child = None;
        self.lost_leg = self.target.kind == Kind::Link && ended.code() == Some(LEG);
        match ended.code() {
            Some(code) if code == 0 || self.lost_leg => (self.failing, self.was_good) = (None, true),
            Some(code) => self.fails(meaning(self.target.kind, code), begun),
            None if self.target.kind == Kind::Process => self.fails("it was killed".to_owned(), begun),
            // Somebody killed it.
            None => {}
        }
    }

    fn fails(&mut self, said: String, at: Instant) {
        self.failing.get_or_insert(at);
        self.said = said;
    }

    /// Time that nobody watched does not count.
    pub(crate) fn forget_time(&mut self, now: Instant) {
        self.failing = self.failing.map(|_| now);
        self.child = self.child.take().map(|(child, _)| (child, now));
    }

    /// For how long it fails or has not answered.
    pub(crate) fn failing_for(&self, now: Instant) -> Duration {
        let since = self.failing.into_iter().chain(self.child.as_ref().map(|(_, begun)| *begun)).min();
        since.map_or(Duration::ZERO, |since| now.duration_since(since))
    }

    /// Whether other hosts should hear of it: it fails, or has not answered for half of the time after which it counts.
    pub(crate) fn is_suspect(&self, now: Instant) -> bool {
        let half = (self.target.after / 2).max(Duration::from_secs(1));
        self.failing.is_some() || self.failing_for(now) >= half
    }

    /// Whether it counts as failed.
    pub(crate) fn counts(&self, now: Instant) -> bool {
        self.is_suspect(now) && self.failing_for(now) >= self.target.after
    }

    /// What is worth a look and does not count.
    pub(crate) fn hint(&self) -> Option<String> {
        self.lost_leg.then(|| format!("{} has lost a leg; none is fenced for that", self.target.name))
    }

    /// Whether its look may end at any moment.
    pub(crate) fn is_young(&self, now: Instant) -> bool {
        self.child.as_ref().is_some_and(|(_, begun)| now.duration_since(*begun) < Duration::from_secs(1))
    }

    /// What the other hosts hear.
    pub(crate) fn word(&self) -> String {
        let plain =
            |letter: char| if letter.is_ascii_graphic() && !"\"<>&'".contains(letter) { letter } else { '_' };
        format!("{} {}", self.target.kind.word(), self.target.name.chars().map(plain).collect::<String>())
    }

    /// What people read.
    pub(crate) fn text(&self, now: Instant) -> String {
        let (name, seconds) = (&self.target.name, self.failing_for(now).as_secs());
        match (self.failing, self.target.kind) {
            (None, _) => format!("{name} has not answered for {seconds} s"),
            (Some(_), Kind::Kernel) => self.said.clone(),
            (Some(_), Kind::Process) => format!("no process can be started for {seconds} s: {}", self.said),
            (Some(_), _) => format!("{name} {} for {seconds} s", self.said),
        }
    }
}

/// What an exit code of a check says.
fn meaning(kind: Kind, code: i32) -> String {
    match kind {
        Kind::Kernel if code > FOUND => {
            let said = KERNEL.iter().filter(|(_, bit, _)| (code - FOUND) & bit != 0).map(|(.., text)| *text);
            said.collect::<Vec<_>>().join(", ")
        }
        Kind::Directory if code == FOUND => "has not been the mount that it was".to_owned(),
        Kind::Link if code == FOUND => "has had no carrier".to_owned(),
        _ => format!("has failed ({})", io::Error::from_raw_os_error(code)),
    }
}

/// In the child: looks, and gives the exit code.
pub(crate) fn look(words: &[String]) -> u8 {
    let [kind, name, then, host] = words else { return 255 };
    let found = match Kind::parse(kind) {
        Some(Kind::Directory) => directory(name, then, host),
        Some(Kind::Device) => device(name),
        Some(Kind::Link) => link(name),
        Some(Kind::Kernel) => Ok(kernel(name, then)),
        Some(Kind::Process) => Ok(0),
        None => Ok(255),
    };
    let code = found.unwrap_or_else(|error| error.raw_os_error().unwrap_or(libc::EIO));
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// Writes and flushes a file of this host's, for a directory may be shared. Whoever else may write there leads it nowhere.
fn directory(name: &str, then: &str, host: &str) -> io::Result<i32> {
    let path = Path::new(name).join(format!(".compute-health.{}", host.replace('/', "_")));
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags)
        .open(path)?;
    let is = file.metadata()?;
    if !is.is_file() || is.nlink() != 1 {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    file.write_all(&[b'.'; 512])?;
    file.sync_all()?;
    Ok(if mount_of(name)? == then { 0 } else { FOUND })
}

/// The innermost mount point of a path.
fn mount_of(path: &str) -> io::Result<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    let above = points.filter(|point| Path::new(path).starts_with(point));
    Ok(above.max_by_key(|point| point.len()).unwrap_or("/").to_owned())
}

/// As the kernel wants it for a read past its cache.
#[repr(align(4096))]
struct Page([u8; 4096]);

fn device(name: &str) -> io::Result<i32> {
    let mut page = Page([0; 4096]);
    let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT | libc::O_NONBLOCK).open(name);
    file?.read_exact(&mut page.0).map(|()| 0)
}

/// A bond has carrier while one of its legs has.
fn link(name: &str) -> io::Result<i32> {
    let carrier = fs::read_to_string(format!("/sys/class/net/{name}/carrier"));
    // One that is down cannot be read.
    match carrier {
        Ok(text) if text.trim() == "1" => Ok(if has_its_legs(name) { 0 } else { LEG }),
        Ok(_) => Ok(FOUND),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(FOUND),
        Err(error) => Err(error),
    }
}

/// What is no bond has none.
fn has_its_legs(name: &str) -> bool {
    let read = |path: &str| fs::read_to_string(format!("/sys/class/net/{path}")).unwrap_or_default();
    let is_up = |leg: &str| read(&format!("{leg}/bonding_slave/mii_status")).trim() == "up";
    read(&format!("{name}/bonding/slaves")).split_whitespace().all(is_up)
}

/// What of these has come since the checker started.
fn kernel(names: &str, then: &str) -> i32 {
    let mut before = then.split(' ').map(|count| count.parse::<u64>().unwrap_or(u64::MAX));
    let is_more = counts().map(|count| count > before.next().unwrap_or(u64::MAX));
    let come = KERNEL.iter().zip(is_more).filter(|(_, is_more)| *is_more).map(|(row, _)| row);
    let bits: i32 = come.filter(|(name, ..)| names.split(' ').any(|one| one == *name)).map(|row| row.1).sum();
    if bits == 0 { 0 } else { FOUND + bits }
}

/// In the order of [`KERNEL`]. What this kernel does not count stays zero.
fn counts() -> [u64; 4] {
    let read = |path: &Path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let tainted = read(Path::new("/proc/sys/kernel/tainted")).unwrap_or(0);
    let controllers = fs::read_dir("/sys/devices/system/edac/mc").into_iter().flatten().flatten();
    let memory = controllers.filter_map(|one| read(&one.path().join("ue_count"))).sum();
    let hung = read(Path::new("/proc/sys/kernel/hung_task_detect_count")).unwrap_or(0);
    [tainted >> 7 & 1, tainted >> 4 & 1, memory, hung]
}
