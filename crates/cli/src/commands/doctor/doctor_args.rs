//! Defines the arguments of `warren doctor`.

use std::path::PathBuf;

use clap::Args;

use super::watch;
use crate::args::data_dir::StorageArgs;
use crate::args::key_args::CipherKeyArgs;
use crate::args::password::PasswordSource;

// These are the headings in `--help`.
const CODES: &str = "Finding codes";
const FIXING: &str = "Fixing";
const QUERIES: &str = "Queries and settings of a program";
const REPORTING: &str = "Reporting";
const SELECTION: &str = "Files and time";
const VAULT: &str = "Vaults of a server";

/// Diagnose SQLite files and suggest fixes.
///
/// Read-only unless you pass --fix or --undo.
#[derive(Args)]
#[command(after_help = "Examples:
  warren doctor app.db
  warren doctor app.db --query 'SELECT * FROM message WHERE sender = ?1 ORDER BY date'
  warren doctor app.db --queries log/development.log
  warren doctor mail.db --key-file mail.key --json
  warren doctor backup.db --require integrity
  warren tune --emit django --check; warren doctor app.db --settings settings.txt
  warren doctor /srv/app /srv/mail --glob '*.sqlite' --total-time-limit 600 --fail-on error
  warren doctor /srv/mail --glob '*.db' --key-command './key-of.sh $WARREN_FILE'
  warren doctor . --format github --baseline doctor.json --ignore doctor-ignore.txt
  warren doctor /srv/app --history /var/lib/doctor
  warren doctor app.db --watch
  warren doctor app.db --fix all --dry-run
  warren doctor app.db --fix index_duplicate
  warren doctor app.db --undo
  warren doctor --login ada --data ./data
  warren doctor --explain wal_pinned

Safe on files in use: writes nothing and does not block other programs. --fix and --undo change the
file, and only while no program has it open.
Exit status: 0 ok, 1 failed, 2 usage, 3 warnings found, 4 errors found, 5 no warnings or errors
found, but parts of the file were not checked (time limit, file in use, or extensions or collations
that only its own program has).")]
pub(crate) struct DoctorArgs {
    /// SQLite files, encrypted or not, or directories that contain them.
    #[arg(value_name = "FILE", required_unless_present_any = ["login", "explain", "list"])]
    pub(crate) files: Vec<PathBuf>,
    /// Check this query for missing indexes. May be repeated.
    #[arg(long, value_name = "SQL", help_heading = QUERIES)]
    pub(crate) query: Vec<String>,
    /// Check all queries in this log for missing indexes. Accepts SQL statements (one per line, or
    /// separated by `;`), the output of SQLite's trace, and logs of Django, SQLAlchemy and Rails;
    /// `-` reads standard input. May be repeated.
    #[arg(long, value_name = "LOG", help_heading = QUERIES)]
    pub(crate) queries: Vec<PathBuf>,
    /// Also check the settings of a program's connection, as printed by the code from `warren tune
    /// --emit FRAMEWORK --check`; `-` reads standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["login", "undo"])]
    #[arg(help_heading = QUERIES)]
    pub(crate) settings: Option<PathBuf>,
    /// Time limit per file. Skipped checks are listed.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, help_heading = SELECTION)]
    pub(crate) time_limit: f64,
    /// Time limit for all files together. Each file gets a share of it, but at most --time-limit.
    #[arg(long, value_name = "SECONDS", help_heading = SELECTION)]
    pub(crate) total_time_limit: Option<f64>,
    /// In directories, check the files whose names match this pattern, such as `*.sqlite`,
    /// including encrypted files. Default: all files with SQLite's header, which encrypted files do
    /// not have. May be repeated.
    #[arg(long, value_name = "PATTERN", help_heading = SELECTION)]
    pub(crate) glob: Vec<glob::Pattern>,
    /// Format of the report.
    #[arg(long, value_name = "FORMAT", default_value = "text", conflicts_with = "fix")]
    #[arg(help_heading = REPORTING)]
    pub(crate) format: DoctorFormat,
    /// Lowest severity that causes a nonzero exit status.
    #[arg(long, value_name = "SEVERITY", default_value = "warning", help_heading = REPORTING)]
    pub(crate) fail_on: FailOn,
    /// Earlier `--json` output. Its findings do not affect the exit status.
    #[arg(long, value_name = "FILE", conflicts_with = "fix", help_heading = REPORTING)]
    pub(crate) baseline: Option<PathBuf>,
    /// Ignore the findings listed in this file, one per line: `CODE [FILE [NAME]] # reason`.
    #[arg(long, value_name = "FILE", conflicts_with = "fix", help_heading = REPORTING)]
    pub(crate) ignore: Option<PathBuf>,
    /// Record the results of each run in this directory, and report changes since the last run and
    /// over the last eight days.
    #[arg(long, value_name = "DIR", conflicts_with = "fix", help_heading = REPORTING)]
    pub(crate) history: Option<PathBuf>,
    /// Exit with status 5 if this check was not completed and no errors were found.
    #[arg(long, value_name = "CHECK", help_heading = REPORTING)]
    pub(crate) require: Option<RequiredCheck>,
    #[command(flatten, next_help_heading = "Watching")]
    pub(crate) watch: watch::WatchArguments,
    /// Apply the fixes of this code, or all fixes that need no decision from you. Files of up to
    /// 256 MiB are first fixed in memory, as a test. The original file is kept in FILE.undo-N, and
    /// restored if a fix fails.
    #[arg(long, value_name = "CODE|all", conflicts_with_all = ["login", "require"])]
    #[arg(help_heading = FIXING)]
    pub(crate) fix: Option<String>,
    /// With --fix: apply the fixes only in memory, and show the result.
    #[arg(long, requires = "fix", help_heading = FIXING)]
    pub(crate) dry_run: bool,
    /// Undo the last --fix: restore the original file.
    #[arg(long, conflicts_with_all = ["fix", "login", "query", "queries", "require"])]
    #[arg(help_heading = FIXING)]
    pub(crate) undo: bool,
    /// Explain a finding code: meaning, source, detection and fix.
    #[arg(long, value_name = "CODE", conflicts_with_all = ["files", "login", "query", "queries"])]
    #[arg(help_heading = CODES)]
    pub(crate) explain: Option<String>,
    /// List all finding codes and exit.
    #[arg(long, conflicts_with_all = ["files", "login", "query", "queries", "explain"])]
    #[arg(help_heading = CODES)]
    pub(crate) list: bool,
    #[command(flatten, next_help_heading = "Encrypted files")]
    pub(crate) key: CipherKeyArgs,
    /// Check the vault of this account in the data directory. Prompts for its password.
    #[arg(long, conflicts_with_all = ["files", "key_file", "passphrase_file", "key_command", "cipher"])]
    #[arg(help_heading = VAULT)]
    pub(crate) login: Option<String>,
    #[command(flatten, next_help_heading = VAULT)]
    pub(crate) place: StorageArgs,
    #[command(flatten, next_help_heading = VAULT)]
    pub(crate) password: PasswordSource,
}

/// Values of `--format`.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DoctorFormat {
    /// Text; JSON with --json.
    Text,
    /// Annotations for GitHub Actions.
    Github,
    /// JUnit XML, one test per file.
    Junit,
    /// Metrics for the Prometheus textfile collector.
    Prometheus,
    /// SARIF 2.1.0 for code scanning.
    Sarif,
}

/// Values of `--fail-on`.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FailOn {
    Error,
    Warning,
    Never,
}

/// Values of `--require`.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RequiredCheck {
    /// SQLite's integrity check, and full-text indexes against their content.
    Integrity,
}
