//! Each fault as it is made.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, ensure};
use journal::{Journal, Role};
use marks::register::{Entry, MarkEntry};
use marks::time::Timestamp;
use nix::sys::signal::Signal;
use rcgen::{CertificateParams, KeyPair};
use rusqlite::Connection;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::stand::{Stand, http};
use crate::apart::Apart;
use crate::backlog::Backlog;
use crate::programs::Site;
use crate::receiver::Answer;

/// So many open marks have the register past a quarter of what it can hold.
const LONG_OUTAGE: usize = 1000;

type Made = anyhow::Result<Stand>;

/// Runs an operator's command, which must succeed.
fn done(site: &Site, words: &[&str]) -> anyhow::Result<()> {
    let output = site.alerter(words)?;
    ensure!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}

/// # Errors
/// As [`Stand::well`], and where a program cannot be run.
pub fn an_endpoint_is_down() -> Made {
    let mut stand = Stand::well(http)?;
    stand.receiver.down();
    stand.site.fence("compute1")?;
    stand.until_said("accepts nothing")?;
    Ok(stand)
}

/// The endpoint knows the hosts of rack1 alone.
///
/// # Errors
/// As [`an_endpoint_is_down`].
pub fn an_endpoint_rejects_some_hosts() -> Made {
    let stand = Stand::well(http)?;
    stand.receiver.answer_about("\"r2-", Answer::Status(422));
    for host in ["r2-1", "r2-2", "r2-3", "r1-1"] {
        stand.site.fence(host)?;
    }
    stand.until_said("422")?;
    Ok(stand)
}

fn an_endpoint_answers(status: u16) -> Made {
    let stand = Stand::well(http)?;
    stand.receiver.answer(Answer::Status(status));
    stand.site.fence("compute1")?;
    Ok(stand)
}

/// # Errors
/// As [`an_endpoint_is_down`].
pub fn an_endpoint_refuses_our_credentials() -> Made {
    an_endpoint_answers(401)
}

/// # Errors
/// As [`an_endpoint_is_down`].
pub fn an_endpoint_rejects_one_mark() -> Made {
    an_endpoint_answers(422)
}

/// # Errors
/// As [`an_endpoint_is_down`].
pub fn an_endpoint_has_moved() -> Made {
    an_endpoint_answers(404)
}

/// # Errors
/// As [`an_endpoint_is_down`].
pub fn an_endpoint_has_a_certificate_that_nobody_trusts() -> Made {
    let address = untrusted()?;
    let stand = Stand::well(|_| format!("[http.recovery]\nurl = \"https://{address}/\"\n"))?;
    stand.site.fence("compute1")?;
    Ok(stand)
}

/// Every exchange ends at its certificate.
fn untrusted() -> anyhow::Result<SocketAddr> {
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])?.self_signed(&key)?;
    let private = PrivateKeyDer::try_from(key.serialize_der()).map_err(anyhow::Error::msg)?;
    let config = ServerConfig::builder().with_no_client_auth();
    let config = Arc::new(config.with_single_cert(vec![certificate.der().clone()], private)?);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let Ok(connection) = ServerConnection::new(Arc::clone(&config)) else { continue };
            let _it_is_not_believed = StreamOwned::new(connection, stream).read(&mut [0]);
        }
    });
    Ok(address)
}

/// # Errors
/// As [`an_endpoint_is_down`].
pub fn a_name_has_no_address() -> Made {
    // RFC 2606, 2: this domain has no name in it.
    let table = "[http.recovery]\nurl = \"https://recovery.invalid/v1/host-failures\"\n";
    let stand = Stand::well(|_| table.to_owned())?;
    stand.site.fence("compute1")?;
    Ok(stand)
}

/// # Errors
/// As [`an_endpoint_is_down`].
pub fn a_storm_holds() -> Made {
    let rack = "[groups.rack1]\nhosts = [\"r1-1\", \"r1-2\", \"r1-3\"]\nmax-unhealthy = 1\n";
    let stand = Stand::well(|receiver| rack.to_owned() + &http(receiver))?;
    for host in ["r1-1", "r1-2", "r1-3"] {
        stand.site.fence(host)?;
    }
    Ok(stand)
}

/// A pause that holds nobody yet.
///
/// # Errors
/// As [`an_endpoint_is_down`].
pub fn a_pause_is_forgotten() -> Made {
    let stand = Stand::well(http)?;
    done(&stand.site, &["pause", "--reason", "the switch is changed"])?;
    Ok(stand)
}

/// A maintenance that holds nobody yet.
///
/// # Errors
/// As [`an_endpoint_is_down`].
pub fn a_maintenance_covers_a_host() -> Made {
    let stand = Stand::well(http)?;
    done(&stand.site, &["maintenance", "begin", "compute1", "--reason", "new disk", "--for", "2h"])?;
    Ok(stand)
}

/// # Errors
/// As [`an_endpoint_is_down`].
pub fn nobody_knows_the_hosts_full_name() -> Made {
    let mut stand = Stand::new(http)?;
    change(&stand.site, "domain = \"my.cloud.com\"\n", "")?;
    stand.site.start()?;
    stand.site.fence("compute1")?;
    Ok(stand)
}

/// Changes the configuration file.
fn change(site: &Site, from: &str, to: &str) -> anyhow::Result<()> {
    replace(&site.config(), from, to)
}

fn replace(path: &Path, from: &str, to: &str) -> anyhow::Result<()> {
    let text = fs::read_to_string(path)?;
    ensure!(text.contains(from), "there is no {from} in {}", path.display());
    Ok(fs::write(path, text.replace(from, to))?)
}

/// # Errors
/// As [`an_endpoint_is_down`].
pub fn a_row_is_damaged() -> Made {
    let mut stand = an_endpoint_is_down()?;
    stand.site.end(Signal::SIGTERM)?;
    Connection::open(stand.site.journal())?.execute("UPDATE delivery SET body = x'00'", [])?;
    stand.site.start()?;
    stand.until_said("damaged")?;
    Ok(stand)
}

/// # Errors
/// As [`an_endpoint_is_down`].
pub fn the_daemon_does_not_run() -> Made {
    let mut stand = Stand::well(http)?;
    stand.receiver.down();
    stand.site.end(Signal::SIGKILL)?;
    Ok(stand)
}

/// # Errors
/// As [`an_endpoint_is_down`].
pub fn a_route_was_removed() -> Made {
    let mut stand = an_endpoint_is_down()?;
    stand.site.end(Signal::SIGTERM)?;
    change(&stand.site, "[http.recovery]", "[http.other]")?;
    stand.receiver.up()?;
    stand.site.start()?;
    Ok(stand)
}

/// # Errors
/// As [`an_endpoint_is_down`].
pub fn a_route_is_removed_by_a_reload() -> Made {
    let mut stand = an_endpoint_is_down()?;
    change(&stand.site, "[http.recovery]", "[http.other]")?;
    done(&stand.site, &["reload"])?;
    stand.receiver.up()?;
    stand.until_said("not configured any more")?;
    // The new route leads to the same place, and may have found it down before it was up.
    stand.until_not_said("route other accepts nothing")?;
    Ok(stand)
}

/// The configuration has a mistake, and the alerter still runs with the former one.
///
/// # Errors
/// As [`an_endpoint_is_down`].
pub fn the_configuration_is_wrong() -> Made {
    let stand = Stand::well(http)?;
    change(&stand.site, "url =", "ulr =")?;
    Ok(stand)
}

/// # Errors
/// As [`an_endpoint_is_down`].
pub fn a_reload_is_refused() -> Made {
    let stand = the_configuration_is_wrong()?;
    let refused = stand.site.alerter(&["reload"])?;
    ensure!(!refused.status.success(), "a configuration with a mistake was taken");
    Ok(stand)
}

/// # Errors
/// As [`an_endpoint_is_down`].
pub fn the_journal_cannot_be_read() -> Made {
    let mut stand = Stand::well(http)?;
    stand.site.end(Signal::SIGTERM)?;
    fs::write(stand.site.journal(), "not a database, for longer than its header would be ".repeat(40))?;
    let _none = fs::remove_file(stand.site.journal().with_extension("db-wal"));
    Ok(stand)
}

/// The journal lies on a file system of one MiB and a half, which `filler` fills.
///
/// # Errors
/// As [`an_endpoint_is_down`], and where there can be no mounts.
pub fn the_disk_is_full() -> Made {
    let mut stand = Stand::new(http)?;
    let state = stand.site.journal().parent().context("the journal is in no directory")?.to_owned();
    fs::create_dir(&state)?;
    stand.site.set_apart(Apart::new("mount -t tmpfs -o size=1536k,mode=0711 small \"$1\"", &[&state])?);
    stand.site.start()?;
    stand.receiver.down();
    stand.site.fence("compute1")?;
    stand.until_said("accepts nothing")?;
    fill(&stand.site, &state)?;
    stand.receiver.up()?;
    stand.until_said("no room")?;
    Ok(stand)
}

/// Where a file of the site is seen from outside of its mounts.
#[must_use]
pub fn seen_from_outside(site: &Site, path: &Path) -> PathBuf {
    site.apart().map_or_else(|| path.to_owned(), |apart| apart.outside(path))
}

fn fill(site: &Site, directory: &Path) -> anyhow::Result<()> {
    let mut filler = fs::File::create(seen_from_outside(site, &directory.join("filler")))?;
    while filler.write_all(&[0; 512]).is_ok() {}
    Ok(())
}

/// Pacemaker's tools for a cluster that has quorum and has fenced nobody; `$D` is the directory of what they keep.
const TOOLS: [(&str, &str); 4] = [
    (
        "attrd_updater",
        r#"
for word; do case $word in --name=*) name=${word#--name=} ;; --node=*) key=${word#--node=} ;; --update=*) value=${word#--update=} ;; esac; done
case " $* " in
*" --update="*) printf %s "$value" > "$D/attrd/$name@$key"; exit 0 ;;
*" --delete "*) : > "$D/attrd/$name@$key"; exit 0 ;;
esac
test -n "$(ls "$D/attrd")" || exit 78
echo '<pacemaker-result>'
for file in "$D"/attrd/"$name@"*; do
  test -e "$file" || continue
  case " $* " in *" --all "*) ;; *) test "${file##*@}" = "$key" || continue ;; esac
  value=; read -r value < "$file" || :
  echo "<attribute name=\"$name\" value=\"$value\" host=\"${file##*@}\"/>"
done
echo '</pacemaker-result>'"#,
    ),
    ("cibadmin", r#"cat "$D/cib.xml""#),
    ("crm_node", "echo 1"),
    ("stonith_admin", "echo '<pacemaker-result><fence_history/></pacemaker-result>'"),
];

/// A marked host of a cluster with a topology as it should be.
const CIB: &str = r#"<cib crm_feature_set="3.19.0" validate-with="pacemaker-3.9" epoch="9" num_updates="1" admin_epoch="0" have-quorum="1" dc-uuid="1">
<configuration><crm_config/><nodes><node id="1" uname="ctl1"/></nodes>
<resources>
<primitive id="compute1" class="ocf" provider="pacemaker" type="remote"/>
<primitive id="power" class="stonith" type="fence_ipmilan"/>
<primitive id="mark" class="stonith" type="fence_mark"/>
</resources>
<constraints/>
<fencing-topology><fencing-level id="l1" target="compute1" index="1" devices="power,mark"/></fencing-topology>
</configuration>
<status><node_state id="1" uname="ctl1" in_ccm="true" crmd="online" join="member" expected="member"/></status>
</cib>
"#;

/// Lays that out; gives the directory of the tools. `$1/sbin` of [`OVERLAY`] is made by the script that mounts it.
///
/// # Errors
/// The files cannot be written.
pub fn pacemakers_tools(directory: &Path) -> anyhow::Result<PathBuf> {
    let tools = directory.join("pacemaker");
    fs::create_dir_all(tools.join("attrd"))?;
    fs::write(tools.join("cib.xml"), CIB)?;
    for (name, script) in TOOLS {
        samples::program(&tools.join(name), format!("#!/bin/sh\nD={}\n{script}\n", tools.display()));
    }
    Ok(tools)
}

/// Puts the tools in `$1` before the system's, also where Pacemaker is not installed.
pub const OVERLAY: &str = "mkdir \"$1/sbin\"; for tool in attrd_updater cibadmin crm_node stonith_admin; do cp \"$1/$tool\" \"$1/sbin\"; done
    mount -t overlay -o \"lowerdir=$1/sbin:/usr/sbin\" overlay /usr/sbin";

fn pacemaker(directory: &Path) -> anyhow::Result<Apart> {
    Apart::new(OVERLAY, &[&pacemakers_tools(directory)?])
}

/// A site in a cluster that has quorum, with a key for its register, which does not run yet.
fn in_a_cluster() -> Made {
    let mut stand = without_mounts()?;
    stand.site.set_apart(pacemaker(stand.site.directory())?);
    Ok(stand)
}

fn without_mounts() -> Made {
    let stand = Stand::new(http)?;
    change(&stand.site, "register = \"none\"", "register = \"attrd\"")?;
    let key = stand.site.directory().join("register.key");
    fs::write(&key, "# of a test\n0123456789abcdef0123456789abcdef\n")?;
    fs::set_permissions(key, fs::Permissions::from_mode(0o600))?;
    Ok(stand)
}

/// Changes what `cibadmin` of such a site says, and its version, as each change does.
fn change_cib(site: &Site, from: &str, to: &str) -> anyhow::Result<()> {
    let file = site.directory().join("pacemaker/cib.xml");
    let old = fs::read_to_string(&file)?;
    let version =
        old.split(" epoch=\"").nth(1).and_then(|rest| rest.split('"').next()).context("no version")?;
    let next = version.parse::<u64>()? + 1;
    replace(&file, &format!(" epoch=\"{version}\""), &format!(" epoch=\"{next}\""))?;
    replace(&file, from, to)
}

/// # Errors
/// As [`the_disk_is_full`].
pub fn nobody_vouches_for_a_mark() -> Made {
    let mut stand = in_a_cluster()?;
    stand.site.start()?;
    stand.site.fence("compute1")?;
    stand.until_said("compute1")?;
    Ok(stand)
}

/// The alerter runs, and `NovaEvacuate` was not removed.
///
/// # Errors
/// As [`the_disk_is_full`].
pub fn a_migration_is_left_half_way() -> Made {
    let mut stand = in_a_cluster()?;
    let evacuate = r#"<primitive id="nova-evacuate" class="ocf" provider="openstack" type="NovaEvacuate"/>"#;
    change_cib(&stand.site, "</resources>", &format!("{evacuate}</resources>"))?;
    stand.site.start()?;
    stand.until_said("nova-evacuate")?;
    Ok(stand)
}

/// compute1 was fenced an hour before the first start of an alerter, and is down.
///
/// # Errors
/// As [`the_disk_is_full`].
pub fn a_host_is_down_from_before() -> Made {
    let mut stand = in_a_cluster()?;
    let before = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() - 3600;
    let state = format!(
        r#"<node_state remote_node="true" id="compute1" uname="compute1" in_ccm="false" node_fenced="{before}"/>"#
    );
    change_cib(&stand.site, "</status>", &format!("{state}</status>"))?;
    stand.site.start()?;
    stand.until_said("compute1")?;
    Ok(stand)
}

/// Somebody without the key has written a mark of 2036 and a fencing into the register.
///
/// # Errors
/// As [`the_disk_is_full`].
pub fn entries_have_no_seal() -> Made {
    let mut stand = in_a_cluster()?;
    let first = samples::fencing("compute1", Timestamp(2_100_000_000_000));
    let mark = MarkEntry::of_row(&samples::mark(&first)).context("the mark lacks something")?;
    for entry in [Entry::Mark(mark), Entry::Fencing(samples::fencing("compute7", Timestamp::now()))] {
        let name = format!("pacemaker/attrd/host-failure@{}", entry.key());
        fs::write(stand.site.directory().join(name), entry.value())?;
    }
    stand.site.start()?;
    stand.until_said("is not used")?;
    Ok(stand)
}

/// Pacemaker's DC says that compute1 was fenced ten minutes from now.
///
/// # Errors
/// As [`the_disk_is_full`].
pub fn clocks_differ() -> Made {
    let mut stand = in_a_cluster()?;
    stand.site.start()?;
    let ahead = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() + 600;
    let state = format!(
        r#"<node_state remote_node="true" id="compute1" uname="compute1" in_ccm="false" node_fenced="{ahead}"/>"#
    );
    change_cib(&stand.site, "</status>", &format!("{state}</status>"))?;
    stand.until_said("clock")?;
    Ok(stand)
}

/// The register has every mark of a long outage of the endpoint.
///
/// # Errors
/// As [`the_disk_is_full`].
pub fn the_register_is_nearly_full() -> Made {
    let mut stand = in_a_cluster()?;
    // Without a key each entry is an attribute of its own.
    fs::remove_file(stand.site.directory().join("register.key"))?;
    Backlog::of_fencings(LONG_OUTAGE)?.lay_into(&stand.site)?;
    for fencing in Journal::open(&stand.site.journal(), Role::Alerter)?.unfolded_fencings()?.sound {
        let entry = Entry::Fencing(fencing);
        let name = format!("pacemaker/attrd/host-failure@{}", entry.key());
        fs::write(stand.site.directory().join(name), entry.value())?;
    }
    stand.receiver.down();
    stand.site.start()?;
    stand.until_said("KiB")?;
    Ok(stand)
}

/// A frozen file system; it answers again when this ends.
pub struct Frozen {
    place: PathBuf,
}

/// Freezes what is mounted at a path, as it is seen from outside of its mounts.
///
/// # Errors
/// Not root, or it is no file system that can be frozen.
pub fn freeze(site: &Site, path: &Path) -> anyhow::Result<Frozen> {
    let place = seen_from_outside(site, path);
    fsfreeze("--freeze", &place)?;
    Ok(Frozen { place })
}

fn fsfreeze(word: &str, place: &Path) -> anyhow::Result<()> {
    let done = Command::new("fsfreeze").arg(word).arg(place).status()?;
    ensure!(done.success(), "fsfreeze {word}");
    Ok(())
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _the_mounts_are_gone = fsfreeze("--unfreeze", &self.place);
    }
}

/// The journal, and all that lies beside it, is on a file system of its own, of an ext4 in a file.
const OWN_DISK: &str = "truncate --size 16M \"$1/disk\"
    mkfs.ext4 -q \"$1/disk\"
    mount -o loop \"$1/disk\" \"$2\"
    chmod 0711 \"$2\"";

/// A controller of a cluster that has one other, whose journal is on a disk of its own.
///
/// # Errors
/// As [`the_disk_is_full`].
pub fn a_disk_of_its_own() -> Made {
    let mut stand = without_mounts()?;
    // The agents of its tests have no key, and what they write would count for nothing.
    fs::remove_file(stand.site.directory().join("register.key"))?;
    let state = stand.site.journal().parent().context("the journal is in no directory")?.to_owned();
    fs::create_dir(&state)?;
    let tools = pacemakers_tools(stand.site.directory())?;
    stand.site.set_apart(Apart::new(&format!("{OVERLAY}\n{OWN_DISK}"), &[&tools, &state])?);
    Ok(stand)
}

/// The only controller of the CIB is this one.
///
/// # Errors
/// As [`the_disk_is_full`].
pub fn no_other_controller(site: &Site) -> anyhow::Result<()> {
    let own = nix::unistd::gethostname()?.to_string_lossy().into_owned();
    change_cib(site, "uname=\"ctl1\"", &format!("uname=\"{own}\""))
}
