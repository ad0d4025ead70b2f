//! The arguments of `warren doctor`.

use std::path::PathBuf;

use clap::Args;

use super::watch;
use crate::args::data_dir::StorageArgs;
use crate::args::key_args::CipherKeyArgs;
use crate::args::password::PasswordSource;

/// Find what is wrong with an SQLite file, or slow, and what to do about it. Changes nothing.
#[derive(Args)]
#[command(after_help = "Example:
  warren doctor app.db
  warren doctor app.db --query 'SELECT * FROM message WHERE sender = ?1 ORDER BY date'
  warren doctor app.db --queries log/development.log
  warren doctor mail.db --key-file mail.key --json
  warren doctor backup.db --require integrity
  warren tune --emit django --check; warren doctor app.db --settings settings.txt
  warren doctor /srv/app /srv/mail --glob '*.sqlite' --total-budget 600 --fail-on error
  warren doctor /srv/mail --glob '*.db' --key-command './key-of.sh $WARREN_FILE'
  warren doctor . --format github --baseline doctor.json --ignore doctor-ignore.txt
  warren doctor /srv/app --history /var/lib/doctor
  warren doctor app.db --watch
  warren doctor app.db --fix all --dry-run
  warren doctor app.db --fix index_duplicate
  warren doctor app.db --undo
  warren doctor --login ada --data ./data
  warren doctor --explain wal_pinned

Safe on a file that is in use: nothing is written, created or deleted, and nobody waits for it.
Only --fix and --undo change the file, and only while no program has it open.
Exit status: 0 nothing above info, 3 warnings, 4 errors in the file; 5 nothing above info, but not
all of the file was compared (too large for the budget, in use, or with what only its own program
has); 1 it could not be examined.")]
pub(crate) struct DoctorArgs {
    /// SQLite files, encrypted or not; of folders, all that are in them.
    #[arg(value_name = "FILE", required_unless_present_any = ["login", "explain", "list"])]
    pub(crate) files: Vec<PathBuf>,
    /// A query that the file is used for, to be looked at for a missing index.
    #[arg(long, value_name = "SQL")]
    pub(crate) query: Vec<String>,
    /// What a program asked of the file, to find the indexes for all of it: statements, one a line
    /// or each with a `;`, what SQLite's trace wrote, or a log of Django, `SQLAlchemy` or Rails;
    /// `-` for the standard input.
    #[arg(long, value_name = "LOG")]
    pub(crate) queries: Vec<PathBuf>,
    /// What a connection of a program answered, as the code of `warren tune --check` prints
    /// it: judged together with the file. `-` reads it from standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["login", "undo"])]
    pub(crate) settings: Option<PathBuf>,
    /// How long it may take; what there was no time for is said.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    pub(crate) budget: f64,
    /// For all files together: each gets a share of what is left of it, and at most --budget.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) total_budget: Option<f64>,
    /// In folders, look at the files of these names only (`*.sqlite`), whatever they begin with;
    /// otherwise at those that begin as SQLite files do. Encrypted ones do not.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) glob: Vec<glob::Pattern>,
    /// How to print.
    #[arg(long, value_name = "FORMAT", default_value = "text", conflicts_with = "fix")]
    pub(crate) format: DoctorFormat,
    /// From which severity on the exit status tells: error, warning, or never.
    #[arg(long, value_name = "SEVERITY", default_value = "warning")]
    pub(crate) fail_on: FailOn,
    /// What `--json` printed before: what is in it does not count for the exit status any more.
    #[arg(long, value_name = "FILE", conflicts_with = "fix")]
    pub(crate) baseline: Option<PathBuf>,
    /// What is to be left as it is, with the reason: a line each, `CODE [FILE [NAME]] # why`.
    #[arg(long, value_name = "FILE", conflicts_with = "fix")]
    pub(crate) ignore: Option<PathBuf>,
    /// Keep figures and findings of each run in this folder, and say what has changed since the
    /// last one and in a week.
    #[arg(long, value_name = "FOLDER", conflicts_with = "fix")]
    pub(crate) history: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) watch: watch::WatchArguments,
    /// What must have been done to the end: exit status 5 if it was not, whatever the warnings.
    #[arg(long, value_name = "WHAT")]
    pub(crate) require: Option<RequiredCheck>,
    /// Carry out the mends of this code, or of all that need no decision: first in memory, then,
    /// with a copy of the file in FILE.undo-N, on the file. It is as it was if that fails.
    #[arg(long, value_name = "CODE|all", conflicts_with_all = ["login", "require"])]
    pub(crate) fix: Option<String>,
    /// With --fix: carry them out in memory only, and say what would come of it.
    #[arg(long, requires = "fix")]
    pub(crate) dry_run: bool,
    /// Put the file back as it was before the last --fix.
    #[arg(long, conflicts_with_all = ["fix", "login", "query", "queries", "require"])]
    pub(crate) undo: bool,
    #[command(flatten)]
    pub(crate) key: CipherKeyArgs,
    /// Say what a code means, where that is from, how it is found and what mends it.
    #[arg(long, value_name = "CODE", conflicts_with_all = ["files", "login", "query", "queries"])]
    pub(crate) explain: Option<String>,
    /// List what can be found.
    #[arg(long, conflicts_with_all = ["files", "login", "query", "queries", "explain"])]
    pub(crate) list: bool,
    /// An account's vault, on the data directory; its password is asked for.
    #[arg(long, conflicts_with_all = ["files", "key_file", "passphrase_file", "key_command", "cipher"])]
    pub(crate) login: Option<String>,
    #[command(flatten)]
    pub(crate) place: StorageArgs,
    #[command(flatten)]
    pub(crate) password: PasswordSource,
}

/// What `--format` takes.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DoctorFormat {
    /// For people; with --json, one JSON value.
    Text,
    /// Annotations of a workflow on GitHub.
    Github,
    /// XML as `JUnit` writes it: a test for each file.
    Junit,
    /// Metrics for Prometheus' textfile collector.
    Prometheus,
    /// SARIF 2.1.0.
    Sarif,
}

/// What `--fail-on` takes.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FailOn {
    Error,
    Warning,
    Never,
}

/// What `--require` takes.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RequiredCheck {
    /// All that SQLite's own check compares, and full-text indexes with their content.
    Integrity,
}
