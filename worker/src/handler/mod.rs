//! Tasks as functions of this program: Rust handlers.
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use serde::{Deserialize, Serialize};
//! use sexton_worker::{Ctx, HandlerError, Worker};
//!
//! #[derive(Deserialize)]
//! struct Greeting {
//!     to: String,
//! }
//!
//! #[derive(Serialize)]
//! struct Greeted {
//!     letters: usize,
//! }
//!
//! async fn greet(ctx: Ctx, params: Greeting) -> Result<Greeted, HandlerError> {
//!     if params.to.is_empty() {
//!         return Err(HandlerError::permanent("nobody is to be greeted"));
//!     }
//!     ctx.log(format_args!("hello {}, for the {}th time", params.to, ctx.attempt()));
//!     Ok(Greeted { letters: params.to.len() })
//! }
//!
//! fn main() -> ExitCode {
//!     Worker::builder().handler("greet", greet).run()
//! }
//! ```
//!
//! A program in Rust that enqueues shares the type of the params with its handler: see
//! [`WorkerBuilder::job`](crate::WorkerBuilder::job).
//!
//! # Input and result of a handler
//!
//! - The job's params, deserialised into the handler's own type. Params that do not fit fail the attempt
//!   permanently, with the class `invalid_params` and the place.
//! - A [`Ctx`]: the attempt's identity and deadline, the stop, the report of progress, and, with
//!   [`Ctx::begin`], a transaction in the platform's database that commits with the record of the success.
//! - `Ok` of anything that serde can write is the attempt's result; a unit and `None` are no result. `Err` is a
//!   [`HandlerError`]; `?` turns any error into one that is retried.
//! - A panic is an error of the class `panic`. The worker and the slot survive it.
//!
//! # Stopping
//!
//! At its timeout, at a cancel and at the shutdown of its worker, [`Ctx::cancellation`] is cancelled. The
//! handler may then use its grace to end: `Ok` is a success like any other; after every other end the outcome
//! is the cause of the stop. When the grace is over, the handler's future is dropped at its next `await`; when
//! the lease is lost, at once. Open transactions are rolled back, including those that the handler has passed
//! to another task.
//!
//! Handlers run on separate threads, so one that blocks its thread (a computation, a call that waits without
//! `await`) does not delay the renewal of leases. But nothing can stop it: its attempt stays open, with its
//! lease and its slot, until it awaits, and the log has an error that says so. While all these threads are
//! blocked, `/livez` says so. Put such work into [`tokio::task::spawn_blocking`] and check the token there:
//! blocking or spawned work is not stopped with the handler.

mod completion;
mod context;
mod error;
mod executor;
mod options;
mod panic;
mod schema;
mod stop_signal;
mod transaction;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use self::completion::HandlerSuccess;
pub use self::completion::{Completion, IntoCompletion};
pub use self::context::{Ctx, StopCause};
pub use self::error::{HandlerError, Reason};
pub(crate) use self::executor::{HandlerExecutor, HandlerHost};
pub use self::options::{GRACE_DEFAULT, GRACE_MAX, HandlerOptions};
pub use self::schema::ParamsSchema;
pub use self::transaction::Transaction;

/// The class of the failure of an attempt whose params do not fit its handler.
pub const INVALID_PARAMS: &str = "invalid_params";
/// The class of the failure of an attempt whose handler panicked.
pub const PANIC: &str = "panic";

/// A function or closure that runs a task type in this program.
///
/// Every `async fn(Ctx, P) -> Result<R, E>` and every such closure is a handler, where serde can read `P`, `R`
/// is a result (anything that serde can write, or a [`Completion`]) and `E` is or converts into a
/// [`HandlerError`]. A closure can hold what a handler also needs, such as a client; or a custom type
/// implements this trait.
///
/// It may be called for several attempts at the same time, as many as the worker has slots.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler",
    note = "a handler is `async fn(Ctx, P) -> Result<R, E>`: P implements DeserializeOwned, R implements \
            Serialize or is a Completion, E is a HandlerError or any error, and the future is Send"
)]
pub trait Handler<P>: Send + Sync + 'static {
    /// The type of the result.
    type Output: IntoCompletion;
    /// The type of the error.
    type Error: Into<HandlerError>;

    /// Runs one attempt. The worker drops the future at an `await` when the attempt must not continue.
    fn call(
        &self,
        ctx: Ctx,
        params: P,
    ) -> impl Future<Output = Result<Self::Output, Self::Error>> + Send;
}

impl<F, P, Fut, R, E> Handler<P> for F
where
    F: Fn(Ctx, P) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, E>> + Send,
    R: IntoCompletion,
    E: Into<HandlerError>,
{
    type Output = R;
    type Error = E;

    fn call(&self, ctx: Ctx, params: P) -> impl Future<Output = Result<R, E>> + Send {
        self(ctx, params)
    }
}

/// A handler with erased types, as the executor calls it.
#[derive(Clone)]
pub(crate) struct AnyHandler(Arc<dyn Fn(Ctx, Value) -> HandlerFuture + Send + Sync>);

/// The future of one call.
type HandlerFuture = Pin<Box<dyn Future<Output = Result<HandlerSuccess, HandlerError>> + Send>>;

impl AnyHandler {
    pub(crate) fn new<P, H>(handler: H) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        H: Handler<P>,
    {
        let handler = Arc::new(handler);
        Self(Arc::new(move |ctx, params| {
            let handler = Arc::clone(&handler);
            // The future covers everything, so that it also catches panics in the deserialisation of the
            // params.
            Box::pin(async move {
                let output = handler.call(ctx, read(params)?).await.map_err(Into::into)?;
                output.into_completion().into_success()
            })
        }))
    }

    fn call(&self, ctx: Ctx, params: Value) -> HandlerFuture {
        (self.0)(ctx, params)
    }
}

impl fmt::Debug for AnyHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyHandler")
    }
}

/// Deserialises the params into the handler's type.
fn read<P: DeserializeOwned>(params: Value) -> Result<P, HandlerError> {
    serde_path_to_error::deserialize(params).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." { "the params" } else { path.as_str() };
        let message = format!("{place}: {}", error.inner());
        HandlerError::Permanent(Reason::new(message).class(INVALID_PARAMS))
    })
}

#[cfg(test)]
mod tests;
