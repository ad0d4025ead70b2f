//! Carries one write from its caller to the writer and back, in one allocation.
//!
//! A closure, its result and the caller's waker share one `Arc`. The caller's side is
//! [`WriteFuture`]; the writer's is [`WriteJob`] until its batch has committed. Then the job is in
//! an [`UnflushedBatch`] if its caller must not be notified before a flush, and finally in a
//! [`CompletedBatch`].
//!
//! # Invariants
//! - Every caller gets an answer. Only [`CompletedBatch::complete`] reports success, and an
//!   unflushed batch becomes a completed one only with the proof of a flush. A job that is dropped
//!   before, by a panic or a refused hand-over, answers [`Error::Closed`].
//! - An answer is visible before its waker is called, so no answer is lost.
//! - No lock that a caller takes is held while the closure runs.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use super::wal_file::FlushProof;
use crate::error::{Error, Result};
use crate::open::transaction::Transaction;
use crate::system::thread_sync::{Mutex, MutexGuard};

/// The guarantee that a write has when its caller receives `Ok`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// The write is committed: it survives the end of this program, but not a power loss. (The
    /// commit uses the profile's `synchronous`.)
    Os,
    /// The write is committed and flushed to the disk: it survives a power loss.
    Disk,
}

/// The answer to a write, as a future; plain threads call [`WriteFuture::wait`]. Dropping it does
/// not cancel the write.
#[must_use = "the write happens anyway, but only this reports whether it succeeded"]
pub struct WriteFuture<T, E>(Arc<dyn ErasedCompletion<T, E>>);

impl<T, E> WriteFuture<T, E> {
    /// Blocks this thread until the write has an answer.
    ///
    /// # Panics
    /// Panics inside an asynchronous task; use `.await` there. The task's thread may be the one
    /// that delivers the answers.
    pub fn wait(self) -> Result<T, E> {
        // Only tokio can decide whether this thread may block; its own blocking calls check that.
        let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
        drop(sender);
        drop(receiver.blocking_recv());
        thread_local! {
            static WAKER: Waker = Waker::from(Arc::new(ThreadWaker(std::thread::current())));
        }
        WAKER.with(|waker| {
            loop {
                if let Poll::Ready(answer) = self.0.poll(waker) {
                    return answer;
                }
                std::thread::park();
            }
        })
    }
}

impl<T, E> Future for WriteFuture<T, E> {
    type Output = Result<T, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(context.waker())
    }
}

impl<T, E> std::fmt::Debug for WriteFuture<T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WriteFuture")
    }
}

struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Turns a closure into a job and the future that its caller waits for.
pub(crate) fn job<T, E, F>(durability: Durability, closure: F) -> (WriteJob, WriteFuture<T, E>)
where
    F: Fn(&Transaction<'_>) -> Result<T, E> + Send + 'static,
    T: Send + 'static,
    E: From<Error> + Send + 'static,
{
    let work = ClosureState { closure: Some(closure), result: None };
    let slot = Arc::new(SharedJob {
        durability,
        work: Mutex::new(work),
        reply: Mutex::new(CompletionState::default()),
    });
    (WriteJob(Some(Arc::<SharedJob<F, T, E>>::clone(&slot))), WriteFuture(slot))
}

struct SharedJob<F, T, E> {
    durability: Durability,
    /// The writer's side, until the job is completed.
    work: Mutex<ClosureState<F, T, E>>,
    /// The state that both sides share.
    reply: Mutex<CompletionState>,
}

struct ClosureState<F, T, E> {
    /// The closure, or `None` once the job is completed.
    closure: Option<F>,
    /// The result of the closure's last run.
    result: Option<Result<T, E>>,
}

#[derive(Default)]
struct CompletionState {
    is_answered: bool,
    waker: Option<Waker>,
}

/// The caller's side of a job, independent of the closure's type.
trait ErasedCompletion<T, E>: Send + Sync {
    fn poll(&self, waker: &Waker) -> Poll<Result<T, E>>;
}

/// The writer's side of a job, independent of its types.
trait ErasedJob: Send + Sync {
    fn durability(&self) -> Durability;
    /// Runs the closure and stores its result. Returns whether it succeeded and its changes are
    /// kept.
    fn run(&self, transaction: &Transaction<'_>) -> bool;
    /// Turns a success or a missing result into an error. A failure stays unchanged.
    fn fail(&self, error: Error);
    fn is_ok(&self) -> bool;
    /// Makes the result available to the caller.
    fn complete(&self);
}

impl<F, T, E> SharedJob<F, T, E> {
    fn work(&self) -> MutexGuard<'_, ClosureState<F, T, E>> {
        self.work.lock().expect("the closure's panics are caught")
    }

    fn reply(&self) -> MutexGuard<'_, CompletionState> {
        self.reply.lock().expect("no code panics while it holds this lock")
    }
}

impl<F, T, E> ErasedCompletion<T, E> for SharedJob<F, T, E>
where
    F: Send,
    T: Send,
    E: Send,
{
    fn poll(&self, waker: &Waker) -> Poll<Result<T, E>> {
        let mut reply = self.reply();
        if !reply.is_answered {
            match &mut reply.waker {
                Some(known) => known.clone_from(waker),
                none => *none = Some(waker.clone()),
            }
            return Poll::Pending;
        }
        drop(reply);
        Poll::Ready(self.work().result.take().expect("an answer is asked for once"))
    }
}

impl<F, T, E> ErasedJob for SharedJob<F, T, E>
where
    F: Fn(&Transaction<'_>) -> Result<T, E> + Send,
    T: Send,
    E: From<Error> + Send,
{
    fn durability(&self) -> Durability {
        self.durability
    }

    fn run(&self, transaction: &Transaction<'_>) -> bool {
        let mut work = self.work();
        let closure = work.closure.as_ref().expect("it is not answered yet");
        // A panic leaves no partial changes, because the batch rolls them back.
        let outcome = catch_unwind(AssertUnwindSafe(|| closure(transaction)));
        let result = outcome.unwrap_or_else(|_panic| Err(Error::Panicked.into()));
        let is_ok = result.is_ok();
        let before = work.result.replace(result);
        drop(work);
        discard(before);
        is_ok
    }

    fn fail(&self, error: Error) {
        let mut work = self.work();
        if !matches!(work.result, Some(Err(_))) {
            let before = work.result.replace(Err(error.into()));
            drop(work);
            discard(before);
        }
    }

    fn is_ok(&self) -> bool {
        matches!(self.work().result, Some(Ok(_)))
    }

    fn complete(&self) {
        let closure = self.work().closure.take();
        let mut reply = self.reply();
        reply.is_answered = true;
        let waker = reply.waker.take();
        drop(reply);
        if let Some(waker) = waker {
            guarded(|| waker.wake());
        }
        // The closure is dropped last: it may own large values, and its caller need not wait for
        // that.
        discard(closure);
    }
}

/// Drops a value that a caller provided.
fn discard<T>(value: T) {
    guarded(|| drop(value));
}

/// Runs code that a caller provided. If it panics, other callers are not affected.
fn guarded(work: impl FnOnce()) {
    let Err(panic) = catch_unwind(AssertUnwindSafe(work)) else { return };
    tracing::error!("a waker, a transaction, or what it returned, panicked");
    // Dropping the panic's payload may panic again; that second payload is leaked.
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(again);
    }
}

/// A transaction that waits, or runs in a batch that has not ended.
pub(crate) struct WriteJob(Option<Arc<dyn ErasedJob>>);

impl WriteJob {
    pub(crate) fn durability(&self) -> Durability {
        self.job().durability()
    }

    /// Runs the transaction, possibly again. Returns whether it succeeded and its changes are kept.
    pub(crate) fn run(&self, transaction: &Transaction<'_>) -> bool {
        self.job().run(transaction)
    }

    /// Turns a success or a missing result into an error. A failure stays unchanged.
    pub(crate) fn fail(&self, error: Error) {
        self.job().fail(error);
    }

    /// Checks whether the last run of the closure succeeded.
    pub(crate) fn is_ok(&self) -> bool {
        self.job().is_ok()
    }

    fn job(&self) -> &dyn ErasedJob {
        &**self.0.as_ref().expect("only its answer takes it")
    }
}

impl Drop for WriteJob {
    fn drop(&mut self) {
        if let Some(job) = self.0.take() {
            job.fail(Error::Closed);
            job.complete();
            discard(job);
        }
    }
}

/// Transactions whose batch has committed, but whose callers must not be notified before the WAL is
/// flushed.
pub(crate) struct UnflushedBatch(Vec<WriteJob>);

impl UnflushedBatch {
    pub(crate) fn new(jobs: Vec<WriteJob>) -> Self {
        Self(jobs)
    }

    /// Completes the batch after a flush that began after the commit.
    pub(crate) fn acknowledge(self, _proof: &FlushProof) -> CompletedBatch {
        CompletedBatch(self.0)
    }

    /// Turns every success into an error after a failed flush. Returns also how many there were.
    pub(crate) fn fail(self, error: impl Fn() -> Error) -> (CompletedBatch, usize) {
        let succeeded = self.0.iter().filter(|job| job.is_ok());
        let failed_count = succeeded.inspect(|job| job.fail(error())).count();
        (CompletedBatch(self.0), failed_count)
    }
}

/// Transactions whose batch has ended, with the answer for each caller.
pub(crate) struct CompletedBatch(Vec<WriteJob>);

impl CompletedBatch {
    /// Creates a completed batch, whose transactions need no flush.
    pub(crate) fn new(jobs: Vec<WriteJob>) -> Self {
        Self(jobs)
    }

    /// Gives every caller the result of its closure.
    pub(crate) fn complete(mut self) {
        for job in &mut self.0 {
            if let Some(job) = job.0.take() {
                job.complete();
                discard(job);
            }
        }
    }
}
