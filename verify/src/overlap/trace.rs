//! Histories of a job's executions in words.

use sexton_model::plan::overlap::WaitReason;
use sexton_model::state::State;

use super::{Action, Job, World};
use crate::explorer::History;

/// One line for each action.
pub(super) fn describe(history: &History<Job>) -> Vec<String> {
    let mut before = history.start;
    let mut lines = Vec::with_capacity(history.steps.len());
    for (action, after) in &history.steps {
        lines.push(line(*action, &before, after));
        before = *after;
    }
    lines
}

fn line(action: Action, before: &World, after: &World) -> String {
    let name = |one: usize| format!("execution {}", one + 1);
    let became = |one: usize| after.executions[one].state.map_or("unclaimed", State::as_str);
    let claimed = || {
        let known =
            |world: &World| world.executions.iter().filter(|one| one.state.is_some()).count();
        let new = known(after).saturating_sub(1);
        let how = match after.executions[new].waits {
            Some(WaitReason::Queue | WaitReason::Replace) => "it waits".to_owned(),
            Some(WaitReason::Turn) => "it waits for its turn".to_owned(),
            None => format!("it is {}", became(new)),
        };
        let replaced: Vec<String> = (0..new)
            .filter(|one| after.executions[*one].condemned && !before.executions[*one].condemned)
            .map(name)
            .collect();
        let instead = if replaced.is_empty() {
            String::new()
        } else {
            format!(" in the place of {}", replaced.join(" and "))
        };
        format!("{}{instead}: {how}", name(new))
    };
    match action {
        Action::LookToClaim(who) => format!("scheduler {} looks at what is under way", who + 1),
        Action::Claim(who) => format!("scheduler {} claims {}", who + 1, claimed()),
        Action::LookForWaiters(who) => format!("scheduler {} finds a waiter it may admit", who + 1),
        Action::Admit(who) => format!("scheduler {} admits the first waiter", who + 1),
        Action::Open(one) => {
            format!("a worker receives a ticket of {}: {}", name(one), became(one))
        }
        Action::End(one, well) => {
            format!("the task of {} ends {}", name(one), if well { "well" } else { "badly" })
        }
        Action::Settle(one) => format!("its worker settles {}: {}", name(one), became(one)),
        Action::Write(one) => {
            format!("its worker writes the success of {}, not yet committed", name(one))
        }
        Action::Commit(one) => format!("that is committed: {} is {}", name(one), became(one)),
        Action::Lose(one) => format!("the rescuer ends {} as lost: {}", name(one), became(one)),
        Action::Die(one) => format!("the worker of {} dies", name(one)),
        Action::Trigger => format!("somebody triggers {}", claimed()),
        Action::Cancel(one) => format!("somebody cancels {}: {}", name(one), became(one)),
        Action::Requeue(one) => format!("somebody requeues {}: it waits for its turn", name(one)),
        Action::CopyBack(one) => {
            format!("somebody copies the parked message of {} to the main queue", name(one))
        }
    }
}
