//! Sets a task's resource limits, which the kernel enforces for each of its processes.

use std::io;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

/// The resource limits of a task.
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

/// The kernel's limits while the task starts.
///
/// The guard lowers its own soft limits, the task inherits them, and the guard restores its own: it must watch
/// as long as the task runs, and not be killed by the limits. The hard limits of the task follow, so that it
/// cannot raise them.
pub(super) struct LoweredLimits {
    guard_limits: Vec<(Resource, Rlimit)>,
    task_limits: Vec<(Resource, Rlimit)>,
}

impl LoweredLimits {
    /// Lowers the limits of this process for the start of the task.
    pub(super) fn lower(limits: &TaskLimits) -> io::Result<Self> {
        let cpu_s = limits.cpu_time.map(|time| time.as_secs_f64().ceil() as u64);
        let wanted =
            [(Resource::Cpu, cpu_s, CPU_GRACE_S), (Resource::Nofile, limits.open_files, 0)];
        let mut lowered = Self { guard_limits: Vec::new(), task_limits: Vec::new() };
        for (resource, limit, grace) in wanted {
            let Some(limit) = limit else { continue };
            let guard_limits = getrlimit(resource);
            // Only root may exceed the hard limit, so the hard limit applies otherwise.
            let capped = |value: u64| {
                Some(guard_limits.maximum.map_or(value, |hard_limit| value.min(hard_limit)))
            };
            let born = Rlimit { current: capped(limit), maximum: guard_limits.maximum };
            setrlimit(resource, born)?;
            lowered.guard_limits.push((resource, guard_limits));
            let hard = Rlimit { current: capped(limit), maximum: capped(limit + grace) };
            lowered.task_limits.push((resource, hard));
        }
        Ok(lowered)
    }

    /// Restores the guard's own limits, and sets the hard limits of the task if it was started.
    pub(super) fn restore(self, task: Option<Pid>) {
        for (resource, guard_limits) in self.guard_limits {
            // A soft limit may always be raised up to the hard one.
            let _ = setrlimit(resource, guard_limits);
        }
        for (resource, limit) in self.task_limits {
            if let Some(task) = task {
                // The task may have ended; a program with other rights keeps the inherited limits.
                let _ = prlimit(Some(task), resource, limit);
            }
        }
    }
}
