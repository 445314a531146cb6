//! What stands in the register as a controller of the lab sees it, with that controller's key.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use marks::register::{Apart, Entries, Key, Register, Unsealed, Why};
use register::Access;
use site::{CONFIG_PATH, keys_beside, seal_keys};

use super::{LIFETIME, Lab, disk};

const PATIENCE: Duration = Duration::from_secs(20);
const SEALED: &str = "sealed";
const UNSEALED: &str = "unsealed";
const APART: &str = "apart";

/// `REGISTER`: prints a line for each entry.
///
/// # Errors
/// It cannot be read.
pub(super) fn print(arguments: &[String]) -> anyhow::Result<u8> {
    let register = arguments.first().and_then(|word| Register::parse(word)).context("no register")?;
    let (keys, _) = keys_beside(CONFIG_PATH.as_ref());
    let entries = Access { keys, ..Access::to(register, None) }.read(Instant::now() + PATIENCE)?;
    for (key, entry) in &entries.sound {
        let seal = match entries.unsealed.contains_key(key) {
            true => UNSEALED,
            false if entries.sealed.contains(key) => SEALED,
            false => "passed",
        };
        println!("{seal} {key} {}", entry.value());
    }
    entries.apart.iter().for_each(|apart| println!("{APART} {} -", apart.key));
    Ok(0)
}

impl Lab {
    /// What stands in the register as this controller sees it.
    ///
    /// # Errors
    /// It cannot be read there.
    pub fn register(&self, controller: &str, register: Register) -> anyhow::Result<Entries> {
        let said = self.exec(controller, &[LIFETIME, "read", register.as_str()])?.success()?;
        let mut entries = Entries::default();
        for line in said.lines() {
            let [seal, key, value] =
                line.split(' ').collect::<Vec<_>>().try_into().ok().context("no line")?;
            if seal == APART {
                entries.apart.push(Apart::new(key, Why::Key));
                continue;
            }
            entries.take(key, value);
            let known = Key::parse(key).context("no key")?;
            if seal == SEALED {
                entries.sealed.insert(known);
            } else if seal == UNSEALED {
                entries.unsealed.insert(known, Unsealed::Unknown);
            }
        }
        Ok(entries)
    }

    /// The same of a CIB that was found on a disk.
    ///
    /// # Errors
    /// It is not whole.
    pub fn register_in(&self, controller: &str, cib: &str) -> anyhow::Result<Entries> {
        let etc = disk::node_directory(self.directory(), controller).join("etc");
        let (keys, _) = seal_keys(Path::new("/none"), &etc.join("corosync/authkey"));
        Ok(Access { keys, ..Access::to(Register::Cib, None) }.find_in_cib(cib)?.entries)
    }
}
