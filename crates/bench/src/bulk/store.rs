//! Warren's storage, called in this process: what is left without HTTP.

use std::path::Path;
use std::sync::Arc;

use accounts::{ClientId, VaultId};
use anyhow::ensure;
use crdt::Message;
use engine::{Databases, Key, Limits};
use sync_store::{Batch, Client, Files, Quota, Vault, Vaults};
use tokio::runtime::Runtime;

use super::sample;
use crate::measure::now;
use crate::suite::Case;

pub(super) struct Stores {
    vaults: Vaults,
}

impl Stores {
    pub(super) fn start(folder: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir(folder)?;
        let databases = Arc::new(Databases::start(Limits::default())?);
        Ok(Self { vaults: Vaults::Files(Files::new(databases, folder.to_owned())) })
    }

    /// Sorting and hashing belong to the work, as in the server.
    pub(super) fn case<'a>(
        &'a self,
        runtime: &'a Runtime,
        messages: &'a [Message],
        page: usize,
    ) -> Case<'a> {
        Case::new("Warren, in process", move |_| {
            let key = || Ok::<_, sync_store::Error>(Key::generate());
            let vault = self.vaults.open_with(&VaultId::generate(), key)?;
            // The server's vault has been written to before its clock starts, too.
            runtime.block_on(vault.add_client(client()))?;
            let start = now();
            let stored = runtime.block_on(store(&vault, messages, page))?;
            let elapsed = start.elapsed();
            ensure!(stored == messages.len() as u64, "stored {stored} of {}", messages.len());
            Ok(sample(messages.len(), elapsed))
        })
    }
}

fn client() -> Client {
    Client {
        id: ClientId::generate(),
        name: "bench".to_owned(),
        node: None,
        cursor: 0,
        unsent: 0,
        seen_ms: 0,
        created_ms: 0,
    }
}

async fn store(vault: &Vault, messages: &[Message], page: usize) -> anyhow::Result<u64> {
    let mut stored = 0;
    for page in messages.chunks(page) {
        let batch = Batch::new(page.to_vec())?;
        stored += vault.store(batch, Quota::UNLIMITED, None).await?.stored;
    }
    Ok(stored)
}
