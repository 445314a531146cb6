//! The agent under a real fencer: corosync and `pacemaker-fenced` in namespaces of their own, without a CIB manager, so
//! that the CIB comes from the file. Nothing outside of the namespaces is touched.

use std::fs;
use std::process::Command;

use crate::common::{AGENT, Outcome, Store, World, have_files, have_namespaces, run};
use samples::left_out::lacks;

const FENCER: &str = "/usr/lib/pacemaker/pacemaker-fenced";

/// A power device that writes down how it was called.
const POWER: &str = r#"#!/bin/sh
input=$(cat)
action=$(printf '%s\n' "$input" | sed -n 's/^action=//p')
case "${1:-$action}" in
-o|metadata) cat <<'XML'
<?xml version="1.0" ?>
<resource-agent name="fence_power" shortdesc="x"><longdesc>x</longdesc><vendor-url></vendor-url><parameters>
<parameter name="plug" unique="0" required="0"><getopt mixed="-n"/><content type="string"/><shortdesc lang="en">x</shortdesc></parameter>
</parameters><actions><action name="on"/><action name="off"/><action name="reboot"/><action name="monitor"/><action name="metadata"/></actions></resource-agent>
XML
;;
*) echo "power $action" >> /run/calls ;;
esac
"#;

/// The agent, with what it is given written down first.
const MARK: &str = r#"#!/bin/sh
test $# -eq 0 || exec /usr/sbin/fence_mark.real "$@"
cat > /run/input.$$
action=$(sed -n 's/^action=//p' /run/input.$$)
test "$action" = metadata || { echo "mark $action" >> /run/calls; cp /run/input.$$ /run/input; }
exec /usr/sbin/fence_mark.real < /run/input.$$
"#;

const COROSYNC: &str = "totem {\n version: 2\n cluster_name: one\n transport: udpu\n token: 1000\n}\nlogging {\n to_stderr: no\n to_logfile: yes\n logfile: /var/log/corosync.log\n}\n\
    quorum {\n provider: corosync_votequorum\n expected_votes: 1\n}\nnodelist {\n node {\n name: ctl1\n nodeid: 1\n ring0_addr: 127.0.0.1\n }\n}\n";

const START: &str = r#"
hostname ctl1; ip link set lo up
mount -t tmpfs none /dev/shm; mount -t tmpfs none /run; mount -t tmpfs none /var/log
mount -t tmpfs none /var/lib/pacemaker; mount -t tmpfs none /var/lib/corosync
mkdir -p /var/lib/pacemaker/cib /var/lib/pacemaker/cores /var/log/pacemaker /run/crm
chown hacluster:haclient /run/crm /var/lib/pacemaker/cores
wait_for() { n=0; until "$@" > /dev/null 2>&1; do n=$((n+1)); test $n -lt 600 || { echo "no $*" >&2; cat /var/log/*.log >&2; exit 99; }; sleep 0.05; done; }
corosync -f & wait_for corosync-cfgtool -s
alone=--stand-alone-w-cpg; /usr/lib/pacemaker/pacemaker-fenced --help | grep -q -e "$alone" || alone=--stand-alone # the name since 3.0
PCMK_logfile=/var/log/fenced.log PCMK_logfacility=none /usr/lib/pacemaker/pacemaker-fenced "$alone" & wait_for stonith_admin -L
cib() { printf '<cib><configuration><resources><primitive id="power" class="stonith" type="fence_power"/><primitive id="mark" class="stonith" type="fence_mark"/></resources><fencing-topology>%s</fencing-topology></configuration></cib>' "$1" > /var/lib/pacemaker/cib/cib.xml; }
GOOD='<fencing-level id="l" target="compute1" index="1" devices="power,mark"/>'
cib "$GOOD"
stonith_admin -R power -a fence_power -o pcmk_host_list=compute1
"#;

/// A controller with a fencer; `script` goes on from there. `None` where there can be none.
fn fencer(script: &str, store: &Store) -> Option<Outcome> {
    if lacks(&["corosync", "stonith_admin", "ip", "corosync-cfgtool"])
        || !have_files(&[FENCER])
        || !have_namespaces()
    {
        return None;
    }
    let world = World::new();
    world.file("usr/sbin/fence_power", POWER, 0o755).file("usr/sbin/fence_mark", MARK, 0o755);
    world.file("usr/sbin/fence_mark.real", fs::read(AGENT).unwrap(), 0o755);
    world.file("etc/corosync/corosync.conf", COROSYNC, 0o644);
    let file = store.dir.path().join("script");
    fs::write(&file, format!("set -e\n{START}\n{script}\n")).unwrap();
    let inner = world.command(&format!("sh {}", file.display()));
    let mut command = Command::new("unshare");
    command.args([
        "-n",
        "-i",
        "-u",
        "-p",
        "-m",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "--propagation",
        "private",
    ]);
    command
        .arg(inner.get_program())
        .args(inner.get_args())
        .env("STORE", store.path())
        .env_remove("PCMK_service");
    Some(run(command, b""))
}

const REGISTER: &str = "stonith_admin -R mark -a fence_mark -o pcmk_host_list=compute1 -o store=$STORE -o create_store=1 -o register=none -o pcmk_off_retries=1";

/// Conformance 33: a failing mark fails the level, is tried as often as configured, and reports the reason once.
#[test]
fn a_mark_that_cannot_be_made_fails_the_level() {
    let store = Store::new();
    let script = format!(
        "{}; stonith_admin -r compute1 -i 1 -v power -v mark
        if stonith_admin -F compute1 2>/dev/null; then exit 90; fi
        grep -c '^mark off' /run/calls; grep -c 'warning: .*fence_mark: compute1 is not marked: ' /var/log/fenced.log; stonith_admin -H compute1 -V",
        REGISTER.replace("$STORE", "/proc/none/marks.db").replace(" -o pcmk_off_retries=1", "")
    );
    let Some(outcome) = fencer(&script, &store) else { return };
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines[..2], ["2", "2"], "two tries, each reported once: {outcome:?}");
    assert!(!outcome.stdout.contains("imer expired") && !outcome.stdout.contains("imed out"), "{outcome:?}");
}

/// Conformance 34: killed by the fencer with its whole process group, it leaves a journal that works.
#[test]
fn killed_by_the_fencer_it_leaves_a_usable_journal() {
    let store = Store::filled();
    let script = format!(
        "{REGISTER} -o delay=1000 -o pcmk_off_timeout=1; stonith_admin -r compute1 -i 1 -v power -v mark
        if stonith_admin -F compute1 2>/dev/null; then exit 90; fi
        stonith_admin -D mark; {REGISTER}; stonith_admin -F compute1"
    );
    let Some(outcome) = fencer(&script, &store) else { return };
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(store.fencings().len(), 2);
}
