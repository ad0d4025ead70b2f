//! What a sync did, in words.

use std::path::Path;

use protocol::ServerLoss;
use replica::{
    RejectedMessages, RejectionCounts, RenumberedRow, SchemaConflict, SetDiscrepancy, SyncReport,
    VisibilityOverrideKind,
};

use crate::output::{Printer, format_time};

pub(crate) fn describe(path: &Path, report: &SyncReport, output: Printer) {
    let SyncReport { sent_count: sent, received_count: received, server_messages_count, .. } =
        report;
    let sets = if report.in_sync {
        format!("both sides are equal{}", exceptions(report))
    } else {
        "which is not what is here".to_owned()
    };
    output.line(format_args!(
        "{}: sent {sent}, received {received}; the server holds {server_messages_count} changes, {sets}",
        path.display()
    ));
    for created in &report.created_tables {
        output.line(format_args!("  {created}"));
    }
    if !report.left_out.is_empty() {
        output.line(format_args!(
            "  not taken over, since they are SQL of another device: {}",
            report.left_out.join(", ")
        ));
    }
    describe_moved(report, output);
    if report.registered_copy {
        output.line(format_args!("  this file is a copy: it is a device of its own from here on"));
    }
    if report.reconciled && report.erased_count == 0 {
        output.line(format_args!(
            "  the server had lost or gained something: both sides were compared"
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
            "  {} edits lost to others made without knowing of them: `warren conflicts {}` lists them \
             and gets them back",
            report.conflicts_count,
            path.display()
        ));
    }
    describe_erased(path, report, output);
    describe_rejected(&report.rejected, output);
    if report.set_aside_count > 0 {
        let count = report.set_aside_count;
        output.line(format_args!(
            "  set aside: {count} changes whose timestamps the server calls invalid"
        ));
    }
    describe_hidden_rows(report, output);
    if report.clock_offset_ms != 0 {
        let (seconds, side) = (report.clock_offset_ms.abs() / 1000, report.clock_offset_ms > 0);
        let side = if side { "behind" } else { "ahead" };
        output.line(format_args!(
            "  this device's clock is {seconds} s {side}: changes were stamped with the server's"
        ));
    }
}

fn describe_discrepancy(discrepancy: SetDiscrepancy, output: Printer) {
    match discrepancy {
        SetDiscrepancy::Withheld(count) => output.line(format_args!(
            "  the server says that it holds {count} changes that it does not send"
        )),
        SetDiscrepancy::Lost(count) => output
            .line(format_args!("  the server does not hold {count} changes that it has taken")),
        SetDiscrepancy::Other => output.line(format_args!(
            "  the server holds as many changes, and says that they are others"
        )),
    }
}

/// Names that are shown of the devices that may have what the server has lost.
const AWAY_COUNT_MAX: usize = 5;

/// What the server has lost, and who may have it.
pub(crate) fn describe_loss(loss: &ServerLoss) -> [String; 2] {
    let at = format_time(loss.repaired_ms);
    let lost = match loss.missing_count {
        Some(1) => "1 change".to_owned(),
        Some(count) => format!("{count} changes"),
        None => "an unknown number of changes".to_owned(),
    };
    let what = format!("the server lost {lost} to a damaged disk at {at}");
    if loss.devices_away.is_empty() {
        let who = match loss.missing_count {
            Some(_) => "all devices that it knows have synced since, and none of them had these",
            None => "sync each device that may have changes which others lack",
        };
        return [what, who.to_owned()];
    }
    let more = loss.devices_away.len().saturating_sub(AWAY_COUNT_MAX);
    let mut names: Vec<_> = loss.devices_away.iter().take(AWAY_COUNT_MAX).cloned().collect();
    names.extend((more > 0).then(|| format!("{more} more")));
    [what, format!("devices that have not synced since may have them: {}", names.join(", "))]
}

fn describe_moved(report: &SyncReport, output: Printer) {
    for RenumberedRow { table, old_key: from, new_key: to } in &report.renumbered_rows {
        output.line(format_args!(
            "  {table}: row {from} of this device is row {to} now: the key {from} is another row's"
        ));
    }
    for RenumberedRow { table, old_key: from, new_key: to } in &report.merged_rows {
        output.line(format_args!(
            "  {table}: row {from} of this device is row {to} now, which another device had made with \
             the same values"
        ));
    }
}

/// In brackets, what is equal and not shown here, and what is here and not sent.
fn exceptions(report: &SyncReport) -> String {
    let dangling = VisibilityOverrideKind::DanglingReference;
    let missing = report.visibility_override_counts.get(&dangling).copied().unwrap_or(0);
    let mut hidden = Vec::from_iter(counted(report.hidden_rows_count, "hidden row", ""));
    hidden.extend(counted(missing, "row", " deleted and still referred to"));
    hidden.extend(counted(report.rejected_count, "change", " that cannot be applied"));
    if !report.missing_tables.is_empty() {
        let more = report.missing_tables.len().saturating_sub(UNKNOWN_COUNT_MAX);
        let mut names: Vec<_> =
            report.missing_tables.iter().take(UNKNOWN_COUNT_MAX).cloned().collect();
        names.extend((more > 0).then(|| format!("{more} more")));
        hidden.push(format!("{}, which this file lacks", names.join(", ")));
    }
    let hidden = (!hidden.is_empty()).then(|| format!("not shown: {}", hidden.join("; ")));
    let unsent = counted(report.set_aside_count, "change", " set aside");
    let unsent = unsent.map(|unsent| format!("not sent: {unsent}"));
    let parts: Vec<_> = hidden.into_iter().chain(unsent).collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join("; ")) }
}

/// Nothing if there are none.
fn counted(count: u64, noun: &str, rest: &str) -> Option<String> {
    let plural = if count == 1 { "" } else { "s" };
    (count > 0).then(|| format!("{count} {noun}{plural}{rest}"))
}

/// Tables and columns that are named in one line.
const UNKNOWN_COUNT_MAX: usize = 5;

fn describe_erased(path: &Path, report: &SyncReport, output: Printer) {
    let path = path.display();
    if report.erased_count > 0 {
        output.line(format_args!(
            "  data of {} changes was erased for good, from this file, too",
            report.erased_count
        ));
    }
    if report.unerased_count > 0 {
        output.line(format_args!(
            "  data of {} changes that was erased is back on the server: `warren erase \
             {path} --again` erases it again",
            report.unerased_count
        ));
    }
    if let Some(why) = &report.unscrubbed {
        output.line(format_args!("  pages of this file may still hold erased data: {why}"));
    }
}

fn describe_hidden_rows(report: &SyncReport, output: Printer) {
    use VisibilityOverrideKind as Kind;
    let shown = report.visibility_override_counts.iter().filter(|(_, count)| **count > 0);
    for (kind, count) in shown {
        let words = match kind {
            Kind::Resurrected => "are deleted, and shown because other rows refer to them",
            Kind::DanglingReference => "are deleted and not shown, though other rows refer to them",
            Kind::Displaced => "wait for a row that has the same unique value and a newer change",
            Kind::Incomplete => "wait for a part of a large value that has not arrived",
            Kind::InvalidKey => {
                "have a key that does not fit their table: another device declares it otherwise"
            }
            Kind::Constraint => "are refused by their table",
        };
        let command = match kind {
            Kind::Resurrected | Kind::DanglingReference => "warren status",
            _ => "warren conflicts",
        };
        output.line(format_args!("  {count} rows {words} (`{command}` lists them)"));
    }
    for SchemaConflict { table, reason: why, .. } in &report.schema_conflicts {
        output.line(format_args!("  table {table}: {why}"));
    }
}

fn describe_rejected(rejected: &RejectedMessages, output: Printer) {
    let RejectionCounts { undecodable, not_encrypted, wrong_key, truncated, replayed, tampered } =
        rejected.by_reason;
    for (count, reason) in [
        (undecodable, "cannot be read: if a later version made them, update Warren"),
        (not_encrypted, "are not encrypted, so anybody could have made them"),
        (wrong_key, "were encrypted with a recovery phrase that is not this account's"),
        (truncated, "lost their end"),
        (replayed, "have the content of another change"),
        (tampered, "were changed by somebody who has no recovery phrase"),
    ] {
        if count > 0 {
            output.line(format_args!("  not applied: {count} changes {reason}"));
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
                "devices that have not synced since may have them: phone 1, phone 2, phone 3, phone \
                 4, phone 5, 2 more",
            ]
        );
        let [lost, who] =
            describe_loss(&ServerLoss { missing_count: None, devices_away: Vec::new(), ..loss });
        assert!(lost.contains("an unknown number of changes"), "{lost}");
        assert!(who.starts_with("sync each device"), "{who}");
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
            " (not shown: 2 hidden rows; 1 row deleted and still referred to; t.stars, u, which \
             this file lacks; not sent: 1 change set aside)"
        );
        let missing_tables = (1..8).map(|number| format!("t{number}")).collect();
        let report = SyncReport { missing_tables, ..SyncReport::default() };
        assert_eq!(
            exceptions(&report),
            " (not shown: t1, t2, t3, t4, t5, 2 more, which this file lacks)"
        );
    }
}
