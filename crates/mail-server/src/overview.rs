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
    /// The time of the oldest waiting delivery, in milliseconds since 1970.
    pub oldest_ms: Option<u64>,
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
        let spool = spool.totals(clock::now_ms())?;
        // The number of a delivery is its time in microseconds.
        let oldest_ms = spool.waiting.oldest_seq.map(|seq| seq.cast_unsigned() / 1_000);
        Ok(MailOverview {
            spool,
            oldest_ms,
            deliveries_count: counters.deliveries(),
            refused_count: counters.refused(),
            connections_count: counters.connections(),
        })
    }
}
