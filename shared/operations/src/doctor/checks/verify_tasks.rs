//! Checks for verify tasks that no worker offers, so that requeues wait.

use super::join_first;
use crate::doctor::facts::Facts;
use crate::doctor::{Code, Finding};

pub(in crate::doctor) fn check(facts: &Facts, found: &mut Vec<Finding>) {
    let Some(rows) = facts.rows() else { return };
    if !rows.unoffered.is_empty() {
        let each = rows.unoffered.iter().map(|one| {
            let (task, pool, questions) = (&one.task_type, &one.pool, one.questions);
            let jobs = match (&one.job, one.jobs) {
                (Some(job), 1) => format!("named by {job}"),
                (Some(job), jobs) => format!("named by {jobs} jobs, as {job}"),
                (None, _) => "named by no job of the pool".to_owned(),
            };
            format!("{task} in pool {pool}, {jobs}, {questions} questions wait")
        });
        found.push(Finding::new(Code::VerifyTaskUnoffered, join_first(each)));
    }
    if !rows.old_workers.is_empty() {
        let names = rows.old_workers.iter().map(|one| format!("{} {}", one.name, one.version));
        let text = format!("workers that say nothing of what they offer: {}", join_first(names));
        found.push(Finding::new(Code::VerifyTaskHeld, text));
    }
}
