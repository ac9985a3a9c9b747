//! What the causes of incidents mean, in a sentence.

use sexton_model::incident::SubjectKind;

/// What a cause means; `None`: it is of a newer version, or the incident's text says it.
pub(super) fn meaning(subject: SubjectKind, cause: &str) -> Option<&'static str> {
    Some(match subject {
        SubjectKind::Job => return of_job(cause),
        SubjectKind::Check => return of_check(cause),
        SubjectKind::Group => {
            "Somebody resolved this group of failures, and it has failed again since."
        }
        SubjectKind::Channel => {
            "The channel has not accepted several messages in a row, so nobody learns of incidents by it."
        }
        // Its text begins with the meaning, and ends with what helps.
        SubjectKind::Platform => return None,
    })
}

fn of_job(cause: &str) -> Option<&'static str> {
    Some(match cause {
        "late" => "An execution began later than the job's start_within allows.",
        "missed" => "The job has not succeeded within its expect_within, or will not run any more.",
        "too_long" => "An execution runs longer than the job's max_runtime allows.",
        "parked" => {
            "An execution has failed for good: no retry is left, and it waits for a decision."
        }
        "failed" => {
            "As many executions in a row have failed for good as the job's alert_after says."
        }
        "never_ran" => "The job missed a limit and has never begun since it was defined.",
        "lock_held" => "The job missed a limit because its lock is held elsewhere.",
        _ => return None,
    })
}

fn of_check(cause: &str) -> Option<&'static str> {
    Some(match cause {
        "missed" => {
            "A job that runs elsewhere has sent no ping within its grace after one was expected."
        }
        "too_long" => "A run has reported its start, and no end within max_runtime.",
        "failed" => "The job reported a failure, or an exit status other than 0.",
        "never_ran" => "A ping is overdue, and none has ever arrived.",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_of_a_job_has_a_meaning() {
        for cause in ["late", "missed", "too_long", "parked", "failed", "never_ran", "lock_held"] {
            assert!(meaning(SubjectKind::Job, cause).is_some(), "{cause}");
        }
        for cause in ["missed", "too_long", "failed", "never_ran"] {
            assert!(meaning(SubjectKind::Check, cause).is_some(), "{cause}");
        }
        assert_eq!(meaning(SubjectKind::Job, "later"), None);
    }
}
