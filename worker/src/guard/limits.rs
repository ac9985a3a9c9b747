//! What a task may use: limits that the kernel keeps for each of its processes.

use std::io;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

/// What a task may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskLimits {
    /// Resident memory of all its processes together, in bytes.
    pub memory: Option<u64>,
    /// Processor time of each of its processes; counted in whole seconds.
    pub cpu_time: Option<Duration>,
    /// Open files of each of its processes.
    pub open_files: Option<u64>,
}

/// How much processor time a process that ignores SIGXCPU has left until SIGKILL, in seconds.
const CPU_GRACE_S: u64 = 5;

/// The kernel's limits while the task is being started.
///
/// The guard lowers its own soft limits, the task is born with them, and the guard takes its own back:
/// it watches for as long as the task runs, and must not die of its limits. The hard limits of the
/// task follow, so that it cannot raise what it was given.
pub(super) struct Lowered {
    own: Vec<(Resource, Rlimit)>,
    of_task: Vec<(Resource, Rlimit)>,
}

impl Lowered {
    /// Lowers the limits of this process for the start of the task.
    pub(super) fn lower(limits: &TaskLimits) -> io::Result<Self> {
        let cpu_s = limits.cpu_time.map(|time| time.as_secs_f64().ceil() as u64);
        let wanted =
            [(Resource::Cpu, cpu_s, CPU_GRACE_S), (Resource::Nofile, limits.open_files, 0)];
        let mut lowered = Self { own: Vec::new(), of_task: Vec::new() };
        for (resource, limit, grace) in wanted {
            let Some(limit) = limit else { continue };
            let own = getrlimit(resource);
            // Nobody but root has more than the hard limit, and then it holds.
            let within = |value: u64| Some(own.maximum.map_or(value, |most| value.min(most)));
            let born = Rlimit { current: within(limit), maximum: own.maximum };
            setrlimit(resource, born)?;
            lowered.own.push((resource, own));
            let hard = Rlimit { current: within(limit), maximum: within(limit + grace) };
            lowered.of_task.push((resource, hard));
        }
        Ok(lowered)
    }

    /// Takes the guard's own limits back, and fixes those of the task if it was started.
    pub(super) fn settle(self, task: Option<Pid>) {
        for (resource, own) in self.own {
            // A soft limit may always be raised up to the hard one.
            let _ = setrlimit(resource, own);
        }
        for (resource, limit) in self.of_task {
            if let Some(task) = task {
                // It may have ended; and a program that has other rights keeps what it was born with.
                let _ = prlimit(Some(task), resource, limit);
            }
        }
    }
}
