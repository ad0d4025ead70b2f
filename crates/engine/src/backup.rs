//! A copy of a database's file while others write to it, without its key.
//!
//! The pages that the WAL holds are those of the file, encrypted alike. So a copy needs no key: the
//! file as it is, and over it the pages of the WAL up to its last commit. That is one state of the
//! database if the WAL was not started again meanwhile, nor the file replaced. A copy asks others
//! to wait with that (`gate.rs`), and they do while it makes progress, where waiting costs nothing
//! but a longer WAL. Who opens a database, or recovers it, does not wait. So a copy relies on
//! nobody: it looks at its end whether both files are still what they were at its beginning, and
//! else begins again.
//!
//! A copy `cp` would make looks at nothing: the file and its WAL are then of different moments.
//!
//! # Invariants
//! - A copy that is given out is the database as one commit left it, in a file without a WAL, and on
//!   the disk.
//! - A copy that stalls is in nobody's way for long, and holds no lock but that of the gate.
//!
//! # Not here
//! - What there is to be copied, and the manifest → `warren backup`.

mod frames;
mod gate;
mod heartbeat;
mod source;

use std::fs::File;
use std::io::{self as std_io, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use self::frames::{CommittedFrames, read_frames};
pub(crate) use self::gate::{CheckpointGuard, WalLock};
use self::heartbeat::CopyHeartbeat;
pub(crate) use self::heartbeat::remove_heartbeat;
use self::source::CopySource;
use crate::error::{Error, Result, io};
use crate::system::clock;
use crate::system::directory::{directory_of, sync_directory};
use crate::system::side_files::{bytes_with_wal, side_file_path};

/// How often a copy is begun again because the file was opened, closed or replaced meanwhile.
const ATTEMPTS_MAX: u32 = 100;

/// Bytes of the file between two looks at the clock.
const CHUNK_BYTES: u64 = 4 << 20;

/// How often a copy shows that it goes on, and looks whether it is in vain.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);

/// What was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopiedFile {
    /// The size of the copy.
    pub bytes: u64,
    /// Pages of it that were in the WAL.
    pub wal_pages: u64,
}

/// How far a copy has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyProgress {
    /// Bytes of the file and its WAL that were read. Less than before when the copy begins again.
    pub read_bytes: u64,
    /// The size of both when the copy began.
    pub total_bytes: u64,
}

/// Copies a database that others may be writing to into a new file. Needs no key, and opens no
/// connection: this process must not have the database open, because closing a descriptor of the
/// same file drops the locks that its connections hold.
///
/// `copier` is the command that copies, as an operator knows it: a server whose database waits for
/// a copy that has stalled names it. `on_progress` is called after every few megabytes.
///
/// [`Error::CopyOvertaken`] if the file is opened and closed all the time.
pub fn copy_file(
    database: &Path,
    to: &Path,
    copier: &str,
    mut on_progress: impl FnMut(CopyProgress),
) -> Result<CopiedFile> {
    for _ in 0..ATTEMPTS_MAX {
        match try_copy(database, to, copier, &mut on_progress) {
            Ok(copied) => {
                sync_directory(directory_of(to))?;
                return Ok(copied);
            }
            Err(CopyInterruption::Overtaken) => {}
            Err(CopyInterruption::Failed(error)) => return Err(error),
        }
    }
    Err(Error::CopyOvertaken { path: database.to_owned(), attempts_count: ATTEMPTS_MAX })
}

/// Why an attempt came to no copy.
enum CopyInterruption {
    /// The WAL came, went or was started again meanwhile, or the file was replaced.
    Overtaken,
    Failed(Error),
}

impl From<Error> for CopyInterruption {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

fn try_copy(
    database: &Path,
    to: &Path,
    copier: &str,
    report: &mut dyn FnMut(CopyProgress),
) -> Result<CopiedFile, CopyInterruption> {
    let source = CopySource::open(database)?;
    let target = File::create(to).map_err(io(to))?;
    let copied = copy_source(&source, (&target, to), copier, report);
    // Last: what was read is of the files that were there from the beginning. What could not be
    // read may have been cut off meanwhile.
    let is_overtaken =
        matches!(copied, Err(CopyInterruption::Overtaken)) || !source.is_unchanged()?;
    // Nobody has to wait for the target's disk.
    drop(source);
    if is_overtaken {
        return Err(CopyInterruption::Overtaken);
    }
    let wal_pages = copied?;
    target.sync_all().map_err(io(to))?;
    let bytes = target.metadata().map_err(io(to))?.len();
    Ok(CopiedFile { bytes, wal_pages })
}

/// Returns how many pages were in the WAL.
fn copy_source(
    source: &CopySource<'_>,
    (target, to): (&File, &Path),
    copier: &str,
    report: &mut dyn FnMut(CopyProgress),
) -> Result<u64, CopyInterruption> {
    let mut progress = CopyReporter::new(source, copier, report)?;
    loop {
        let mut chunk = (&source.file).take(CHUNK_BYTES);
        let mut target = target;
        match std_io::copy(&mut chunk, &mut target).map_err(io(to))? {
            0 => break,
            bytes => progress.add(bytes)?,
        }
    }
    let Some(wal) = &source.wal else { return Ok(0) };
    let frames = read_frames(source.path, wal, |bytes| progress.add(bytes))?;
    write_frames(source, wal, &frames, (target, to), &mut progress)?;
    Ok(frames.pages.len() as u64)
}

/// Writes the committed pages of the WAL over those of the file.
fn write_frames(
    source: &CopySource<'_>,
    wal: &File,
    frames: &CommittedFrames,
    (target, to): (&File, &Path),
    progress: &mut CopyReporter<'_>,
) -> Result<(), CopyInterruption> {
    let Some(commit_pages) = frames.database_pages else { return Ok(()) };
    let page_bytes = u64::from(frames.page_bytes);
    let mut content = vec![0; frames.page_bytes as usize];
    for (&page, &at) in &frames.pages {
        wal.read_exact_at(&mut content, at).map_err(io(&side_file_path(source.path, "-wal")))?;
        target.write_all_at(&content, (u64::from(page) - 1) * page_bytes).map_err(io(to))?;
        progress.add(0)?;
    }
    target.set_len(u64::from(commit_pages) * page_bytes).map_err(io(to))?;
    Ok(())
}

/// Counts what was read, and shows that the copy goes on.
struct CopyReporter<'a> {
    source: &'a CopySource<'a>,
    /// `None`: nobody waits, because there is no WAL.
    heartbeat: Option<CopyHeartbeat<'a>>,
    report: &'a mut dyn FnMut(CopyProgress),
    counts: CopyProgress,
    /// When it is reported next.
    next_report_bytes: u64,
    next_heartbeat: Instant,
}

impl<'a> CopyReporter<'a> {
    fn new(
        source: &'a CopySource<'_>,
        copier: &'a str,
        report: &'a mut dyn FnMut(CopyProgress),
    ) -> Result<Self> {
        let counts = CopyProgress { read_bytes: 0, total_bytes: bytes_with_wal(source.path)? };
        let heartbeat = source.wal.as_ref().map(|_| CopyHeartbeat::begin(source.path, copier));
        let next_heartbeat = clock::now() + HEARTBEAT_INTERVAL;
        Ok(Self {
            source,
            heartbeat,
            report,
            counts,
            next_report_bytes: CHUNK_BYTES,
            next_heartbeat,
        })
    }

    fn add(&mut self, bytes: u64) -> Result<(), CopyInterruption> {
        self.counts.read_bytes += bytes;
        if self.counts.read_bytes >= self.next_report_bytes {
            self.next_report_bytes = self.counts.read_bytes + CHUNK_BYTES;
            (self.report)(self.counts);
        }
        let now = clock::now();
        if now < self.next_heartbeat {
            return Ok(());
        }
        self.next_heartbeat = now + HEARTBEAT_INTERVAL;
        if let Some(heartbeat) = &mut self.heartbeat {
            heartbeat.beat();
        }
        // What was overtaken needs no end.
        if self.source.is_unchanged()? { Ok(()) } else { Err(CopyInterruption::Overtaken) }
    }
}
