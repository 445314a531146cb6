//! The configuration of the seed, loaded by the tools with which operators write it. Nothing outside of a private mount
//! namespace is touched.

use std::fs;

use crate::common::{AGENT, Outcome, World, have_namespaces, run};
use samples::left_out::lacks;

/// The snippet of the seed (001, "Fencing"), with nothing but the agent's name changed.
const SNIPPET: &str = r#"primitive fence-nova stonith:fence_mark \
params auth-url="http://cluster.my.cloud.com:5000/v3/" \
domain=my.cloud.com \
tenant-name=admin \
endpoint-type=internalURL \
login=admin \
passwd=s3kr1t \
op monitor interval=10m
"#;

/// A system on which the agent is installed, with an empty CIB in a file.
fn system(tools: &[&str]) -> Option<World> {
    let all: Vec<&str> = tools.iter().copied().chain(["cibadmin", "crm_resource", "fence_dummy"]).collect();
    if lacks(&all) || !have_namespaces() {
        return None;
    }
    let mut world = World::new();
    world.file("usr/sbin/fence_mark", fs::read(AGENT).unwrap(), 0o755);
    world.mount(
        "mount -t tmpfs none /mnt; mount -t tmpfs none /var/log; mkdir -p /var/log/crmsh /var/log/pcsd",
    );
    world.mount("export HOME=/mnt CIB_file=/mnt/cib.xml; cibadmin --empty > /mnt/cib.xml");
    Some(world)
}

fn shell(world: &World, script: &str, input: &str) -> Outcome {
    let mut command = world.command(
        "sh -ec '. /dev/fd/3' 3<<'SCRIPT'\nSCRIPT_TEXT\nSCRIPT\n#".replace("SCRIPT_TEXT", script).as_str(),
    );
    command.env("LC_ALL", "C.UTF-8");
    run(command, input.as_bytes())
}

/// S1-25, S1-29, conformance 5: the seed's primitive and topology load in crmsh as they stand.
#[test]
fn the_snippet_loads_in_crmsh() {
    let Some(world) = system(&["crm"]) else { return };
    let topology = "primitive stonith-compute1 stonith:fence_dummy\nfencing_topology compute1: stonith-compute1,fence-nova\n";
    let loaded = shell(
        &world,
        "cat > /mnt/conf; crm configure load update /mnt/conf; cat /mnt/cib.xml",
        &format!("{SNIPPET}{topology}"),
    );
    assert_eq!(loaded.code, Some(0), "{loaded:?}");
    assert!(
        loaded.stdout.contains("devices=\"stonith-compute1,fence-nova\"")
            && loaded.stdout.contains("type=\"fence_mark\""),
        "{loaded:?}"
    );
    let odd = SNIPPET.replace("tenant-name", "tenant-nome");
    let refused = shell(&world, "cat > /mnt/conf; crm configure load update /mnt/conf", &odd);
    assert_ne!(refused.code, Some(0), "crmsh refuses what the metadata does not name: {refused:?}");
}

/// Conformance 5: the same in pcs, with underscores as pcs wants them, and with the dashes of the seed.
#[test]
fn the_snippet_loads_in_pcs() {
    let Some(world) = system(&["pcs"]) else { return };
    let create = |params: &str| {
        shell(
            &world,
            &format!(
                "pcs -f /mnt/cib.xml stonith create fence-nova fence_mark {params} op monitor interval=10m; cat /mnt/cib.xml"
            ),
            "",
        )
    };
    let underscores = "auth_url=http://cluster.my.cloud.com:5000/v3/ domain=my.cloud.com tenant_name=admin endpoint_type=internalURL login=admin passwd=s3kr1t";
    for params in [
        underscores.to_owned(),
        underscores.replace("auth_", "auth-").replace("tenant_", "tenant-").replace("endpoint_", "endpoint-"),
    ] {
        let created = create(&params);
        assert!(created.code == Some(0) && created.stdout.contains("type=\"fence_mark\""), "{created:?}");
    }
    assert_ne!(create("tenant_nome=admin").code, Some(0), "pcs refuses what the metadata does not name");
}
