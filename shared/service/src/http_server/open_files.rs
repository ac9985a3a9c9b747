//! How many files, and so connections, the process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files as far as the process may, and returns it. Systems start programs with few, for the sake of old ones
/// that wait with `select`.
pub fn raise_open_files() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = current != maximum
        && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
    let limit = if raised { maximum } else { current };
    limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}
