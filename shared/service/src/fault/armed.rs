//! The point at which this process is to die, and how it dies.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Signal, getpid, kill_process};

use super::POINTS;

const VARIABLE: &str = "FAULT_POINT";

/// With this value the process only stops at the point, until somebody sends SIGCONT: time for a test
/// to strike something else while the process stands in the step.
const ACTION: (&str, &str) = ("FAULT_ACTION", "stop");

#[derive(Debug)]
struct Armed {
    name: String,
    passes_left: AtomicU32,
    stops: bool,
}

static ARMED: OnceLock<Result<Option<Armed>, String>> = OnceLock::new();

fn armed() -> &'static Result<Option<Armed>, String> {
    ARMED.get_or_init(|| std::env::var(VARIABLE).ok().map(|text| parse(&text)).transpose())
}

fn parse(text: &str) -> Result<Armed, String> {
    let (name, count) = text.rsplit_once(':').unwrap_or((text, "1"));
    if !is_known(name) {
        let known: Vec<_> = POINTS.iter().map(|point| point.name).collect();
        return Err(format!(
            "{VARIABLE}: there is no point {name}; write one of {}",
            known.join(", ")
        ));
    }
    match count.parse() {
        Ok(passes @ 1..) => {
            let stops = std::env::var(ACTION.0).is_ok_and(|action| action == ACTION.1);
            Ok(Armed { name: name.to_owned(), passes_left: AtomicU32::new(passes), stops })
        }
        _ => Err(format!("{VARIABLE}: {count} is no count of passes; write {name}:1 or more")),
    }
}

fn is_known(name: &str) -> bool {
    POINTS.iter().any(|point| point.name == name)
}

pub(super) fn arm() -> Result<(), String> {
    armed().as_ref().map(|_| ()).map_err(Clone::clone)
}

pub(super) fn point(name: &str) {
    assert!(is_known(name), "{name} is missing in the list of points");
    if let Ok(Some(armed)) = armed()
        && armed.name == name
        && armed.passes_left.fetch_sub(1, Ordering::SeqCst) == 1
    {
        if armed.stops {
            eprintln!("fault point {name}: stopping this process");
            let _ = kill_process(getpid(), Signal::STOP);
            return;
        }
        // Written without the logger: the line must be out before the process is gone.
        eprintln!("fault point {name}: killing this process");
        let _ = kill_process(getpid(), Signal::KILL);
        // The signal may take a moment to arrive; nothing after this point may happen.
        loop {
            std::thread::park();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_named_alone_or_with_the_pass_at_which_to_die() {
        for (text, name, passes) in
            [("worker.opened", "worker.opened", 1), ("worker.ran:3", "worker.ran", 3)]
        {
            let armed = parse(text).unwrap();
            assert_eq!((&*armed.name, armed.passes_left.into_inner()), (name, passes));
        }
    }

    #[test]
    fn what_names_no_point_is_refused_with_those_there_are() {
        let said = parse("worker.opend").unwrap_err();
        assert!(
            said.contains("no point worker.opend; write one of ") && said.contains("worker.opened"),
            "{said}"
        );
        for count in ["0", "-1", "often", ""] {
            let said = parse(&format!("worker.opened:{count}")).unwrap_err();
            assert!(said.contains("write worker.opened:1 or more"), "{said}");
        }
    }
}
