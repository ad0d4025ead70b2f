//! Implements `warren recover`: copies the readable content of a damaged SQLite file into a new
//! one.

use std::path::PathBuf;

use clap::Args;
use doctor::{RecoverOptions, RecoverProgress, RecoverReport, RecoveredTable, counted};

use crate::args::key_args::CipherKeyArgs;
use crate::output::exit_status::{STATUS_ERROR, STATUS_WARNING};
use crate::output::{NonZeroExit, Printer};
use crate::signals;

/// Recover the readable content of a damaged SQLite file into a new file.
///
/// Encrypted files are supported; the new file gets the same key and cipher. FILE and its directory
/// are not changed. A journal or WAL next to FILE is applied while reading, in the same way as
/// SQLite applies it.
#[derive(Args)]
#[command(after_help = "Examples:
  warren recover app.db saved.db
  warren recover mail.db saved.db --key-file mail.key
  warren recover mail.db saved.db --key-file mail.key --decrypt --json

If the disk may be failing, first copy FILE with its -wal and -journal files. OUT appears only when
it is complete and on disk; Ctrl-C leaves no files behind.
Exit status: 0 no known data loss, 1 failed, 2 usage, 3 data lost, 4 errors found in OUT.")]
pub(crate) struct RecoverArgs {
    /// Damaged SQLite file. No program may have it open.
    file: PathBuf,
    /// File to create. Must not exist.
    out: PathBuf,
    #[command(flatten)]
    key: CipherKeyArgs,
    /// Write the new file without encryption.
    #[arg(long)]
    decrypt: bool,
    /// Also recover rows from free pages. Most of these rows had been deleted.
    #[arg(long)]
    free_pages: bool,
}

pub(crate) fn run(arguments: &RecoverArgs, output: Printer) -> anyhow::Result<()> {
    let encryption = arguments.key.encryption(&arguments.file)?;
    let options =
        RecoverOptions { includes_free_pages: arguments.free_pages, decrypts: arguments.decrypt };
    signals::remove_temporary_files_first()?;
    let bar = output.progress();
    let show = |progress| match progress {
        RecoverProgress::Reading { page, pages_count } => {
            bar.set_message("pages");
            bar.set_length(pages_count.into());
            bar.set_position(page.into());
        }
        RecoverProgress::Saving { rows_count } => {
            bar.set_message("rows");
            bar.set_length(rows_count);
            bar.set_position(rows_count);
        }
        RecoverProgress::Checking => bar.set_message("checking"),
    };
    let recovered = doctor::recover(&arguments.file, &encryption, &arguments.out, options, show);
    bar.finish_and_clear();
    let recovered = recovered?;
    print_report(&recovered, output);
    output.json(&recovered)?;
    match (recovered.complete, recovered.sound) {
        (_, false) => Err(NonZeroExit(STATUS_ERROR).into()),
        (false, true) => Err(NonZeroExit(STATUS_WARNING).into()),
        (true, true) => Ok(()),
    }
}

fn print_report(recovered: &RecoverReport, output: Printer) {
    print_pages(recovered, output);
    let whole = recovered.tables.iter().filter(|table| table.is_whole());
    output.line(format_args!(
        "{}: {} from {}; no known losses in {}",
        recovered.target_path,
        rows(recovered.saved_rows_count),
        tables(recovered.tables.len()),
        tables(whole.count())
    ));
    for table in recovered.tables.iter().filter(|table| !table.is_whole()) {
        output.line(format_args!("  {}", losses_of(table)));
    }
    if let Some(lost) = &recovered.lost_and_found {
        output.line(format_args!(
            "{}: {} from pages that belong to no known table; rows with the same rootpgno belong \
             together, id is the rowid, and c0, c1, … are the columns",
            lost.table,
            rows(lost.rows_count)
        ));
    }
    for object in &recovered.missing {
        let (kind, name) = (&object.kind, &object.name);
        output.line(format_args!("not re-created: {kind} {name}: {}", object.reason));
    }
    for collation in &recovered.collations {
        output.line(format_args!(
            "collation {collation} is not part of SQLite; run REINDEX {collation} in the program \
             that defines it"
        ));
    }
    if recovered.sound {
        output.line(format_args!("verified: SQLite found no errors"));
    }
    for message in recovered.integrity.iter().filter(|_| !recovered.sound) {
        output.line(format_args!("integrity_check: {message}"));
    }
    output.line(format_args!(
        "next: compare {} with a backup or with what you expect; then close every program that \
         uses {}, move it away with its -wal and -journal files, and rename {} to {}",
        recovered.target_path, recovered.path, recovered.target_path, recovered.path
    ));
}

fn print_pages(recovered: &RecoverReport, output: Printer) {
    let pages = &recovered.pages;
    let file = &recovered.path;
    if pages.pages_count == 0 {
        output.line(format_args!(
            "{file}: the header is damaged; a replacement was used for reading"
        ));
    } else {
        output.line(format_args!(
            "{file}: {}, {} unreadable",
            counted(pages.pages_count, "page", "pages"),
            pages.unreadable_count
        ));
    }
    if pages.missing_count > 0 {
        output.line(format_args!(
            "missing according to the header: {}",
            counted(pages.missing_count, "page", "pages")
        ));
    }
    if !pages.page_1_readable {
        output.line(format_args!(
            "page 1 is lost, and with it the settings and all or part of the schema"
        ));
    } else if recovered.lost_schema_pages_count > 0 || recovered.torn_schema_rows_count > 0 {
        output.line(format_args!("part of the schema is lost; there may have been more tables"));
    }
}

fn losses_of(table: &RecoveredTable) -> String {
    let mut parts = vec![format!("{}: {} saved", table.name, rows(table.saved_rows_count))];
    if table.lost_rows_count > 0 {
        parts.push(format!("at least {} lost", table.lost_rows_count));
    }
    if table.lost_pages_count > 0 {
        let pages = counted(table.lost_pages_count, "page", "pages");
        parts.push(format!("{pages} lost with everything on or below"));
    }
    if table.torn_rows_count > 0 {
        parts.push(format!("{} saved with a truncated or wrong value", table.torn_rows_count));
    }
    if let Some(rejected) = &table.rejected {
        parts.push(format!("{} rejected ({})", rejected.rows_count, rejected.reason));
    }
    parts.join(", ")
}

fn rows(count: u64) -> String {
    counted(count, "row", "rows")
}

fn tables(count: usize) -> String {
    counted(count as u64, "table", "tables")
}
