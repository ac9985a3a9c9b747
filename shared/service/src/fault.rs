//! Fault points: places between two effects at which a test lets the process die.
//!
//! Without the feature `fault-points` (which only the test build turns on) [`point`] is nothing. With
//! it, the environment variable `FAULT_POINT` names the place, as `worker.opened` or, to let it pass
//! twice first, `worker.opened:3`. The process then kills itself with SIGKILL, so that nothing gets
//! the chance to tidy up.

/// Dies here if a test says so.
#[cfg(not(feature = "fault-points"))]
#[inline]
pub const fn point(_name: &str) {}

/// Dies here if a test says so.
#[cfg(feature = "fault-points")]
pub fn point(name: &str) {
    armed::point(name);
}

#[cfg(feature = "fault-points")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    use rustix::process::{Signal, getpid, kill_process};

    struct Armed {
        name: String,
        passes_left: AtomicU32,
    }

    static ARMED: OnceLock<Option<Armed>> = OnceLock::new();

    fn parse(text: &str) -> Armed {
        let (name, count) = text.rsplit_once(':').unwrap_or((text, "1"));
        let count = count.parse().unwrap_or(1);
        Armed { name: name.to_owned(), passes_left: AtomicU32::new(count) }
    }

    pub(super) fn point(name: &str) {
        let armed =
            ARMED.get_or_init(|| std::env::var("FAULT_POINT").ok().map(|text| parse(&text)));
        if let Some(armed) = armed
            && armed.name == name
            && armed.passes_left.fetch_sub(1, Ordering::SeqCst) == 1
        {
            // Written without the logger: the line must be out before the process is gone.
            eprintln!("fault point {name}: killing this process");
            let _ = kill_process(getpid(), Signal::KILL);
            // The signal may take a moment to arrive; nothing after this point may happen.
            loop {
                std::thread::park();
            }
        }
    }
}
