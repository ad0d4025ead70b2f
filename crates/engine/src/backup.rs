//! Copies a database's file without its key, while others write to the database.
//!
//! The pages in the WAL are pages of the file, encrypted alike. So a copy needs no key: it is the
//! file, overwritten with the pages of the WAL up to its last commit. That is one state of the
//! database if the WAL was not restarted and the file not replaced during the copy. A copy requests
//! that others wait with that (`gate.rs`), and they do while it makes progress, where waiting costs
//! no more than a longer WAL. A process that opens or recovers the database does not wait. So a
//! copy trusts no other process: at its end it checks whether both files are the same as at its
//! beginning, and otherwise starts again.
//!
//! A copy with `cp` checks nothing: the file and its WAL are then of different moments.
//!
//! # Invariants
//! - A copy that is returned is the database as one commit left it, in a file without a WAL, and on
//!   the disk.
//! - A stalled copy does not block others for long, and holds no lock except that of the gate.
//!
//! # Not here
//! - The list of files to copy, and the manifest → `warren backup`.

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

/// The number of attempts to copy a file that is opened, closed or replaced during each of them.
const ATTEMPTS_MAX: u32 = 100;

/// The number of bytes of the file that are copied between two checks of the clock.
const CHUNK_BYTES: u64 = 4 << 20;

/// The interval at which a copy shows its progress, and checks whether it is still of use.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);

/// The result of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopiedFile {
    /// The size of the copy in bytes.
    pub bytes: u64,
    /// The number of pages of the copy that came from the WAL.
    pub wal_pages: u64,
}

/// The progress of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyProgress {
    /// The bytes of the file and its WAL that were read. The number drops when the copy starts
    /// again.
    pub read_bytes: u64,
    /// The size of the file and its WAL when the copy began.
    pub total_bytes: u64,
}

/// Copies a database that others may be writing to into a new file. It needs no key, and opens no
/// connection: this process must not have the database open, because closing a descriptor of the
/// same file drops the locks that its connections hold.
///
/// `copier` is the name of the copying command for operators: a server whose database waits for a
/// stalled copy reports it. `on_progress` is called after every few megabytes.
///
/// Returns [`Error::CopyOvertaken`] if the file is opened and closed all the time.
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

/// The reason why an attempt produced no copy.
enum CopyInterruption {
    /// The WAL was created, removed or restarted during the copy, or the file was replaced.
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
    // This check comes last: if it succeeds, everything was read from the files that existed at the
    // beginning. A failed read may be due to a file that was truncated.
    let is_overtaken =
        matches!(copied, Err(CopyInterruption::Overtaken)) || !source.is_unchanged()?;
    // The locks are released first, because no other process needs to wait for the target's disk.
    drop(source);
    if is_overtaken {
        return Err(CopyInterruption::Overtaken);
    }
    let wal_pages = copied?;
    target.sync_all().map_err(io(to))?;
    let bytes = target.metadata().map_err(io(to))?.len();
    Ok(CopiedFile { bytes, wal_pages })
}

/// Copies the file and the pages of its WAL. Returns how many pages were in the WAL.
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

/// Counts the bytes that were read, and shows that the copy makes progress.
struct CopyReporter<'a> {
    source: &'a CopySource<'a>,
    /// The heartbeat, or `None` if there is no WAL, so that no process waits for the copy.
    heartbeat: Option<CopyHeartbeat<'a>>,
    report: &'a mut dyn FnMut(CopyProgress),
    counts: CopyProgress,
    /// The number of read bytes at which progress is reported next.
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
        // An overtaken copy need not be completed.
        if self.source.is_unchanged()? { Ok(()) } else { Err(CopyInterruption::Overtaken) }
    }
}
