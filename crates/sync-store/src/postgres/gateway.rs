//! The part of a vault's rows that gateways use.

use async_trait::async_trait;
use bytes::Bytes;
use crdt::{Message, Timestamp};

use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::gateway::{Amend, BlobId, Exchanged, GatewayStore, PieceId, Recorded};
use crate::postgres::PostgresStore;

fn not_yet<T>() -> Result<T> {
    Err(Error::PostgresSchema("gateways need vaults in files".into()))
}

#[async_trait]
impl GatewayStore for PostgresStore {
    async fn exchange(&self, _: Batch, _: Amend) -> Result<Exchanged> {
        not_yet()
    }
    async fn record(&self) -> Result<Recorded> {
        not_yet()
    }
    async fn since(&self, _: Timestamp, _: u64, _: usize, _: usize) -> Result<Vec<Message>> {
        not_yet()
    }
    async fn clear(&self, _: Amend) -> Result<()> {
        not_yet()
    }
    async fn put_piece(&self, _: PieceId, _: Bytes) -> Result<()> {
        not_yet()
    }
    async fn piece(&self, _: PieceId) -> Result<Option<Bytes>> {
        not_yet()
    }
    async fn pieces(&self) -> Result<Vec<PieceId>> {
        not_yet()
    }
    async fn remove_pieces(&self, _: Option<BlobId>) -> Result<()> {
        not_yet()
    }
}
