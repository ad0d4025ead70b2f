//! Measures Warren's storage in this process, without HTTP.

use std::path::Path;
use std::sync::Arc;

use accounts::{DeviceId, VaultId};
use anyhow::ensure;
use crdt::Message;
use engine::clock::now;
use engine::{DatabaseKey, Databases, EngineLimits};
use sync_store::{MessageBatch, Quota, Vault, VaultDevice, VaultFiles, Vaults};
use tokio::runtime::Runtime;

use super::bench_run::sample;
use crate::suite::BenchCase;

pub(super) struct StoreFixture {
    vaults: Vaults,
}

impl StoreFixture {
    pub(super) fn start(folder: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir(folder)?;
        let databases = Arc::new(Databases::start(EngineLimits::default())?);
        Ok(Self { vaults: Vaults::Files(VaultFiles::new(databases, folder.to_owned())) })
    }

    /// Returns a case whose measured time includes sorting and hashing, like in the server.
    pub(super) fn case<'a>(
        &'a self,
        runtime: &'a Runtime,
        messages: &'a [Message],
        page: usize,
    ) -> BenchCase<'a> {
        BenchCase::new("Warren, in process", move |_| {
            let key = || Ok::<_, sync_store::Error>(DatabaseKey::generate());
            let vault = self.vaults.open_with(&VaultId::generate(), key)?;
            // This first write creates the vault before the clock starts; the server's vault is
            // also created before.
            runtime.block_on(vault.add_device(client()))?;
            let start = now();
            let stored = runtime.block_on(store(&vault, messages, page))?;
            let elapsed = start.elapsed();
            ensure!(
                stored == messages.len() as u64,
                "stored {stored} of {} messages",
                messages.len()
            );
            Ok(sample(messages.len(), elapsed))
        })
    }
}

fn client() -> VaultDevice {
    VaultDevice {
        id: DeviceId::generate(),
        name: "bench".to_owned(),
        node_id: None,
        cursor: 0,
        unsent_count: 0,
        last_seen_ms: 0,
        created_ms: 0,
    }
}

async fn store(vault: &Vault, messages: &[Message], page: usize) -> anyhow::Result<u64> {
    let mut stored = 0;
    for page in messages.chunks(page) {
        let batch = MessageBatch::new(page.to_vec())?;
        stored += vault.store(batch, Quota::UNLIMITED, None).await?.stored;
    }
    Ok(stored)
}
