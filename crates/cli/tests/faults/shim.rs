//! The library that breaks a program's file operations (`faultio.c`), and what arms it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

/// Classes of operations, as bits. The same numbers are in `faultio.c`.
pub(crate) mod operation {
    pub(crate) const WRITE: u32 = 1;
    pub(crate) const SYNC: u32 = 2;
    pub(crate) const TRUNCATE: u32 = 4;
    pub(crate) const RENAME: u32 = 8;
    pub(crate) const UNLINK: u32 = 16;
    pub(crate) const OPEN: u32 = 32;
    pub(crate) const MKDIR: u32 = 64;
    /// What changes something on the disk.
    pub(crate) const CHANGES: u32 = WRITE | SYNC | TRUNCATE | RENAME | UNLINK | MKDIR;
}

/// How an operation is broken. The same numbers are in `faultio.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum FaultMode {
    /// It fails, and the next one succeeds. Of a flush: what it was to write never gets there.
    Once = 1,
    /// It fails, and so do all after it.
    From = 2,
    /// Half of it is written.
    Short = 3,
    KillBefore = 4,
    KillAfter = 5,
    /// Half of it is written, and the process is killed.
    KillTorn = 6,
    /// The process is stopped before it, until it gets a `SIGCONT`.
    Stop = 7,
}

impl FaultMode {
    pub(crate) fn kills(self) -> bool {
        matches!(self, Self::KillBefore | Self::KillAfter | Self::KillTorn)
    }
}

/// The compiled library. The file is gone when the process ends.
pub(crate) fn library() -> &'static Path {
    static LIBRARY: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = LIBRARY.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("faultio.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/faults/faultio.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-Wall", "-Werror", "-shared", "-fPIC", source, "-ldl", "-lpthread"]);
        let output = compiler.arg("-o").arg(&path).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        (folder, path)
    });
    path
}

/// `struct control`: one process, or several one after the other, under the library.
pub(crate) struct ShimControl {
    path: PathBuf,
    file: File,
}

/// Where the fields of `struct control` are.
const COUNT: u64 = 0;
const FAIL_AT: u64 = 8;
const FIRED: u64 = 16;
const MODE: u64 = 24;
const MASK: u64 = 28;
const ERROR: u64 = 32;
const ARMED: u64 = 36;
const HIT: u64 = 40;
const HIT_BYTES: usize = 216;
const CONTROL_BYTES: usize = 256;

impl ShimControl {
    pub(crate) fn new(folder: &Path) -> Self {
        let path = folder.join("control");
        fs::write(&path, [0; CONTROL_BYTES]).unwrap();
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        Self { path, file }
    }

    /// Counts these operations from here on, and breaks the one with number `at` (from 1).
    pub(crate) fn arm(&self, mode: FaultMode, at: u64, mask: u32, errno: i32) {
        self.disarm();
        self.file.write_all_at(&[0; CONTROL_BYTES], 0).unwrap();
        self.put(FAIL_AT, at);
        self.put_small(MODE, mode as u32);
        self.put_small(MASK, mask);
        self.put_small(ERROR, errno.cast_unsigned());
        self.put_small(ARMED, 1);
    }

    pub(crate) fn disarm(&self) {
        self.put_small(ARMED, 0);
    }

    /// Operations since it was armed.
    pub(crate) fn count(&self) -> u64 {
        self.get(COUNT)
    }

    /// What was broken first, if anything was: an operation and a path.
    pub(crate) fn hit(&self) -> Option<String> {
        if self.get(FIRED) == 0 {
            return None;
        }
        let mut text = [0; HIT_BYTES];
        self.file.read_exact_at(&mut text, HIT).unwrap();
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(HIT_BYTES);
        Some(String::from_utf8_lossy(&text[..end]).into_owned())
    }

    /// For a process whose operations below `folder` are to be watched.
    pub(crate) fn environment(&self, folder: &Path, log: Option<&Path>) -> Vec<(String, OsString)> {
        let mut variables = vec![
            ("LD_PRELOAD".to_owned(), library().into()),
            ("FAULT_DIR".to_owned(), folder.into()),
            ("FAULT_CTL".to_owned(), self.path.clone().into()),
        ];
        match log {
            Some(log) => variables.push(("FAULT_LOG".to_owned(), log.into())),
            None => variables.push(("FAULT_FAST".to_owned(), "1".into())),
        }
        variables
    }

    fn get(&self, at: u64) -> u64 {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, at).unwrap();
        u64::from_ne_bytes(bytes)
    }

    fn put(&self, at: u64, value: u64) {
        self.file.write_all_at(&value.to_ne_bytes(), at).unwrap();
    }

    fn put_small(&self, at: u64, value: u32) {
        self.file.write_all_at(&value.to_ne_bytes(), at).unwrap();
    }
}
