//! Renders the text of `/metrics`: counters, and values that are read at each scrape.
//!
//! # Not here
//! - Counting → `crate::metrics`. Access → `health.rs`.

use std::sync::Arc;

use accounts::VaultId;
use engine::clock;

use crate::app_state::AppState;
use crate::metrics::readiness::Readiness;
use crate::metrics::{UPKEEP_INTERVAL, vaults};

/// Renders all metrics. This reads the size of each open vault's WAL from the file system.
pub(crate) fn render(app: &AppState) -> String {
    let metrics = &app.metrics;
    metrics.set("warren_open_databases", app.databases.open_count());
    metrics.set("warren_page_cache_bytes", app.databases.cache_bytes());
    metrics.set("warren_subscribers", app.subscribers.count());
    let readiness = Readiness::from_app(app);
    let Readiness { disk_full, accounts_poisoned, accounts_damaged, .. } = readiness;
    metrics.set("warren_stalled_backups", readiness.stalled_backups_count);
    metrics.set("warren_accounts_damaged", accounts_damaged.into());
    metrics.set("warren_disk_full", disk_full.into());
    metrics.set("warren_accounts_poisoned", accounts_poisoned.into());
    metrics.set_totals(app.databases.totals(), app.connections.displaced_count());
    metrics.set_maintenance(app.databases.maintenance());
    let health = app.databases.health().into_iter();
    let vaults: Vec<_> =
        health.filter_map(|(path, health)| Some((VaultId::from_path(&path)?, health))).collect();
    let mail = app.mail_totals().map(|totals| totals.metrics_text(clock::now_ms()));
    metrics.text() + &vaults::text(&vaults) + &mail.unwrap_or_default()
}

pub(crate) async fn upkeep(app: Arc<AppState>) {
    let mut ticks = tokio::time::interval(UPKEEP_INTERVAL);
    loop {
        ticks.tick().await;
        app.metrics.run_upkeep();
    }
}
