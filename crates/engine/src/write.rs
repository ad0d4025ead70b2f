//! Implements the path of a write: queued as a job, run in a batch of the writer, flushed,
//! completed.

pub(crate) mod batch_executor;
pub(crate) mod batch_sizer;
pub(crate) mod completion;
pub(crate) mod job;
pub(crate) mod poison;
pub(crate) mod queue;
pub(crate) mod run_queue;
pub(crate) mod savepoint_policy;
pub(crate) mod wal_file;
pub(crate) mod writer;
