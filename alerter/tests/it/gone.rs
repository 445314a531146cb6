//! What the configuration had once: it is refused, and the message names what serves instead.

use site::GONE;

use crate::config::Site;

/// A configuration with each of them, in the order of the table.
const WRITTEN: &[&str] = &[
    "[recovery]\ninterval = 10",
    "[notice.oncall]\nto = \"syslog\"",
    "[vitrage.alarms]\ncloud = \"one\"",
    "[groups.a]\nhosts = [\"a\"]\n[groups.a.confirm.tcp.ssh]\nport = 22\n[groups.a.confirm.exec.b]\ncommand = [\"/bin/sh\", \"{nodename}\"]",
    "[groups.a]\nhosts = [\"a\"]\n[groups.a.confirm.pacemaker-state.node]\n[groups.a.confirm.exec.b]\ncommand = [\"/bin/sh\", \"{nodename}\"]",
    "[log]\nformat = \"rfc5424\"",
    "[log]\nenterprise-number = 32473",
    "[log]\nlines-per-minute = 0",
];

/// S0-46. The broken variant, the list of the known keys, leaves it to the reader to guess what serves instead.
#[test]
fn what_is_gone_is_refused_with_what_serves_instead() {
    assert_eq!(GONE.len(), WRITTEN.len(), "a sample for each row of the table");
    for ((path, instead), text) in GONE.iter().zip(WRITTEN) {
        let said = Site::new(&format!("{text}\n[http.recovery]\nurl = \"https://h/\"\n")).problem();
        let wanted = format!("is gone: {instead}");
        assert!(said.contains(&wanted) && !said.contains("known are"), "{path}: {said}");
        assert_eq!(said.lines().count(), 1, "{path}: {said}");
    }
}
