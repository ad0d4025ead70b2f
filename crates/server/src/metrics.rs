//! What the server counts, in Prometheus' text format.
//!
//! Each server has a recorder of its own, so that several can live in one process.
//!
//! # Invariants
//! - Labels come from closed lists (routes, methods, statuses): no request adds a series of its own
//!   making.
//!
//! # Not here
//! - What is known of each open vault → `metrics/vaults.rs`.

mod totals;
mod vaults;

use std::sync::Arc;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use engine::MaintenanceStats;
use metrics::{counter, gauge, histogram, with_local_recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use crate::app_state::AppState;
use crate::handlers::admin::vault_id_from_path;
use crate::metrics::totals::RequestTotals;
pub(crate) use crate::metrics::totals::{DURATION_BOUNDS_S, TotalsSnapshot};
use crate::readiness::Readiness;

/// How often samples are folded into their buckets, so that they do not pile up when nobody
/// scrapes.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

pub(crate) struct Metrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    pub(crate) totals: RequestTotals,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let builder = PrometheusBuilder::new().set_buckets(&DURATION_BOUNDS_S);
        let recorder = builder.expect("there are buckets").build_recorder();
        let handle = recorder.handle();
        Self { recorder, handle, totals: RequestTotals::new() }
    }

    pub(crate) fn record_response(
        &self,
        method: &Method,
        route: &str,
        status: StatusCode,
        duration: Duration,
    ) {
        self.totals.answered(route, status.is_server_error(), duration);
        let labels = [
            ("method", method_label(method).to_owned()),
            ("route", route.to_owned()),
            ("status", status.as_str().to_owned()),
        ];
        with_local_recorder(&self.recorder, || {
            counter!("warren_requests_total", &labels).increment(1);
            histogram!("warren_request_duration_seconds", &labels[..2])
                .record(duration.as_secs_f64());
        });
    }

    pub(crate) fn record_push(&self, stored: u64, known: u64) {
        self.totals.pushed(stored, known);
    }

    pub(crate) fn record_pull(&self, count: usize) {
        self.totals.pulled(count as u64);
    }

    pub(crate) fn record_connect(&self) {
        self.totals.connected();
    }

    pub(crate) fn record_disconnect(&self) {
        self.totals.disconnected();
    }

    pub(crate) fn record_refused_connection(&self) {
        with_local_recorder(&self.recorder, || {
            counter!("warren_connections_refused_total").increment(1);
        });
    }

    pub(crate) fn record_refused_login(&self) {
        with_local_recorder(&self.recorder, || {
            counter!("warren_logins_refused_total").increment(1);
        });
    }

    /// Asks the file system for the size of each open vault's WAL.
    pub(crate) fn render(&self, app: &AppState) -> String {
        self.set("warren_databases_open", app.databases.open_count());
        self.set("warren_cache_bytes", app.databases.cache_bytes());
        self.set("warren_listeners", app.subscribers.count());
        let readiness = Readiness::from_app(app);
        let Readiness { disk_full, accounts_refuse_writes, accounts_damaged, .. } = readiness;
        self.set("warren_backups_stalled", readiness.backups_stalled);
        self.set("warren_accounts_damaged", accounts_damaged.into());
        self.set("warren_disk_full", disk_full.into());
        self.set("warren_accounts_refuse_writes", accounts_refuse_writes.into());
        self.set_totals(app.databases.totals(), app.connections.displaced_count());
        self.set_maintenance(app.databases.maintenance());
        let health = app.databases.health().into_iter();
        let vaults: Vec<_> = health
            .filter_map(|(path, health)| Some((vault_id_from_path(&path)?, health)))
            .collect();
        self.handle.render() + &vaults::text(&vaults)
    }

    fn set_totals(&self, of_databases: engine::EngineTotals, displaced_count: u64) {
        let seen = self.totals.snapshot();
        with_local_recorder(&self.recorder, || {
            counter!("warren_messages_stored_total").absolute(seen.stored);
            counter!("warren_messages_known_total").absolute(seen.known);
            counter!("warren_messages_sent_total").absolute(seen.sent);
            counter!("warren_transactions_total").absolute(of_databases.transactions);
            counter!("warren_transactions_failed_total").absolute(of_databases.failed);
            counter!("warren_flushes_total").absolute(of_databases.flushes);
            counter!("warren_connections_displaced_total").absolute(displaced_count);
        });
        self.set("warren_connections", usize::try_from(seen.connections).unwrap_or(usize::MAX));
    }

    fn set_maintenance(&self, done: MaintenanceStats) {
        with_local_recorder(&self.recorder, || {
            counter!("warren_maintenance_runs_total").absolute(done.runs);
            counter!("warren_maintenance_optimised_total").absolute(done.optimised);
            counter!("warren_maintenance_wals_truncated_total").absolute(done.truncated);
            counter!("warren_maintenance_pages_returned_total").absolute(done.pages_returned);
            counter!("warren_maintenance_compacted_total").absolute(done.compacted);
            counter!("warren_maintenance_pages_scrubbed_total").absolute(done.pages_scrubbed);
            counter!("warren_files_damaged_total").absolute(done.damaged);
            counter!("warren_files_repaired_total").absolute(done.repaired);
        });
    }

    #[expect(clippy::cast_precision_loss, reason = "counts and sizes stay far below 2⁵³")]
    fn set(&self, name: &'static str, value: usize) {
        with_local_recorder(&self.recorder, || gauge!(name).set(value as f64));
    }
}

pub(crate) async fn upkeep(app: Arc<AppState>) {
    let mut ticks = tokio::time::interval(UPKEEP_INTERVAL);
    loop {
        ticks.tick().await;
        app.metrics.handle.run_upkeep();
    }
}

fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}
