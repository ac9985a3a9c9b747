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
//! # What a handler is given, and what it answers
//!
//! - The job's params, read by serde into its own type. What does not fit fails the attempt for good,
//!   with the class `invalid_params` and the place.
//! - A [`Ctx`]: who is asked for what, until when; the word to stop; where to say how far it is; and, with
//!   [`Ctx::begin`], a transaction of the platform's database that ends with the record of the success.
//! - `Ok` of anything that serde writes is the attempt's result; a unit, and `None`, are none. `Err` is a
//!   [`HandlerError`]; with `?` any error is one, and tried again.
//! - A panic is an error of the class `panic`. It takes neither the worker nor the slot with it.
//!
//! # How it is stopped
//!
//! At its timeout, a cancel and the end of its worker, [`Ctx::cancellation`] is cancelled. The handler then
//! has its grace to come to an end: `Ok` is a success like any other, and of anything else only that
//! counts for which it was stopped. When the grace is over, its future is dropped at the next place where it
//! waits. When the lease is lost, that is at once. An open transaction is rolled back, in whosever hands it is.
//!
//! Handlers have threads of their own, so one that blocks its thread (a computation, a call that waits
//! without `await`) keeps no lease from being renewed. But nobody can stop it: its attempt stays open, under
//! its lease and in its slot, until it waits somewhere, and an error in the log says so. While all threads
//! are blocked, `/livez` says so. Put such work into [`tokio::task::spawn_blocking`] and look at the token
//! in there: what was begun so, or spawned in another way, is not stopped when the handler is.

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

/// Class of the failure of an attempt whose params are not what its handler takes.
pub const INVALID_PARAMS: &str = "invalid_params";
/// Class of the failure of an attempt whose handler panicked.
pub const PANIC: &str = "panic";

/// What runs a task type in this program.
///
/// Every `async fn(Ctx, P) -> Result<R, E>` and every closure of that kind is one, where `P` can be read by
/// serde, `R` is a result (anything that serde can write, or a [`Completion`]) and `E` is or becomes a
/// [`HandlerError`]. What a handler needs besides, such as a client, a closure can hold; or a type of one's
/// own implements this.
///
/// It may be called for several attempts at the same time, as many as the worker has slots.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler",
    note = "a handler is `async fn(Ctx, P) -> Result<R, E>`: P implements DeserializeOwned, R implements \
            Serialize or is a Completion, E is a HandlerError or any error, and the future is Send"
)]
pub trait Handler<P>: Send + Sync + 'static {
    /// What it hands back.
    type Output: IntoCompletion;
    /// What it fails with.
    type Error: Into<HandlerError>;

    /// Runs one attempt. Dropped at a place where it waits when the attempt must not go on.
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

/// A handler of whatever types, as the executor calls it.
#[derive(Clone)]
pub(crate) struct AnyHandler(Arc<dyn Fn(Ctx, Value) -> HandlerFuture + Send + Sync>);

/// One call of it.
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
            // All of it in the future: what panics in the reading of params is caught there, too.
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

/// The params as the handler wants them.
fn read<P: DeserializeOwned>(params: Value) -> Result<P, HandlerError> {
    serde_path_to_error::deserialize(params).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." { "the params" } else { path.as_str() };
        let said = format!("{place}: {}", error.inner());
        HandlerError::Permanent(Reason::new(said).class(INVALID_PARAMS))
    })
}

#[cfg(test)]
mod tests;
