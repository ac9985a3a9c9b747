//! Lints the policies of one job: a job that matters most must not fail unnoticed.

use super::{Code, Finding, Severity};
use crate::incident;
use crate::job::JobSpec;
use crate::policy::{Gap, no_deadline, no_destination};
use crate::routing::Route;

/// Returns the findings about the policies of a job of severity `high`; none about others. Without `routes` its destination is
/// not judged.
pub fn of_policy(job: &JobSpec, routes: Option<&[Route]>) -> Vec<Finding> {
    if job.expectations.severity != Some(incident::Severity::High) {
        return Vec::new();
    }
    let deadline = no_deadline(job).map(|gap| finding(Code::NoDeadline, gap));
    let destination = routes.and_then(|routes| no_destination(job, routes));
    let destination = destination.map(|gap| finding(Code::NoDestination, gap));
    deadline.into_iter().chain(destination).collect()
}

fn finding(code: Code, gap: Gap) -> Finding {
    Finding::new(code, Severity::Warning, gap.what, gap.object)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::job::Schedule;

    #[test]
    fn a_job_of_high_severity_needs_a_deadline_and_a_destination() {
        let mut job = JobSpec::new("a.b", "t", Schedule::None);
        let codes = |job: &JobSpec, routes: Option<&[Route]>| -> Vec<&str> {
            of_policy(job, routes).iter().map(|finding| finding.code.as_str()).collect()
        };
        assert_eq!(codes(&job, Some(&[])), Vec::<&str>::new(), "of medium severity");
        job.expectations.severity = Some(incident::Severity::High);
        assert_eq!(codes(&job, Some(&[])), ["no_deadline", "no_destination"]);
        assert_eq!(codes(&job, None), ["no_deadline"]);
        job.expectations.max_runtime = Some(Duration::from_mins(1));
        assert_eq!(
            codes(&job, None),
            ["no_deadline"],
            "it says nothing of a run that never begins"
        );
        let channels = vec!["ops".to_owned()];
        let mut route = Route { channels, ..Route::default() };
        assert_eq!(codes(&job, Some(&[route.clone()])), ["no_deadline"]);
        route.severities = vec![incident::Severity::Low];
        assert_eq!(codes(&job, Some(&[route])), ["no_deadline", "no_destination"]);
        for limit in [&mut job.expectations.start_within, &mut job.expectations.expect_within] {
            *limit = Some(Duration::from_mins(1));
        }
        job.expectations.start_within = None;
        assert_eq!(codes(&job, None), Vec::<&str>::new());
        job.expectations.start_within = job.expectations.expect_within.take();
        assert_eq!(codes(&job, None), Vec::<&str>::new());
    }
}
