//! Wraps the features of the operating system that the engine needs: clocks, locks, files next to a
//! database.

pub(crate) mod blocking;
pub mod clock;
pub(crate) mod directory;
pub(crate) mod directory_lock;
pub(crate) mod fs_type;
pub(crate) mod scratch;
pub(crate) mod side_files;
pub(crate) mod thread_sync;
