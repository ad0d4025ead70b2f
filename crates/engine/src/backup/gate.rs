//! Keeps a WAL from being restarted while its database is copied, for a limited time.
//!
//! A copy needs a WAL that is not moved into its file and restarted during the copy. A copy holds a
//! shared `flock` on the WAL, and a process that is about to move the WAL an exclusive one. Any
//! process can take these locks, and they end with it. SQLite has no locks of its own on that file.
//!
//! A copy may stall: its process is stopped, or its disk hangs. So it must show its progress by a
//! heartbeat (`heartbeat.rs`), and is ignored if it does not.
//!
//! # Invariants
//! - No process waits for a copy that has made no progress for [`STALLED_AFTER`].
//! - Ignoring a lock costs only that copy: a copy checks at its end whether the WAL is still the
//!   same.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::heartbeat;
use crate::error::{Result, io};
use crate::system::clock;
use crate::system::directory_lock::is_unsupported;
use crate::system::side_files::side_file_path;

/// The time after which a copy without a heartbeat is ignored.
const STALLED_AFTER: Duration = Duration::from_secs(30);
/// The time that a copy waits for a running checkpoint. A checkpoint that takes longer, or whose
/// process is stopped, may continue during the copy.
const CHECKPOINT_WAIT_MAX: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The lock that a checkpoint takes to move a WAL into its file, and that a copy of both blocks.
pub(crate) struct WalLock {
    database: PathBuf,
    wal: Arc<File>,
    stalled_after: Duration,
    state: Mutex<WalLockState>,
}

#[derive(Default)]
struct WalLockState {
    /// The number of guards that exist; a `flock` is shared by all of this process.
    inside_count: u32,
    /// The copy that blocked the last attempt to take the lock.
    copy: Option<WaitedForCopy>,
}

struct WaitedForCopy {
    /// The time of the last heartbeat; `None` if the copy has written none, because it has just
    /// begun or may not write.
    heartbeat: Option<SystemTime>,
    heartbeat_seen_at: Instant,
    /// The command and process of the copy, once it counts as stalled.
    stalled_copier: Option<Arc<str>>,
}

/// A guard that allows moving the WAL until it is dropped.
pub(crate) struct CheckpointGuard(Option<Arc<WalLock>>);

impl CheckpointGuard {
    /// Creates a guard for a database that has no WAL.
    pub(crate) fn for_missing_wal() -> Self {
        Self(None)
    }
}

impl WalLock {
    pub(crate) fn new(database: &Path, wal: Arc<File>) -> Arc<Self> {
        Self::with_patience(database, wal, STALLED_AFTER)
    }

    fn with_patience(database: &Path, wal: Arc<File>, stalled_after: Duration) -> Arc<Self> {
        let (database, state) = (database.to_owned(), Mutex::default());
        Arc::new(Self { database, wal, stalled_after, state })
    }

    /// Takes the lock for a checkpoint. Returns `None` while a copy makes progress.
    pub(crate) fn try_lock_for_checkpoint(self: &Arc<Self>) -> Option<CheckpointGuard> {
        let mut state = self.state();
        if state.inside_count == 0
            && !self.try_lock_file(&mut state)
            && state.stalled_copier().is_none()
        {
            return None;
        }
        state.inside_count += 1;
        Some(CheckpointGuard(Some(Arc::clone(self))))
    }

    /// Returns the command and process of a stalled copy that blocked the lock. Checks again
    /// whether it is still stalled.
    pub(crate) fn stalled_copy(&self) -> Option<Arc<str>> {
        let mut state = self.state();
        state.copy.as_ref()?;
        if state.inside_count == 0 && self.try_lock_file(&mut state) {
            self.unlock();
        }
        state.stalled_copier()
    }

    /// Takes the file's lock for this process. Returns `false` if a copy has it.
    fn try_lock_file(&self, state: &mut WalLockState) -> bool {
        // On file systems without such locks, a copy has none either.
        let is_copied = matches!(self.wal.try_lock(), Err(TryLockError::WouldBlock));
        if is_copied {
            self.check_heartbeat(state);
        } else {
            state.copy = None;
        }
        !is_copied
    }

    fn check_heartbeat(&self, state: &mut WalLockState) {
        let (now, heartbeat) = (clock::now(), heartbeat::time_of_last(&self.database));
        match &mut state.copy {
            Some(copy) if copy.heartbeat == heartbeat => {
                if copy.stalled_copier.is_none()
                    && now - copy.heartbeat_seen_at >= self.stalled_after
                {
                    let copier = heartbeat::copier_of(&self.database);
                    let path = self.database.display();
                    tracing::warn!(
                        %path, %copier,
                        "a backup has stalled; the database no longer waits for it"
                    );
                    copy.stalled_copier = Some(copier);
                }
            }
            copy => {
                *copy =
                    Some(WaitedForCopy { heartbeat, heartbeat_seen_at: now, stalled_copier: None });
            }
        }
    }

    fn unlock(&self) {
        if let Err(error) = self.wal.unlock() {
            tracing::warn!(%error, "cannot unlock a WAL");
        }
    }

    fn state(&self) -> MutexGuard<'_, WalLockState> {
        self.state.lock().expect("no code panics while it holds this lock")
    }
}

impl WalLockState {
    fn stalled_copier(&self) -> Option<Arc<str>> {
        self.copy.as_ref()?.stalled_copier.clone()
    }
}

impl Drop for CheckpointGuard {
    fn drop(&mut self) {
        let Some(gate) = &self.0 else { return };
        let mut state = gate.state();
        state.inside_count -= 1;
        if state.inside_count == 0 {
            gate.unlock();
        }
    }
}

/// Opens the WAL and locks it for a copy, until the file is dropped; waits for a running
/// checkpoint. Returns `None` if there is no WAL.
pub(super) fn lock_for_copy(database: &Path) -> Result<Option<File>> {
    let path = side_file_path(database, "-wal");
    let wal = match File::open(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        wal => wal.map_err(io(&path))?,
    };
    let until = clock::now() + CHECKPOINT_WAIT_MAX;
    loop {
        match wal.try_lock_shared() {
            Err(TryLockError::WouldBlock) if clock::now() < until => {
                thread::park_timeout(POLL_INTERVAL);
            }
            Err(TryLockError::Error(error)) if !is_unsupported(&error) => {
                return Err(io(&path)(error));
            }
            // Without the lock, a copy is just as consistent, but may have to start again.
            _ => return Ok(Some(wal)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::backup::CopyHeartbeat;
    use crate::system::side_files::HEARTBEAT_SUFFIX;

    struct GateFixture {
        _directory: tempfile::TempDir,
        database: PathBuf,
    }

    impl GateFixture {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let database = directory.path().join("a.db");
            fs::write(side_file_path(&database, "-wal"), "").unwrap();
            Self { _directory: directory, database }
        }

        fn wal_lock(&self, stalled_after: Duration) -> Arc<WalLock> {
            let wal =
                File::options().read(true).write(true).open(side_file_path(&self.database, "-wal"));
            WalLock::with_patience(&self.database, Arc::new(wal.unwrap()), stalled_after)
        }

        fn begin_copy(&self) -> File {
            lock_for_copy(&self.database).unwrap().unwrap()
        }
    }

    #[test]
    fn a_checkpoint_waits_for_copies_that_go_on() {
        let rig = GateFixture::new();
        let gate = rig.wal_lock(Duration::MAX);
        let (one, other) = (rig.begin_copy(), rig.begin_copy());
        assert!(gate.try_lock_for_checkpoint().is_none());
        drop(one);
        assert!(gate.try_lock_for_checkpoint().is_none());
        drop(other);
        let passes =
            (gate.try_lock_for_checkpoint().unwrap(), gate.try_lock_for_checkpoint().unwrap());
        assert!(
            File::open(side_file_path(&rig.database, "-wal")).unwrap().try_lock_shared().is_err()
        );
        drop(passes);
        drop(rig.begin_copy());
        assert_eq!(gate.stalled_copy(), None);
    }

    #[test]
    fn nobody_waits_for_a_copy_that_has_stalled() {
        let rig = GateFixture::new();
        let gate = rig.wal_lock(Duration::from_millis(1));
        let copy = rig.begin_copy();
        assert!(gate.try_lock_for_checkpoint().is_none(), "it may have just begun");
        thread::park_timeout(Duration::from_millis(2));
        assert_eq!(gate.stalled_copy().as_deref(), Some("an unknown process"));
        drop((gate.try_lock_for_checkpoint().unwrap(), gate.try_lock_for_checkpoint().unwrap()));
        drop(copy);
        assert_eq!(gate.stalled_copy(), None);
        let copy = rig.begin_copy();
        assert!(gate.try_lock_for_checkpoint().is_none(), "this is another one");
        drop(copy);
        assert!(gate.try_lock_for_checkpoint().is_some());
    }

    #[test]
    fn a_heartbeat_shows_that_a_copy_goes_on_and_names_it() {
        let rig = GateFixture::new();
        let gate = rig.wal_lock(Duration::ZERO);
        let _copy = rig.begin_copy();
        let mut heartbeat = CopyHeartbeat::begin(&rig.database, "a test");
        let file = side_file_path(&rig.database, HEARTBEAT_SUFFIX);
        for second in 1..5 {
            heartbeat.beat();
            // The file's time is set as if a second had passed.
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
            File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
            assert!(gate.try_lock_for_checkpoint().is_none());
            assert_eq!(gate.state().stalled_copier(), None);
        }
        let name = format!("a test, process {}", std::process::id());
        assert_eq!(gate.stalled_copy().as_deref(), Some(&*name));
        assert!(gate.try_lock_for_checkpoint().is_some());
        drop(heartbeat);
        assert!(!file.exists());
    }

    #[test]
    fn what_a_heartbeat_says_is_not_believed_blindly() {
        let rig = GateFixture::new();
        let file = side_file_path(&rig.database, HEARTBEAT_SUFFIX);
        assert_eq!(&*heartbeat::copier_of(&rig.database), "an unknown process");
        for text in ["", "\n", "\u{1b}[2J\n", "\u{fffd}\0\n"] {
            fs::write(&file, text).unwrap();
            assert_eq!(&*heartbeat::copier_of(&rig.database), "an unknown process");
        }
        fs::write(&file, "x".repeat(10_000)).unwrap();
        assert_eq!(heartbeat::copier_of(&rig.database).len(), 256);
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert_eq!(&*heartbeat::copier_of(&rig.database), "an unknown process");
        // Neither a copy nor opening the database fails because of it.
        drop(CopyHeartbeat::begin(&rig.database, "a test"));
        super::super::remove_heartbeat(&rig.database);
    }
}
