//! Pages through the tools of a cluster that keeps them in files.

use super::*;
use crate::pages::{Head, Write};

const BOTH: [Register; 2] = [Register::Attrd, Register::Cib];

fn keys() -> SealKeys {
    SealKeys::derive([&b"secret"[..]])
}

impl Cluster {
    fn write(
        &self,
        register: Register,
        whose: &str,
        writes: &[Write],
        limit: u64,
    ) -> Result<(), &'static str> {
        let access = Access { keys: keys(), ..self.to(register) };
        // A missing page counts for seven days.
        let head = Head { at: Timestamp::now(), last: 2, ..Head::default() };
        let all = PageWrites { writer: Part::Agent.on(whose), writes: writes.to_vec(), head };
        access.write_pages(&all, within(limit)).map_err(|e| e.kind())
    }
}

/// One of each kind of entry, dealt out to a head and two pages.
fn writes() -> [Write; 3] {
    let all = sample_entries();
    let lines = |entries: &[Entry]| entries.iter().map(Entry::line).collect();
    [(1, lines(&all[..4])), (2, lines(&all[4..8])), (HEAD, lines(&all[8..]))]
}

#[test]
fn a_page_that_cannot_be_read_back_is_not_written() {
    for register in BOTH {
        let cluster = Cluster::new();
        cluster.put("attrd_updater", &ATTRD.replace("printf %s \"$value\"", "printf %s other"));
        cluster.put("cibadmin", &CIBADMIN.replace("printf %s \"$4\" > \"$D/cib/$id\"", ":"));
        assert_eq!(cluster.write(register, "ctl1", &writes(), 1500), Err("not-read-back"));
        for (script, kind) in
            [("exit 102", "tool"), ("exec sleep 1000", "tool"), ("echo '<a>'", "unreadable")]
        {
            cluster.put("attrd_updater", script);
            cluster.put("cibadmin", script);
            assert_eq!(cluster.write(register, "ctl1", &writes(), 500), Err(kind), "{script}");
        }
    }
    let cluster = Cluster::new();
    cluster.put("crm_node", "echo 0");
    assert_eq!(cluster.write(Register::Cib, "ctl1", &writes(), ENOUGH), Err("no-quorum"));
    assert_eq!(cluster.write(Register::None, "ctl1", &writes(), ENOUGH), Err("no-register"));
}
