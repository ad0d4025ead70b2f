//! The state of mail in numbers, which a mail server in the same process reports.
//!
//! The sync server only shows it to the operator: sync and mail do not depend on each other.

use std::fmt::Write;

use serde::Serialize;
use utoipa::ToSchema;

/// The ages by which waiting deliveries are counted, as labels: at most an hour, a day, a week.
const AGES: [&str; 3] = ["1h", "1d", "7d"];

/// The state of mail. Counters begin at 0, unless they say otherwise, when the server starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct MailTotals {
    /// The number of deliveries that wait to be filed.
    pub waiting_count: u64,
    /// The size of the waiting deliveries.
    pub waiting_bytes: u64,
    /// How many of them have waited for at most an hour, a day and a week.
    pub younger_counts: [u64; AGES.len()],
    /// The time at which the oldest one arrived, milliseconds since 1970; null if none waits.
    pub oldest_ms: Option<u64>,
    /// The number of deliveries that could not be opened, and wait for the operator.
    pub set_aside_count: u64,
    /// The number of deliveries that were filed since the spool was created.
    pub filed_count: u64,
    /// The number of recipients for whom a message was accepted.
    pub delivered_count: u64,
    /// The number of recipients who were refused: they are unknown or have no room, or an error
    /// occurred.
    pub refused_count: u64,
    /// The number of connections that delivered mail, or tried to.
    pub connections_count: u64,
}

/// Reads the state of mail. It may block. The error is for the log.
pub type MailTotalsReader = Box<dyn Fn() -> Result<MailTotals, String> + Send + Sync>;

impl MailTotals {
    /// Returns the metrics in Prometheus' text format. `now_ms` is the present time.
    pub(crate) fn metrics_text(&self, now_ms: u64) -> String {
        let mut text = String::new();
        self.write(now_ms, &mut text).expect("a String takes all that is written to it");
        text
    }

    fn write(&self, now_ms: u64, text: &mut String) -> std::fmt::Result {
        let waited_s =
            self.oldest_ms.map_or(0, |oldest_ms| now_ms.saturating_sub(oldest_ms) / 1_000);
        writeln!(
            text,
            "# HELP warren_mail_waiting_deliveries Deliveries that wait, by how long they have \
             waited at most.\n# TYPE warren_mail_waiting_deliveries gauge"
        )?;
        for (age, count) in
            AGES.iter().zip(self.younger_counts).chain([(&"+Inf", self.waiting_count)])
        {
            writeln!(text, "warren_mail_waiting_deliveries{{age=\"{age}\"}} {count}")?;
        }
        for (name, kind, help, value) in [
            ("waiting_bytes", "gauge", "Size of the deliveries that wait.", self.waiting_bytes),
            ("oldest_waiting_seconds", "gauge", "Age of the oldest delivery that waits.", waited_s),
            (
                "set_aside_deliveries",
                "gauge",
                "Deliveries that could not be opened.",
                self.set_aside_count,
            ),
            ("filed_total", "counter", "Deliveries that were filed.", self.filed_count),
            (
                "delivered_total",
                "counter",
                "Recipients for whom a message was accepted.",
                self.delivered_count,
            ),
            (
                "refused_total",
                "counter",
                "Recipients who were refused: unknown, full or after an error.",
                self.refused_count,
            ),
            ("connections_total", "counter", "Connections for mail.", self.connections_count),
        ] {
            writeln!(text, "# HELP warren_mail_{name} {help}")?;
            writeln!(text, "# TYPE warren_mail_{name} {kind}\nwarren_mail_{name} {value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_deliveries_are_counted_by_age() {
        let totals = MailTotals {
            waiting_count: 9,
            waiting_bytes: 900,
            younger_counts: [1, 3, 7],
            oldest_ms: Some(1_000),
            set_aside_count: 2,
            filed_count: 5,
            delivered_count: 14,
            refused_count: 6,
            connections_count: 4,
        };
        let text = totals.metrics_text(61_500);
        for line in [
            r#"warren_mail_waiting_deliveries{age="1h"} 1"#,
            r#"warren_mail_waiting_deliveries{age="7d"} 7"#,
            r#"warren_mail_waiting_deliveries{age="+Inf"} 9"#,
            "warren_mail_oldest_waiting_seconds 60",
            "warren_mail_set_aside_deliveries 2",
            "# TYPE warren_mail_filed_total counter",
            "warren_mail_delivered_total 14",
        ] {
            assert!(text.lines().any(|found| found == line), "no {line} in\n{text}");
        }
    }
}
