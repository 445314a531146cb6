//! The files on a controller's disk, and the commands that the documents give.

use std::collections::BTreeSet;

use anyhow::Context;
use tests::installed::source;

use crate::cloud::Cloud;

/// Names, owners and modes, and what is in /etc, without what belongs to dpkg, apt, the cluster, crmsh and the log.
const LISTING: &str = r"
    cd /
    { find . -xdev \( -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/lib/pacemaker -o -path ./var/lib/corosync \
        -o -path ./var/cache -o -path ./var/log -o -path ./var/tmp -o -path ./tmp -o -path ./proc -o -path ./sys -o -path ./dev \
        -o -path ./run -o -path ./root/.cache -o -path ./root/.config \) -prune -o -printf '%p %y %U:%G %m %l\n'
      find ./etc -type f -exec sha256sum {} +; } | LC_ALL=C sort";

pub(crate) fn listing(cloud: &Cloud, controller: &str) -> anyhow::Result<String> {
    cloud.run(controller, LISTING)
}

/// Lines that one of the two alone has.
pub(crate) fn difference(before: &str, after: &str) -> Vec<String> {
    let [before, after] = [before, after].map(|text| text.lines().collect::<BTreeSet<_>>());
    let gone = before.difference(&after).map(|line| format!("- {line}"));
    gone.chain(after.difference(&before).map(|line| format!("+ {line}"))).collect()
}

/// The commands of the block behind `<!-- test: TOOL -->`, without comments.
pub(crate) fn documented(document: &str, tool: &str) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(source(document))?;
    let missing = || format!("{document} has no block for {tool}");
    let (_, behind) = text.split_once(&format!("<!-- test: {tool} -->")).with_context(missing)?;
    let block = behind.split("```").nth(1).with_context(missing)?;
    let commands =
        block.lines().map(|line| line.split_once(" #").map_or(line, |(command, _)| command).trim());
    Ok(commands.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n"))
}
