//! What an operator expects of a job that an apply is to create or change.

use super::{Apply, ApplyError, Job};

/// The state of a single job before an apply; another one refuses it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExpectedJob {
    /// No job has the name.
    Absent,
    /// It has this revision: nobody has changed it since the operator looked.
    Revision(i32),
}

/// Compares the locked jobs with what is expected of each of them.
pub(super) fn check(
    request: &Apply<'_>,
    expected: Option<ExpectedJob>,
    jobs: &[Job],
) -> Result<(), ApplyError> {
    let Some(expected) = expected else { return Ok(()) };
    for spec in request.specs {
        let job = jobs.iter().find(|job| job.name == spec.name);
        let name = || spec.name.clone();
        match (expected, job) {
            (ExpectedJob::Absent, Some(_)) => return Err(ApplyError::Exists(name())),
            (ExpectedJob::Revision(_), None) => return Err(ApplyError::Missing(name())),
            (ExpectedJob::Revision(seen), Some(job)) if job.revision != seen => {
                return Err(ApplyError::Changed { name: name(), revision: job.revision });
            }
            _ => {}
        }
    }
    Ok(())
}
