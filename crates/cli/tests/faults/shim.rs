//! The library that breaks a program's file operations (`faultio.c`), and the control that arms
//! it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

/// Classes of operations, as bits. `faultio.c` has the same numbers.
pub(crate) mod operation {
    pub(crate) const WRITE: u32 = 1;
    pub(crate) const SYNC: u32 = 2;
    pub(crate) const TRUNCATE: u32 = 4;
    pub(crate) const RENAME: u32 = 8;
    pub(crate) const UNLINK: u32 = 16;
    pub(crate) const OPEN: u32 = 32;
    pub(crate) const MKDIR: u32 = 64;
    /// The operations that change something on the disk.
    pub(crate) const CHANGES: u32 = WRITE | SYNC | TRUNCATE | RENAME | UNLINK | MKDIR;
}

/// The ways to break an operation. `faultio.c` has the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum FaultMode {
    /// The operation fails, and the next one succeeds. If it is a flush, its data is never
    /// written.
    Once = 1,
    /// The operation fails, and so do all later ones.
    From = 2,
    /// Half of the data is written.
    Short = 3,
    KillBefore = 4,
    KillAfter = 5,
    /// Half of the data is written, and the process is killed.
    KillTorn = 6,
    /// The process is stopped before the operation, until it gets a `SIGCONT`.
    Stop = 7,
}

impl FaultMode {
    pub(crate) fn kills(self) -> bool {
        matches!(self, Self::KillBefore | Self::KillAfter | Self::KillTorn)
    }
}

/// Returns the path of the compiled library. The file is deleted when the process ends.
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

/// The file with the `struct control` of one process, or of several that run the library one after
/// the other.
pub(crate) struct ShimControl {
    path: PathBuf,
    file: File,
}

/// The offsets of the fields of `struct control`.
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

    /// Returns the number of operations since it was armed.
    pub(crate) fn count(&self) -> u64 {
        self.get(COUNT)
    }

    /// Returns the first broken operation and its path, if any was broken.
    pub(crate) fn hit(&self) -> Option<String> {
        if self.get(FIRED) == 0 {
            return None;
        }
        let mut text = [0; HIT_BYTES];
        self.file.read_exact_at(&mut text, HIT).unwrap();
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(HIT_BYTES);
        Some(String::from_utf8_lossy(&text[..end]).into_owned())
    }

    /// Returns the environment of a process whose operations below `folder` are watched.
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
