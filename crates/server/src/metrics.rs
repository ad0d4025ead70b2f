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

mod vaults;

use std::sync::Arc;
use std::time::Duration;

use accounts::VaultId;
use axum::http::{Method, StatusCode};
use engine::MaintenanceStats;
use metrics::{counter, gauge, histogram, with_local_recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use crate::app::App;

/// From a cached read to a password hash that waited for its turn.
const DURATION_BUCKETS_S: &[f64] =
    &[0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// How often samples are folded into their buckets, so that they do not pile up when nobody
/// scrapes.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

pub(crate) struct Metrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let builder = PrometheusBuilder::new().set_buckets(DURATION_BUCKETS_S);
        let recorder = builder.expect("there are buckets").build_recorder();
        let handle = recorder.handle();
        Self { recorder, handle }
    }

    pub(crate) fn answered(
        &self,
        method: &Method,
        route: &str,
        status: StatusCode,
        duration: Duration,
    ) {
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

    pub(crate) fn pushed(&self, stored: u64, known: u64) {
        with_local_recorder(&self.recorder, || {
            counter!("warren_messages_stored_total").increment(stored);
            counter!("warren_messages_known_total").increment(known);
        });
    }

    pub(crate) fn pulled(&self, count: usize) {
        with_local_recorder(&self.recorder, || {
            counter!("warren_messages_sent_total").increment(count as u64);
        });
    }

    pub(crate) fn connected(&self) {
        with_local_recorder(&self.recorder, || gauge!("warren_connections").increment(1));
    }

    pub(crate) fn disconnected(&self) {
        with_local_recorder(&self.recorder, || gauge!("warren_connections").decrement(1));
    }

    /// Asks the file system for the size of each open vault's WAL.
    pub(crate) fn render(&self, app: &App) -> String {
        self.set("warren_databases_open", app.databases.open_count());
        self.set("warren_cache_bytes", app.databases.cache_bytes());
        self.set("warren_listeners", app.listeners.count());
        self.set_maintenance(app.databases.maintenance());
        let health = app.databases.health();
        let vaults: Vec<(VaultId, _)> = health
            .into_iter()
            // A vault's file has its name; the accounts' file has another.
            .filter_map(|(path, health)| Some((path.file_stem()?.to_str()?.parse().ok()?, health)))
            .collect();
        self.handle.render() + &vaults::text(&vaults)
    }

    fn set_maintenance(&self, done: MaintenanceStats) {
        with_local_recorder(&self.recorder, || {
            counter!("warren_maintenance_runs_total").absolute(done.runs);
            counter!("warren_maintenance_optimised_total").absolute(done.optimised);
            counter!("warren_maintenance_wals_truncated_total").absolute(done.truncated);
            counter!("warren_maintenance_pages_returned_total").absolute(done.pages_returned);
            counter!("warren_maintenance_compacted_total").absolute(done.compacted);
        });
    }

    #[expect(clippy::cast_precision_loss, reason = "counts and sizes stay far below 2⁵³")]
    fn set(&self, name: &'static str, value: usize) {
        with_local_recorder(&self.recorder, || gauge!(name).set(value as f64));
    }
}

pub(crate) async fn upkeep(app: Arc<App>) {
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
