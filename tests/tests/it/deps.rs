//! `make deps` on a machine where a package is missing: installed, but neither started nor enabled.
//!
//! The machine is this one behind overlay mounts, with corosync removed; the archive is a stand-in that offers a
//! package with the real one's maintainer script.

use std::fs;
use std::process::Command;

use tempfile::TempDir;
use tests::installed;
use tests::trials::Group;

const TOOLS: [&str; 5] = ["dpkg-deb", "deb-systemd-helper", "update-rc.d", "corosync", "unshare"];

/// Its tests, and why they cannot run here, if they cannot.
pub(crate) fn group() -> Group {
    let tests = tests::trials![
        what_is_installed_is_neither_started_nor_enabled,
        a_killed_run_is_repaired_by_the_next,
        without_the_care_it_would_be_enabled,
        nothing_is_done_when_all_is_there,
        what_the_benchmarks_need_is_asked_for_by_a_word_of_its_own,
    ];
    Group { cannot: installed::cannot(&TOOLS), tests }
}

/// Overlays over `/etc`, `/usr` and `/var`, whose upper layers end with the mount namespace; then the steps in `$2`.
const MACHINE: &str = r#"
    mount -t tmpfs tmpfs "$1"
    cd "$1"
    mkdir -p package/DEBIAN package/lib/systemd/system package/etc/init.d bin
    cp /var/lib/dpkg/info/corosync.postinst package/DEBIAN/postinst
    printf 'Package: corosync\nVersion: 99\nArchitecture: all\nMaintainer: test <test@example.org>\nDescription: test\n' \
        > package/DEBIAN/control
    cp /lib/systemd/system/corosync.service package/lib/systemd/system/
    cp /etc/init.d/corosync package/etc/init.d/
    dpkg-deb -b package corosync.deb >/dev/null
    cat > bin/apt-get <<END
#!/bin/sh
[ "\$1" = install ] || exit 0
[ ! -e "$1/die" ] || { kill -9 \$PPID; exit 1; }
/usr/sbin/policy-rc.d corosync start || echo "starts are forbidden: \$?"
dpkg -i "$1/corosync.deb"
END
    chmod +x bin/apt-get
    for directory in etc usr var; do
        mkdir -p "upper/$directory" "work/$directory"
        mount -t overlay -o "lowerdir=/$directory,upperdir=$1/upper/$directory,workdir=$1/work/$directory" overlay "/$directory"
    done
    cd /
    dpkg --force-all --purge corosync >/dev/null 2>&1
    rm -f /usr/sbin/policy-rc.d
    PATH=$1/bin:$PATH
    enabled() { find /etc/systemd/system /etc/rc[2-5].d -name '*corosync*' ! -name 'K*'; }
    eval "$2"
"#;

/// Runs the steps on such a machine; `DEPS` stands for the script under test.
fn on_a_machine(deps: &str, steps: &str) -> String {
    let (room, script) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let file = script.path().join("install.sh");
    fs::write(&file, deps).unwrap();
    let steps = steps.replace("DEPS", &format!("sh {}", file.display()));
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "--", "sh", "-c", MACHINE, "sh"]);
    let output = command.arg(room.path()).arg(steps).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn install_script() -> String {
    fs::read_to_string(installed::source("tests/deps/install.sh")).unwrap()
}

fn what_is_installed_is_neither_started_nor_enabled() {
    let said = on_a_machine(
        &install_script(),
        "DEPS && dpkg-query -W corosync && echo enabled: $(enabled); test ! -e /usr/sbin/policy-rc.d",
    );
    let announced = said.find("starts and enables nothing of them: corosync").unwrap();
    assert!(announced < said.find("Unpacking corosync").unwrap(), "it is said first:\n{said}");
    assert!(said.contains("starts are forbidden: 101"), "{said}");
    assert!(said.contains("corosync\t99\nenabled:\n"), "{said}");
}

/// A run that was killed leaves the prohibition of starts behind, and the machine's own rule set aside.
fn a_killed_run_is_repaired_by_the_next() {
    let steps = r#"echo '# the own rule' > /usr/sbin/policy-rc.d; touch "$1/die"; DEPS; rm "$1/die"
        grep -c 'make deps' /usr/sbin/policy-rc.d; DEPS; cat /usr/sbin/policy-rc.d; ls /usr/sbin/policy-rc.d*"#;
    let said = on_a_machine(&install_script(), steps);
    assert!(said.contains("\n1\nmake deps"), "the killed run leaves its prohibition:\n{said}");
    assert!(said.ends_with("# the own rule\n/usr/sbin/policy-rc.d\n"), "{said}");
}

/// The package does enable itself: the test above would catch a script that does not prevent it.
fn without_the_care_it_would_be_enabled() {
    let careless = install_script().replace("disable_new \"$work/before\"", "true");
    let said = on_a_machine(&careless, "DEPS && echo enabled: $(enabled)");
    assert!(said.contains("multi-user.target.wants/corosync.service"), "{said}");
    assert!(said.contains("S01corosync"), "{said}");
}

fn nothing_is_done_when_all_is_there() {
    let said = on_a_machine(&install_script(), r#"dpkg -i "$1/corosync.deb" >/dev/null 2>&1; DEPS"#);
    assert_eq!(said, "make deps: all packages are there\n");
}

fn what_the_benchmarks_need_is_asked_for_by_a_word_of_its_own() {
    let packages = "bench_packages='nginx wrk'";
    assert!(install_script().contains(packages));
    let script = install_script().replace(packages, "bench_packages='corosync'");
    let said = on_a_machine(&script, "DEPS bench && echo enabled: $(enabled)");
    assert!(
        said.starts_with(
            "make bench-deps: installs these packages, and starts and enables nothing of them: corosync \n"
        ),
        "{said}"
    );
    assert!(said.ends_with("make bench-deps: done\nenabled:\n"), "{said}");
}
