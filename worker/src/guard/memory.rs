//! Measures a task's memory, and detects kills by the kernel's out-of-memory killer.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::HostInstant;

/// Interval of the measurement, for tasks with a limit.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The most processes of one task that are measured.
const MAX_PROCESSES: usize = 10_000;

/// The kernel's list of the guard's children.
const CHILDREN_FILE: &str = "/proc/thread-self/children";

/// Checks whether memory can be measured here.
///
/// # Errors
///
/// The reason why not, for people.
pub(crate) fn memory_can_be_watched() -> Result<(), String> {
    check_readable(Path::new(CHILDREN_FILE))
}

fn check_readable(children: &Path) -> Result<(), String> {
    fs::read_to_string(children).map(drop).map_err(|error| {
        let file = children.display();
        format!("cannot be kept here: {file}: {error}; it needs a kernel with CONFIG_PROC_CHILDREN")
    })
}

/// Measures the resident memory of all descendants of the guard, which is their subreaper: no process of the
/// task can leave it.
pub(super) struct MemoryWatch {
    limit: u64,
    next: HostInstant,
}

impl MemoryWatch {
    /// Creates a watch; `limit` is in bytes.
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, next: HostInstant::now() + CHECK_INTERVAL }
    }

    /// Returns the time of the next measurement.
    pub(super) fn next(&self) -> HostInstant {
        self.next
    }

    /// Measures if it is time; returns whether the task exceeds its limit.
    pub(super) fn exceeded(&mut self, now: HostInstant) -> bool {
        if now < self.next {
            return false;
        }
        self.next = now + CHECK_INTERVAL;
        resident_of_descendants() > self.limit
    }
}

/// Returns the sum in bytes; pages that processes share count for each of them.
fn resident_of_descendants() -> u64 {
    let page = rustix::param::page_size() as u64;
    let mut found = children(Path::new(CHILDREN_FILE));
    let (mut pages, mut looked_at) = (0_u64, 0);
    while let Some(pid) = found.pop() {
        looked_at += 1;
        if looked_at > MAX_PROCESSES {
            break;
        }
        let folder = PathBuf::from(format!("/proc/{pid}"));
        // A process that has just ended uses nothing.
        let statm = fs::read_to_string(folder.join("statm")).unwrap_or_default();
        pages += statm.split(' ').nth(1).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
        for thread in fs::read_dir(folder.join("task")).into_iter().flatten().flatten() {
            found.extend(children(&thread.path().join("children")));
        }
    }
    pages * page
}

fn children(path: &Path) -> Vec<u32> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// The control group's counter of out-of-memory kills.
pub(super) struct KernelKills {
    file: Option<PathBuf>,
    before: u64,
}

impl KernelKills {
    /// Finds the counter.
    pub(super) fn find() -> Self {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let file = counters(&groups).into_iter().find(|file| read(file).is_some());
        Self { file, before: 0 }
    }

    /// Starts counting.
    pub(super) fn begin(&mut self) {
        self.before = self.file.as_deref().and_then(read).unwrap_or(0);
    }

    /// Returns whether the counter has increased. The group is the worker's: the kill may be of another task.
    pub(super) fn has_increased(&self) -> bool {
        self.file.as_deref().and_then(read).is_some_and(|count| count > self.before)
    }
}

/// Returns where the counter of the process's control group may be, for both versions, by `/proc/self/cgroup`.
fn counters(groups: &str) -> Vec<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let path = path.trim_start_matches('/');
        if controllers.is_empty() {
            files.push(root.join(path).join("memory.events"));
            // Within a container the path may be the host's.
            files.push(root.join("memory.events"));
        } else if controllers.split(',').any(|name| name == "memory") {
            files.push(root.join("memory").join(path).join("memory.oom_control"));
            files.push(root.join("memory/memory.oom_control"));
        }
    }
    files
}

fn read(file: &Path) -> Option<u64> {
    count(&fs::read_to_string(file).ok()?)
}

fn count(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_a_list_of_children_is_reported() {
        assert_eq!(memory_can_be_watched(), Ok(()));
        let message = check_readable(Path::new("/proc/thread-self/no-children")).unwrap_err();
        assert!(message.contains("CONFIG_PROC_CHILDREN"), "{message}");
    }

    #[test]
    fn the_counter_of_either_version_is_found_and_read() {
        let found = counters("0::/worker.slice/w1.service\n");
        assert!(found[0].ends_with("cgroup/worker.slice/w1.service/memory.events"), "{found:?}");
        let found = counters("9:cpu,cpuacct:/a\n4:memory:/docker/1\n1:name=systemd:/b:c\n");
        assert!(found[0].ends_with("memory/docker/1/memory.oom_control"), "{found:?}");
        assert_eq!(found.len(), 2);
        assert_eq!(counters("nonsense"), Vec::<PathBuf>::new());
        assert_eq!(count("low 0\nhigh 0\nmax 3\noom 2\noom_kill 1\noom_group_kill 0\n"), Some(1));
        assert_eq!(count("oom_kill_disable 0\nunder_oom 0\noom_kill 7\n"), Some(7));
        assert_eq!(count("under_oom 0\n"), None);
    }

    #[test]
    fn a_raised_counter_tells_of_a_kill() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("memory.events");
        fs::write(&file, "oom_kill 4\n").unwrap();
        let kills = KernelKills { file: Some(file.clone()), before: 4 };
        assert!(!kills.has_increased());
        fs::write(&file, "oom_kill 5\n").unwrap();
        assert!(kills.has_increased());
        assert!(!KernelKills { file: None, before: 0 }.has_increased());
    }
}
