//! How options are passed: standard input and the command line, and all their faults.

use std::os::unix::net::UnixDatagram;
use std::process::Stdio;
use std::{fs, thread};

use crate::common::{AGENT, Outcome, Store, World, agent, call, call_with, run, start};

/// Conformance 9: with arguments, standard input is not read: not even one that never ends.
#[test]
fn with_arguments_standard_input_is_not_read() {
    let store = Store::new();
    let mut command = agent();
    command.args(["-o", "metadata"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    // The pipe stays open until the agent has ended by itself.
    assert_eq!(child.wait().unwrap().code(), Some(0));
    drop(child.stdin.take());
    let mut command = agent();
    command.arg("-v");
    run(command, store.off("nodename=compute1").as_bytes()).is_one_line_failure("no action was given");
    assert!(store.fencings().is_empty());
}

/// Conformance 10: space, carriage returns, comments, quotes, dashes, any order.
#[test]
fn standard_input_is_read_as_fence_agents_read_it() {
    let store = Store::new();
    let path = store.path().display().to_string();
    let input = format!(
        "# a comment\r\n\n   no-shared-storage=no\r\n  domain=\"my.cloud.com\"\n;x=y\nplug=wrong\nregister=none\nplug=compute1\n\tstore={path}  \ncreate-store=1\naction=\"OFF\"\n"
    );
    let outcome = call(&input);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let fencing = store.fencings().pop().unwrap();
    assert_eq!((fencing.node.as_str(), fencing.given_domain.as_deref()), ("compute1", Some("my.cloud.com")));
    assert_eq!(fencing.given_shared_storage, Some(true));
}

/// Conformance 14: no action stands for another one, and a mark needs a host that is named.
#[test]
fn without_action_or_host_nothing_is_marked() {
    let store = Store::new();
    let place = store.place();
    for (input, needle) in [
        (String::new(), "no action"),
        ("\n".to_owned(), "no action"),
        (format!("{place}nodename=compute1\n"), "no action"),
        (format!("{place}nodename=compute1\naction=\n"), "no action"),
        (format!("{place}nodename=compute1\naction\n"), "no action"),
        (format!("{place}nodename=compute1\nACTION=off\n"), "no action"),
        (format!("{place}nodename=compute1\naction =off\n"), "no action"),
        (format!("{place}nodename=compute1\naction= off\n"), "Unrecognised action"),
        (format!("{place}nodename=compute1\naction='off'\n"), "Unrecognised action"),
        (format!("{place}action=off\n"), "no host was given"),
        (format!("{place}action=off\nnodename=\nplug=\nport=\n"), "no host was given"),
        (format!("{place}action=off\nhost=compute1\n"), "no host was given"),
    ] {
        call(&input).is_one_line_failure(needle);
    }
    call_with(["-n", "compute1"]).is_one_line_failure("no action");
    call_with(["-o", "off"]).is_one_line_failure("no host was given");
    assert!(!store.directory().exists());
}

/// Conformance 15: broken text, NUL, over-long values: exit 1, and nothing of it counts.
#[test]
fn broken_input_marks_nothing() {
    let store = Store::new();
    let broken = |more: &[u8]| run(agent(), &[store.off("nodename=compute1").as_bytes(), more].concat());
    broken(b"domain=\xff\xfe\n").is_one_line_failure("UTF-8");
    broken(b"unknown=\xc3\n").is_one_line_failure("UTF-8");
    broken(b"plug=a\0b\n").is_one_line_failure("NUL");
    broken(&[b"domain=".as_slice(), &[b'x'; 5000]].concat()).is_one_line_failure("longer than 4096");
    broken(b"domain=a\x1b[2Jb\n").is_one_line_failure("control character");
    call_with(["-o", "off", "-n", "compute1", "--domain", "a\nb"]).is_one_line_failure("control character");
    assert!(!store.directory().exists());
}

/// Floods: too many bytes, too many lines, bytes without end.
#[test]
fn floods_are_cut_off() {
    let store = Store::new();
    let whole = |more: String| run(agent(), (store.off("nodename=compute1") + &more).as_bytes());
    whole("x=1\n".repeat(300)).is_one_line_failure("256 lines");
    whole("#".repeat(70_000)).is_one_line_failure("65536 bytes");
    whole(format!("{}\n", "y".repeat(1000)).repeat(70)).is_one_line_failure("65536 bytes");
    let mut command = agent();
    command.stdin(fs::File::open("/dev/zero").unwrap()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Outcome::from(command.output().unwrap()).is_one_line_failure("65536 bytes");
    assert!(!store.directory().exists());
}

/// If the writer forgets to close the input, the agent gives up after five seconds.
#[test]
fn an_input_without_end_is_given_up() {
    let store = Store::new();
    let mut command = agent();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut pipe, store.off("nodename=compute1").as_bytes()).unwrap();
    let outcome: Outcome = child.wait_with_output().unwrap().into();
    outcome.is_one_line_failure("did not end within 5 seconds");
    assert!(!store.directory().exists());
    drop(pipe);
}

/// Conformance 17: the forms of getopt, unknown options, extra words.
#[test]
fn the_command_line_is_read_as_getopt_reads_it() {
    let store = Store::new();
    let path = store.path().display().to_string();
    let args = [
        "extra",
        "-qooff",
        "--nod",
        "compute1",
        "--regis=none",
        "--store",
        &path,
        "--create-store",
        "-d",
        "my.cloud.com",
        "-lx",
        "-py",
        "-S",
        "z",
        "-D",
        "/dev/null",
        "-v",
    ];
    let outcome = call_with(args);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
    assert_eq!(store.fencings()[0].given_domain.as_deref(), Some("my.cloud.com"));
    call_with(["-o", "off", "-n", "compute1", "--bogus"]).is_one_line_failure("unknown option --bogus");
    call_with(["-o", "off", "-n", "compute1", "--s"]).is_one_line_failure("unknown option --s");
    call_with(["-o", "off", "-n"]).is_one_line_failure("option --plug");
    assert_eq!(store.fencings().len(), 1);
}

/// Conformance 12 as the design decides it (section 2): the node is `nodename`; a plug beside it is the mapped name.
#[test]
fn the_node_is_nodename_and_the_plug_its_mapped_name() {
    let store = Store::new();
    call(&store.off("plug=compute1.my.cloud.com\nnodename=compute1")).is_silent_success();
    call(&store.off("port=compute2.my.cloud.com\nnodename=compute2")).is_silent_success();
    call(&store.off("port=other\nplug=compute3")).is_silent_success();
    let seen: Vec<_> =
        store.fencings().into_iter().map(|f| (f.node.to_string(), f.plug.map(|p| p.to_string()))).collect();
    let expected = [
        ("compute1", Some("compute1.my.cloud.com")),
        ("compute2", Some("compute2.my.cloud.com")),
        ("compute3", None),
    ];
    assert_eq!(seen, expected.map(|(node, plug)| (node.to_owned(), plug.map(str::to_owned))));
}

/// Conformance 11: option values never appear: not on its outputs, not in the log, not in the journal.
#[test]
fn secrets_stay_where_they_are() {
    let Some(store) = Store::apart() else { return };
    let device = tempfile::tempdir().unwrap();
    let log = UnixDatagram::bind(device.path().join("log")).unwrap();
    let mut world = World::new();
    world.mount(&format!("mount --bind {} /dev", device.path().display()));
    let secrets = "passwd=C4N4RY\npassword=C4N4RY\nlogin=C4N4RY\nauth_url=http://C4N4RY\npassword_script=C4N4RY\napi_key=C4N4RY\nC4N4R =C4N4RY\ndelay=C4N4RY\nregister=C4N4RY\nregister=none\nverbose=1\n";
    let listener = thread::spawn(move || {
        let mut lines = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(length) = log.recv(&mut buffer) {
            let line = String::from_utf8_lossy(&buffer[..length]).into_owned();
            let last = line.contains("compute1 is marked");
            lines.push(line);
            if last {
                break;
            }
        }
        lines
    });
    let outcome = run(world.command(AGENT), store.off(&format!("nodename=compute1\n{secrets}")).as_bytes());
    let lines = listener.join().unwrap();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(lines.iter().any(|line| line.contains("unknown option \"api_key\"")), "{lines:?}");
    assert!(lines.iter().all(|line| line.starts_with('<') && line.contains(" fence_mark[")), "{lines:?}");
    let files: Vec<u8> = fs::read_dir(store.directory())
        .unwrap()
        .flat_map(|entry| fs::read(entry.unwrap().path()).unwrap())
        .collect();
    for text in [lines.concat(), outcome.stdout, outcome.stderr, String::from_utf8_lossy(&files).into_owned()]
    {
        assert!(!text.contains("C4N4RY"), "{text}");
    }
    assert_eq!(store.fencings().len(), 1);
}

/// Standard error shows only a failure; warnings go to the log, and to `verbose`.
#[test]
fn odd_options_are_no_reason_to_leave_a_host_unmarked() {
    let store = Store::new();
    let odd = "nodename=compute1\npower_timeout=soon\nverbose_level=x\ndomain=!!\nno_shared_storage=perhaps\nplug=rack 3/4\nretry_on=\ndelay=later\n";
    call(&store.off(odd)).is_silent_success();
    let fencing = store.fencings().pop().unwrap();
    assert_eq!((fencing.given_domain, fencing.given_shared_storage, fencing.plug), (None, None, None));
    let ran = call(&store.off(&format!("{odd}verbose_level=1\n")));
    assert_eq!(ran.code, Some(0));
    for name in ["power_timeout", "domain", "no_shared_storage", "plug", "delay"] {
        assert!(ran.stderr.lines().any(|line| line.contains(name)), "{name}: {ran:?}");
    }
    assert!(call(&store.off(&format!("{odd}verbose_level=1\nquiet=1\n"))).stderr.is_empty());
}

/// A mistyped register keeps the mark from the other controllers: that is said without `verbose`, and before the first host dies.
#[test]
fn a_word_that_is_no_register_is_said_and_the_host_is_marked_all_the_same() {
    let store = Store::new();
    let off = store.off("nodename=compute1\nregister=zoo");
    let ran = call(&off);
    assert_eq!((ran.code, ran.stderr.lines().count()), (Some(0), 1), "{ran:?}");
    assert!(ran.stderr.contains("register is none of"), "{ran:?}");
    assert_eq!(store.fencings().len(), 1);
    for action in ["monitor", "validate-all"] {
        let ran = call(&off.replace("action=off", &format!("action={action}")));
        assert_eq!(ran.code, Some(1), "{action}: {ran:?}");
        assert!(ran.stderr.contains("register is none of"), "{action}: {ran:?}");
    }
}

/// A caller that ends before it has written everything leaves no mark.
#[test]
fn a_closed_standard_input_is_an_empty_one() {
    let mut child = start(agent(), b"");
    assert_eq!(child.wait().unwrap().code(), Some(1));
}
