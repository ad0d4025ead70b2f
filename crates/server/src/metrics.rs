//! The server's metrics, in Prometheus' text format.
//!
//! Each server has its own recorder, so that several servers can run in one process.
//!
//! # Invariants
//! - Labels come from closed lists (routes, methods, statuses), so no request can add a series.
//!
//! # Not here
//! - The metrics of each open vault → `metrics/vaults.rs`.

pub(crate) mod readiness;
mod totals;
pub(crate) mod vault_sizes;
pub(crate) mod vaults;

use std::time::Duration;

use axum::http::{Method, StatusCode};
use engine::MaintenanceStats;
use metrics::{counter, gauge, histogram, with_local_recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use self::totals::RequestTotals;
pub(crate) use self::totals::{DURATION_BOUNDS_MS, TotalsSnapshot};

/// The interval at which samples are folded into their buckets, so that they do not accumulate
/// while no scraper runs.
pub(crate) const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

pub(crate) struct Metrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    pub(crate) totals: RequestTotals,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let bounds_seconds = DURATION_BOUNDS_MS.map(|bound_ms| bound_ms / 1_000.0);
        let builder = PrometheusBuilder::new().set_buckets(&bounds_seconds);
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
            counter!("warren_refused_connections_total").increment(1);
        });
    }

    pub(crate) fn record_refused_login(&self) {
        with_local_recorder(&self.recorder, || {
            counter!("warren_refused_logins_total").increment(1);
        });
    }

    pub(crate) fn set_totals(&self, of_databases: engine::EngineTotals, displaced_count: u64) {
        let seen = self.totals.snapshot();
        with_local_recorder(&self.recorder, || {
            counter!("warren_messages_stored_total").absolute(seen.stored);
            counter!("warren_messages_known_total").absolute(seen.known);
            counter!("warren_messages_sent_total").absolute(seen.sent);
            counter!("warren_transactions_total").absolute(of_databases.transactions);
            counter!("warren_failed_transactions_total").absolute(of_databases.failed);
            counter!("warren_flushes_total").absolute(of_databases.flushes);
            counter!("warren_displaced_connections_total").absolute(displaced_count);
        });
        self.set("warren_connections", usize::try_from(seen.connections).unwrap_or(usize::MAX));
    }

    pub(crate) fn set_maintenance(&self, done: MaintenanceStats) {
        with_local_recorder(&self.recorder, || {
            counter!("warren_maintenance_runs_total").absolute(done.runs);
            counter!("warren_maintenance_optimized_total").absolute(done.optimized);
            counter!("warren_maintenance_truncated_wals_total").absolute(done.truncated);
            counter!("warren_maintenance_returned_pages_total").absolute(done.pages_returned);
            counter!("warren_maintenance_compacted_files_total").absolute(done.compacted);
            counter!("warren_maintenance_scrubbed_pages_total").absolute(done.pages_scrubbed);
            counter!("warren_damaged_files_total").absolute(done.damaged);
            counter!("warren_repaired_files_total").absolute(done.repaired);
        });
    }

    /// Renders the metrics in Prometheus' text format.
    pub(crate) fn text(&self) -> String {
        self.handle.render()
    }

    /// Folds samples into their buckets and drops those that are too old to be counted.
    pub(crate) fn run_upkeep(&self) {
        self.handle.run_upkeep();
    }

    #[expect(clippy::cast_precision_loss, reason = "counts and sizes stay far below 2⁵³")]
    pub(crate) fn set(&self, name: &'static str, value: usize) {
        with_local_recorder(&self.recorder, || gauge!(name).set(value as f64));
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
