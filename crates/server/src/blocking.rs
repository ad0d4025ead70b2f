//! Functions that run work which must not run on the threads of the async runtime.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::error::{ApiError, OverloadError, Result};

/// The `nice` value of threads that hash passwords: they get a third of the time of other threads
/// when there are not enough cores for all.
#[cfg(target_os = "linux")]
const PRIORITY_ASIDE: i32 = 5;

/// Runs work that reads files or takes more than a moment.
pub(crate) async fn blocking<T, F>(work: F) -> Result<T, ApiError>
where
    F: FnOnce() -> Result<T, ApiError> + Send + 'static,
    T: Send + 'static,
{
    run_blocking(work).await?
}

/// Runs work that keeps a core busy for a moment, at a low priority. It gets a new thread, because
/// a thread cannot raise its priority again.
pub(crate) async fn run_low_priority<T, F>(work: F) -> Result<T, OverloadError>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let (send, receive) = oneshot::channel();
    let runtime = Handle::current();
    let run = move || {
        let _entered = runtime.enter();
        // On Linux, this sets the priority of this thread alone.
        #[cfg(target_os = "linux")]
        if let Err(error) = rustix::process::setpriority_process(None, PRIORITY_ASIDE) {
            tracing::debug!(%error, "cannot lower a thread's priority");
        }
        // The request that waits for the result may be gone.
        drop(send.send(catch_unwind(AssertUnwindSafe(work))));
    };
    let spawned = thread::Builder::new().name("aside".into()).spawn(run);
    spawned.map_err(|error| {
        tracing::warn!(%error, "cannot start a thread");
        OverloadError::Busy("too many threads are running")
    })?;
    match receive.await {
        Ok(Ok(result)) => Ok(result),
        // The router's outermost layer catches this panic like a handler's.
        Ok(Err(panic)) => resume_unwind(panic),
        Err(_stopped) => Err(OverloadError::Stopping),
    }
}

/// Like [`blocking`], for work that returns any type.
pub(crate) async fn run_blocking<T, F>(work: F) -> Result<T, OverloadError>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    // The router's outermost layer catches a panic like a handler's.
    engine::run_blocking(work).await.map_err(|_closed| OverloadError::Stopping)
}
