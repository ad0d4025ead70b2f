//! Prints the report of a sync.

use std::path::Path;

use doctor::counted;
use indicatif::HumanCount;
use protocol::ServerLoss;
use replica::{
    RejectedMessages, RejectionCounts, RenumberedRow, SchemaConflict, SetDiscrepancy, SyncReport,
    VisibilityOverrideKind,
};

use crate::output::{Printer, format_time};

pub(crate) fn describe(path: &Path, report: &SyncReport, output: Printer) {
    let verdict = if report.in_sync {
        format!("in sync{}", exceptions(report))
    } else {
        "not in sync: this file and the server differ".to_owned()
    };
    let sent = counted(report.sent_count, "change", "changes");
    let (received, on_server) =
        (HumanCount(report.received_count), HumanCount(report.server_messages_count));
    output.line(format_args!(
        "{}: {verdict}. Sent {sent}, received {received}; the server has {on_server}.",
        path.display()
    ));
    for created in &report.created_tables {
        output.line(format_args!("  {created}"));
    }
    if !report.left_out.is_empty() {
        output.line(format_args!(
            "  not created, because SQL is not copied from other devices: {}",
            report.left_out.join(", ")
        ));
    }
    describe_moved(report, output);
    if report.registered_copy {
        output.line(format_args!("  this file is a copy and was registered as a new device"));
    }
    if report.reconciled && report.erased_count == 0 {
        output.line(format_args!(
            "  the changes here and on the server did not match, so both sides were compared"
        ));
    }
    if let Some(loss) = &report.server_loss {
        for line in describe_loss(loss) {
            output.line(format_args!("  {line}"));
        }
    }
    if let Some(discrepancy) = report.discrepancy {
        describe_discrepancy(discrepancy, output);
    }
    if report.conflicts_count > 0 {
        output.line(format_args!(
            "  {}, overwritten by concurrent edits (review or restore: `warren conflicts {}`)",
            counted(report.conflicts_count, "lost edit", "lost edits"),
            path.display()
        ));
    }
    describe_erased(path, report, output);
    describe_rejected(&report.rejected, output);
    if report.set_aside_count > 0 {
        let changes = counted(report.set_aside_count, "change", "changes");
        output.line(format_args!(
            "  not sent: {changes}, because the server rejects the timestamp as invalid"
        ));
    }
    describe_hidden_rows(report, output);
    if report.clock_offset_ms != 0 {
        let (seconds, side) = (report.clock_offset_ms.abs() / 1000, report.clock_offset_ms > 0);
        let side = if side { "behind" } else { "ahead" };
        output.line(format_args!(
            "  this device's clock is {seconds} s {side}; changes were stamped with server time"
        ));
    }
}

fn describe_discrepancy(discrepancy: SetDiscrepancy, output: Printer) {
    match discrepancy {
        SetDiscrepancy::Withheld(count) => output.line(format_args!(
            "  the server reports {} more than it sends",
            counted(count, "change", "changes")
        )),
        SetDiscrepancy::Lost(count) => output.line(format_args!(
            "  the server lacks {} that it had accepted",
            counted(count, "change", "changes")
        )),
        SetDiscrepancy::Other => output.line(format_args!(
            "  the server has the same number of changes, but reports a different fingerprint"
        )),
    }
}

/// The maximum number of listed devices that may have the changes that the server has lost.
const AWAY_COUNT_MAX: usize = 5;

/// Describes the changes that the server has lost, and the devices that may have them.
pub(crate) fn describe_loss(loss: &ServerLoss) -> [String; 2] {
    let at = format_time(loss.repaired_ms);
    let lost = match loss.missing_count {
        Some(count) => counted(count, "change", "changes"),
        None => "an unknown number of changes".to_owned(),
    };
    let what = format!("the server lost {lost} to a damaged disk at {at}");
    if loss.devices_away.is_empty() {
        let who = match loss.missing_count {
            Some(_) => "all known devices have synced since then, and none had the lost changes",
            None => "sync every device that may have changes which the others lack",
        };
        return [what, who.to_owned()];
    }
    let more = loss.devices_away.len().saturating_sub(AWAY_COUNT_MAX);
    let mut names: Vec<_> = loss.devices_away.iter().take(AWAY_COUNT_MAX).cloned().collect();
    names.extend((more > 0).then(|| format!("{more} more")));
    [what, format!("devices that have not synced since then may have them: {}", names.join(", "))]
}

fn describe_moved(report: &SyncReport, output: Printer) {
    for RenumberedRow { table, old_key: from, new_key: to } in &report.renumbered_rows {
        output.line(format_args!(
            "  {table}: row {from} now has key {to}, because another row has key {from}"
        ));
    }
    for RenumberedRow { table, old_key: from, new_key: to } in &report.merged_rows {
        output.line(format_args!(
            "  {table}: row {from} was merged into row {to}, which another device created with the \
             same values"
        ));
    }
}

/// Returns, in brackets, the synced changes that are not shown here, and the changes that were not
/// sent.
fn exceptions(report: &SyncReport) -> String {
    let dangling = VisibilityOverrideKind::DanglingReference;
    let missing = report.visibility_override_counts.get(&dangling).copied().unwrap_or(0);
    let mut hidden =
        Vec::from_iter(counted_unless_zero(report.hidden_rows_count, "hidden row", "hidden rows"));
    hidden.extend(counted_unless_zero(
        missing,
        "deleted row that other rows refer to",
        "deleted rows that other rows refer to",
    ));
    hidden.extend(counted_unless_zero(
        report.rejected_count,
        "change that cannot be applied",
        "changes that cannot be applied",
    ));
    if !report.missing_tables.is_empty() {
        let more = report.missing_tables.len().saturating_sub(UNKNOWN_COUNT_MAX);
        let mut names: Vec<_> =
            report.missing_tables.iter().take(UNKNOWN_COUNT_MAX).cloned().collect();
        names.extend((more > 0).then(|| format!("{more} more")));
        hidden.push(format!("{}, missing in this file", names.join(", ")));
    }
    let hidden = (!hidden.is_empty()).then(|| format!("not shown: {}", hidden.join("; ")));
    let unsent = counted_unless_zero(
        report.set_aside_count,
        "change with an invalid timestamp",
        "changes with invalid timestamps",
    );
    let unsent = unsent.map(|unsent| format!("not sent: {unsent}"));
    let parts: Vec<_> = hidden.into_iter().chain(unsent).collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join("; ")) }
}

/// Returns the count with its noun; `None` for 0.
fn counted_unless_zero(count: u64, singular: &str, plural: &str) -> Option<String> {
    (count > 0).then(|| counted(count, singular, plural))
}

/// The maximum number of tables and columns that one line lists.
const UNKNOWN_COUNT_MAX: usize = 5;

fn describe_erased(path: &Path, report: &SyncReport, output: Printer) {
    let path = path.display();
    if report.erased_count > 0 {
        output.line(format_args!(
            "  data of {} was permanently erased, also from this file",
            counted(report.erased_count, "change", "changes")
        ));
    }
    if report.unerased_count > 0 {
        output.line(format_args!(
            "  erased data of {} is back on the server; to erase it again, run \
             `warren erase {path} --again`",
            counted(report.unerased_count, "change", "changes")
        ));
    }
    if let Some(why) = &report.unscrubbed {
        output.line(format_args!("  pages of this file may still contain erased data: {why}"));
    }
}

fn describe_hidden_rows(report: &SyncReport, output: Printer) {
    use VisibilityOverrideKind as Kind;
    let shown = report.visibility_override_counts.iter().filter(|(_, count)| **count > 0);
    for (kind, count) in shown {
        let state = match kind {
            Kind::Resurrected => "deleted, but still shown because of references from other rows",
            Kind::DanglingReference => "deleted and not shown, despite references from other rows",
            Kind::Displaced => {
                "hidden, because a row with a newer change has the same unique value"
            }
            Kind::Incomplete => "hidden until all chunks of a large value have arrived",
            Kind::InvalidKey => {
                "hidden, because the key does not fit the table, which another device declares \
                 differently"
            }
            Kind::Constraint => "hidden, because of a constraint of the table",
        };
        let command = match kind {
            Kind::Resurrected | Kind::DanglingReference => "warren status",
            _ => "warren conflicts",
        };
        let rows = counted(*count, "row", "rows");
        output.line(format_args!("  {rows} {state} (see `{command}`)"));
    }
    for SchemaConflict { table, reason: why, .. } in &report.schema_conflicts {
        output.line(format_args!("  table {table}: {why}"));
    }
}

fn describe_rejected(rejected: &RejectedMessages, output: Printer) {
    let RejectionCounts { undecodable, not_encrypted, wrong_key, truncated, replayed, tampered } =
        rejected.by_reason;
    for (count, reason) in [
        (undecodable, "unreadable; if another device has a newer version, update Warren"),
        (not_encrypted, "not encrypted, so the author is unknown"),
        (wrong_key, "encrypted with a recovery phrase that is not this account's"),
        (truncated, "truncated"),
        (replayed, "with the content of another change"),
        (tampered, "modified by someone without the recovery phrase"),
    ] {
        if count > 0 {
            let changes = counted(count, "change", "changes");
            output.line(format_args!("  not applied: {changes} ({reason})"));
        }
    }
    for timestamp in &rejected.timestamps {
        output.line(format_args!("    {timestamp}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_of_the_server_names_the_devices_that_may_have_it() {
        let devices_away = (1..8).map(|number| format!("phone {number}")).collect();
        let loss =
            ServerLoss { repaired_ms: 1_795_242_600_000, missing_count: Some(44), devices_away };
        assert_eq!(
            describe_loss(&loss),
            [
                "the server lost 44 changes to a damaged disk at 2026-11-21 06:30:00Z",
                "devices that have not synced since then may have them: phone 1, phone 2, phone 3, \
                 phone 4, phone 5, 2 more",
            ]
        );
        let [lost, who] =
            describe_loss(&ServerLoss { missing_count: None, devices_away: Vec::new(), ..loss });
        assert!(lost.contains("an unknown number of changes"), "{lost}");
        assert!(who.starts_with("sync every device"), "{who}");
    }

    #[test]
    fn what_is_equal_and_not_shown_is_in_brackets() {
        assert_eq!(exceptions(&SyncReport::default()), "");
        let report = SyncReport { rejected_count: 2, ..SyncReport::default() };
        assert_eq!(exceptions(&report), " (not shown: 2 changes that cannot be applied)");
        let report = SyncReport {
            hidden_rows_count: 2,
            visibility_override_counts: [
                (VisibilityOverrideKind::DanglingReference, 1),
                (VisibilityOverrideKind::Resurrected, 7),
                (VisibilityOverrideKind::Constraint, 2),
            ]
            .into(),
            missing_tables: ["t.stars", "u"].map(String::from).into(),
            set_aside_count: 1,
            ..SyncReport::default()
        };
        assert_eq!(
            exceptions(&report),
            " (not shown: 2 hidden rows; 1 deleted row that other rows refer to; t.stars, u, \
             missing in this file; not sent: 1 change with an invalid timestamp)"
        );
        let missing_tables = (1..8).map(|number| format!("t{number}")).collect();
        let report = SyncReport { missing_tables, ..SyncReport::default() };
        assert_eq!(
            exceptions(&report),
            " (not shown: t1, t2, t3, t4, t5, 2 more, missing in this file)"
        );
    }
}
