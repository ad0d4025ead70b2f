//! The state of mail in numbers, for the operator.

use std::sync::Arc;

use engine::clock;
use mail_store::SpoolTotals;

use crate::delivery::DeliveryTarget;
use crate::error::Result;

/// The state of mail.
#[derive(Clone, Copy, Debug)]
pub struct MailOverview {
    /// The deliveries in the spool.
    pub spool: SpoolTotals,
    /// The number of recipients for whom a message was stored since the server's start.
    pub deliveries_count: u64,
    /// The number of recipients who were refused since the server's start.
    pub refused_count: u64,
    /// The number of connections since the server's start.
    pub connections_count: u64,
}

/// Reads the overview of a mail server, also while it runs.
#[derive(Clone)]
pub struct MailOverviewReader(pub(crate) Arc<DeliveryTarget>);

impl MailOverviewReader {
    /// Reads the overview. Blocks.
    pub fn read(&self) -> Result<MailOverview> {
        let DeliveryTarget { spool, counters, .. } = &*self.0;
        Ok(MailOverview {
            spool: spool.totals(clock::now_ms())?,
            deliveries_count: counters.deliveries(),
            refused_count: counters.refused(),
            connections_count: counters.connections(),
        })
    }
}
