//! `make mutants`: puts each old rule back into a copy of the project and asks the tests for it. One that they do not find, or
//! that does not compile, fails the run. A word on the command line chooses the rules whose names hold it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;
use std::{env, fs};

use anyhow::{Context, bail};
use tests::mutants::{MUTANTS, Mutant, PACKAGES, misfits, put};

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("mutants: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<bool> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the crate has no parent")?;
    let wanted = tests::process::words().into_iter().next().unwrap_or_default();
    let chosen: Vec<&Mutant> = MUTANTS.iter().filter(|mutant| mutant.name.contains(&wanted)).collect();
    if let Some(why) = chosen.iter().find_map(|mutant| misfits(root, mutant).pop()) {
        bail!("{why}");
    }
    let target = target(root).join("mutants");
    let copy = target.join("project");
    make_copy(root, &copy)?;
    let mut survivors = Vec::new();
    for mutant in &chosen {
        let begun = Instant::now();
        put(&copy, mutant, true)?;
        let found = is_found(&copy, &target, mutant)?;
        put(&copy, mutant, false)?;
        let word = if found { "found" } else { "NOT FOUND" };
        println!("{word}: {} ({} s)", mutant.name, begun.elapsed().as_secs());
        if !found {
            survivors.push(mutant.name);
        }
    }
    println!("{} of {} old rules are found", chosen.len() - survivors.len(), chosen.len());
    Ok(survivors.is_empty())
}

fn target(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// What git has of the project, as it lies there now. Files that are the same are left alone: they need not be compiled again.
fn make_copy(root: &Path, copy: &Path) -> anyhow::Result<()> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output().context("git")?;
    for name in String::from_utf8(listed.stdout)?.split('\0').filter(|name| !name.is_empty()) {
        let (from, to) = (root.join(name), copy.join(name));
        let Ok(text) = fs::read(&from) else { continue };
        if fs::read(&to).is_ok_and(|there| there == text) {
            continue;
        }
        fs::create_dir_all(to.parent().context("every file is in a directory")?)?;
        fs::copy(&from, &to).with_context(|| format!("{name} cannot be copied"))?;
    }
    Ok(())
}

/// Whether a test fails. All must compile.
fn is_found(copy: &Path, target: &Path, mutant: &Mutant) -> anyhow::Result<bool> {
    let cargo = |more: &[&str]| {
        let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(program);
        let packages = PACKAGES.iter().flat_map(|(name, _)| ["-p", name]);
        command.args(["test", "--locked", "--quiet", "--lib", "--test", "it"]).args(packages).args(more);
        command.current_dir(copy).env("CARGO_TARGET_DIR", target).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().context("cargo")
    };
    if !cargo(&["--no-run"])?.success() {
        bail!("with the old rule `{}` the project does not compile", mutant.name);
    }
    let words: Vec<&str> = std::iter::once("--").chain(mutant.tests.iter().copied()).collect();
    Ok(!cargo(&words)?.success())
}
