//! Catches panics of handlers with their place, and adds both to the attempt.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{self, PanicHookInfo};
use std::sync::{Arc, Mutex, Once, PoisonError};

/// The largest part of a backtrace that is kept, in bytes.
const MAX_BACKTRACE_BYTES: usize = 16 * 1024;

/// Holds the captured panic of one handler.
#[derive(Clone, Debug, Default)]
pub(super) struct PanicCapture(Arc<Mutex<Option<Panic>>>);

/// A captured panic.
#[derive(Clone, Debug, Default)]
pub(super) struct Panic {
    /// ` at src/charge.rs:12:5`; empty if the program has replaced this panic hook.
    place: String,
    /// Set only if `RUST_BACKTRACE` enables it.
    pub(super) backtrace: Option<String>,
}

tokio::task_local! {
    /// The capture of the handler whose future this thread is polling.
    static PANIC_CAPTURE: PanicCapture;
}

/// Runs a handler's future; a panic in it is captured, with the place, instead of being printed.
pub(super) fn capture_panics<F: Future>(
    panic_capture: PanicCapture,
    future: F,
) -> impl Future<Output = F::Output> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous_hook = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if PANIC_CAPTURE.try_with(|panic_capture| panic_capture.note(panic)).is_err() {
                previous_hook(panic);
            }
        }));
    });
    PANIC_CAPTURE.scope(panic_capture, future)
}

impl PanicCapture {
    fn note(&self, panic: &PanicHookInfo<'_>) {
        let backtrace = Backtrace::capture();
        let is_captured = backtrace.status() == BacktraceStatus::Captured;
        let backtrace = is_captured.then(|| {
            let mut text = backtrace.to_string();
            text.truncate(text.floor_char_boundary(MAX_BACKTRACE_BYTES));
            text
        });
        let place = panic.location().map(|place| format!(" at {place}")).unwrap_or_default();
        *self.lock() = Some(Panic { place, backtrace });
    }

    /// Takes the captured panic, with its message.
    pub(super) fn take(&self, payload: &(dyn Any + Send)) -> (String, Panic) {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let panic = self.lock().take().unwrap_or_default();
        let text = text.unwrap_or("(no text)");
        (format!("the handler panicked{}: {text}", panic.place), panic)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Panic>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
