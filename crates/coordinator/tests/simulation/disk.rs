//! The disk of a simulated cluster: part files of servers and the commit file. What it holds survives every death.

use std::collections::BTreeMap;

use clickmill_coordinator::{Committed, PartFile, SnapshotFiles, Strategy};

use crate::plan::{Applied, Plan, batches_of};

#[derive(Default)]
pub(crate) struct Disk {
    /// By snapshot and server: what was applied since the base.
    files: BTreeMap<(u64, u32), Vec<Applied>>,
    pub(crate) committed: Option<Committed>,
    pub(crate) is_full: bool,
    pub(crate) num_commits: u64,
}

impl Disk {
    pub(crate) fn write(
        &mut self,
        snapshot: u64,
        server: u32,
        part: Vec<Applied>,
    ) -> Result<PartFile, String> {
        if self.is_full {
            return Err("no space left".into());
        }
        let bytes = part.len() as u64;
        self.files.insert((snapshot, server), part);
        Ok(PartFile {
            server,
            name: format!("{snapshot}/{server}"),
            digest: String::new(),
            bytes,
        })
    }

    /// What server `index` had at that snapshot. Any other server's part serves as well: in this model all apply all.
    pub(crate) fn read(&self, snapshot: &SnapshotFiles, index: u32) -> Result<Vec<Applied>, String> {
        let mut applied = Vec::new();
        for (place, layer) in snapshot.layers.iter().enumerate() {
            assert_eq!(
                layer.is_full,
                place == 0,
                "a chain is one full layer and increments"
            );
            let own = layer
                .files
                .iter()
                .find(|file| file.server == index)
                .or(layer.files.first());
            let server = own.ok_or("a layer without files")?.server;
            let part = self.files.get(&(layer.snapshot, server));
            applied.extend(part.ok_or(format!("{}/{server} is not there", layer.snapshot))?);
        }
        Ok(applied)
    }

    pub(crate) fn retain(&mut self, server: u32, snapshots: &[u64]) {
        let last = snapshots.iter().max().copied().unwrap_or(0);
        self.files.retain(|(snapshot, owner), _| {
            *owner != server || *snapshot > last || snapshots.contains(snapshot)
        });
    }

    pub(crate) fn discard(&mut self, server: u32, snapshot: u64) {
        self.files.remove(&(snapshot, server));
    }

    pub(crate) fn has(&self, snapshot: &SnapshotFiles) -> bool {
        let mut files = snapshot
            .layers
            .iter()
            .flat_map(|layer| layer.files.iter().map(|file| (layer.snapshot, file.server)));
        files.all(|file| self.files.contains_key(&file))
    }

    /// The commit file. Whatever it says must agree with what the servers wrote.
    pub(crate) fn store(&mut self, plan: &Plan, committed: Committed) -> Result<(), String> {
        if self.is_full {
            return Err("no space left".into());
        }
        let text = serde_json::to_string(&committed).map_err(|error| error.to_string())?;
        let again: Committed = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        assert_eq!(again, committed, "a commit file keeps its meaning as text");
        if let Some(snapshot) = committed.snapshot.as_ref().filter(|_| committed.run.is_some()) {
            self.check(plan, &committed, snapshot);
        }
        self.num_commits += 1;
        self.committed = Some(committed);
        Ok(())
    }

    fn check(&self, plan: &Plan, committed: &Committed, snapshot: &SnapshotFiles) {
        let run = committed.run.as_ref().expect("a snapshot has a run");
        for file in &snapshot.layers.last().expect("a snapshot has a layer").files {
            let applied = self
                .read(snapshot, file.server)
                .expect("the files of a commit are there");
            plan.check_trained(&run.ledger, &batches_of(&applied));
            if plan.job.strategy == Strategy::Sync {
                assert_eq!(
                    applied,
                    plan.undisturbed()[..applied.len()],
                    "rounds in their order, and rows evicted between them where they are due"
                );
            }
        }
    }
}
