//! Work that must not run on the threads of the async runtime.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::error::{ApiError, OverloadError, Result};

/// Of passwords that are hashed, as `nice` has it: a third of what other threads get where there
/// are not enough cores for all.
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

/// Runs work that keeps a core busy for a moment, and that everything else goes before: on a thread
/// of its own, since no thread may take its priority back.
pub(crate) async fn run_low_priority<T, F>(work: F) -> Result<T, OverloadError>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let (send, receive) = oneshot::channel();
    let runtime = Handle::current();
    let run = move || {
        let _entered = runtime.enter();
        // Of the thread alone.
        #[cfg(target_os = "linux")]
        if let Err(error) = rustix::process::setpriority_process(None, PRIORITY_ASIDE) {
            tracing::debug!(%error, "cannot lower a thread's priority");
        }
        // Who asked may have gone.
        drop(send.send(catch_unwind(AssertUnwindSafe(work))));
    };
    let spawned = thread::Builder::new().name("aside".into()).spawn(run);
    spawned.map_err(|error| {
        tracing::warn!(%error, "cannot start a thread");
        OverloadError::Busy("too many threads are running")
    })?;
    match receive.await {
        Ok(Ok(result)) => Ok(result),
        // Caught by the router's outermost layer, like any handler's panic.
        Ok(Err(panic)) => resume_unwind(panic),
        Err(_stopped) => Err(OverloadError::Stopping),
    }
}

/// [`blocking`], whatever the work returns.
pub(crate) async fn run_blocking<T, F>(work: F) -> Result<T, OverloadError>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    // A panic is caught by the router's outermost layer, like any handler's.
    engine::run_blocking(work).await.map_err(|_closed| OverloadError::Stopping)
}
