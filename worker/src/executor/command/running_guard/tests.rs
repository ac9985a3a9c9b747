//! Goal: a guard's report counts, and no unrelated process is killed. Method: the worker's end of the socket is
//! real, the test plays the other end, and the clock is moved by hand.

use std::os::unix::process::CommandExt;

use rustix::process::{Signal, kill_process_group};
use tokio::io::AsyncBufReadExt;
use tokio::process::Command;

use super::super::spec::CommandLine;
use super::*;
use crate::executor::TaskSupervisor;
use crate::guard::protocol::{Status, StoppedBy};

const LEASE: Duration = Duration::from_hours(10);

fn task() -> CommandTask {
    CommandTask::new(CommandLine { program: "/bin/true".into(), arguments: Vec::new() })
}

fn assignment(task: &CommandTask) -> Assignment<'_> {
    Assignment { task, setup: Vec::new(), stdin: Vec::new(), timeout: LEASE }
}

/// Returns a guard that does nothing, and the other end of its socket.
fn running_guard() -> (RunningGuard, UnixStream) {
    let (control, other) = UnixStream::pair().unwrap();
    let process = Command::new("/bin/sleep").arg("1000").kill_on_drop(true).spawn().unwrap();
    (RunningGuard::new(IdleGuard { process, control, folder: None }, Vec::new()), other)
}

#[tokio::test(start_paused = true)]
async fn an_end_that_was_reported_counts_also_when_the_worker_was_stopped_past_its_patience() {
    // Repeated, because `select!` may poll either branch first.
    for _ in 0..20 {
        let (mut running_guard, other) = running_guard();
        let (task, (supervisor, control)) =
            (task(), TaskSupervisor::new(HostInstant::now() + LEASE));
        let assignment = assignment(&task);
        supervisor.stop_at_once(StopReason::Cancelled);
        let meanwhile = async {
            let mut orders = tokio::io::BufReader::new(other);
            let mut line = String::new();
            while line != "kill\n" {
                line.clear();
                orders.read_line(&mut line).await.unwrap();
            }
            orders.write_all(b"started 4242\nexited 3 no\n").await.unwrap();
            tokio::time::advance(2 * REPORT_TIMEOUT).await;
            orders
        };
        let ((last, _), _) = tokio::join!(running_guard.supervise(&assignment, control), meanwhile);
        assert_eq!(
            last,
            FinalReport::Ended { status: Status::Exited(3), stopped: StoppedBy::Nobody }
        );
    }
}

#[tokio::test]
async fn a_guard_that_is_given_up_takes_nobody_with_it_who_has_the_number_of_its_task() {
    let stranger = std::process::Command::new("/bin/sleep").arg("1000").process_group(0).spawn();
    let mut stranger = stranger.unwrap();
    let (mut running_guard, mut other) = running_guard();
    let (task, (_supervisor, control)) = (task(), TaskSupervisor::new(HostInstant::now() + LEASE));
    let nonsense = format!("started {}\nnonsense\n", stranger.id());
    other.write_all(nonsense.as_bytes()).await.unwrap();
    let (last, _) = running_guard.supervise(&assignment(&task), control).await;
    assert!(matches!(last, FinalReport::NoReport(_)), "{last:?}");
    running_guard.guard.process.wait().await.unwrap();
    let left = stranger.try_wait().unwrap();
    kill_process_group(Pid::from_child(&stranger), Signal::KILL).unwrap();
    let ended = stranger.wait().unwrap();
    assert_eq!(left, None, "{ended:?}");
}
