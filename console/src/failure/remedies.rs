//! What an operation refused, as a failure of a command: the fact, and the option or command that helps.

use sexton_model::fingerprint::FINGERPRINT_DIGITS;
use sexton_model::lock_key::DeriveError;
use sexton_model::state::State;
use sexton_operations::error::{
    Conflict, ExecutionAction, InvalidRequest, NotFound, OperationError, join_field,
};
use sexton_operations::locks::describe_session;
use sexton_operations::text::line;
use sexton_operations::{execution_ids, groups, unknown_messages};
use sexton_store::locks::AdvisoryLock;

use super::Failure;
use crate::muted::describe_muted;

impl From<OperationError> for Failure {
    fn from(error: OperationError) -> Self {
        match error {
            OperationError::Invalid(invalid) => invalid.into(),
            OperationError::NotFound(missing) => Self::NotFound(not_found(missing)),
            OperationError::Conflict(conflict) => Self::NothingDone(describe_conflict(conflict)),
            OperationError::OutOfScope(text) | OperationError::Failed(text) => Self::Failed(text),
            OperationError::Store(error) => error.into(),
        }
    }
}

impl From<InvalidRequest> for Failure {
    fn from(invalid: InvalidRequest) -> Self {
        match invalid {
            InvalidRequest::JobsFile(problems) => Self::Problems(problems),
            InvalidRequest::RangesFile(problems) => Self::RangeProblems(problems),
            InvalidRequest::AlertsFile(problems) => Self::AlertsProblems(problems),
            InvalidRequest::Several(all) => {
                let all: Vec<String> =
                    all.into_iter().map(|one| Self::from(one).to_string()).collect();
                Self::Usage(all.join("\n"))
            }
            one => Self::Usage(describe_invalid(&one)),
        }
    }
}

impl From<NotFound> for Failure {
    fn from(missing: NotFound) -> Self {
        Self::NotFound(not_found(missing))
    }
}

impl From<Conflict> for Failure {
    fn from(conflict: Conflict) -> Self {
        Self::NothingDone(describe_conflict(conflict))
    }
}

fn describe_invalid(invalid: &InvalidRequest) -> String {
    match invalid {
        InvalidRequest::Field { field, problem } | InvalidRequest::Ahead { field, problem } => {
            join_field(&format!("--{}", field.replace('_', "-")), problem)
        }
        InvalidRequest::EmptyRange => {
            "--since is not before --until (by default now): there is no time in between".to_owned()
        }
        InvalidRequest::NoInstant => "give --at or --since".to_owned(),
        InvalidRequest::NothingSelected => {
            "say which: ids, a filter (--job, --group, --error-class, … as `--help` has \
             them), or --all"
                .to_owned()
        }
        InvalidRequest::AttemptNeedsSingleId => {
            "--attempt goes with one id; each execution has attempts of its own".to_owned()
        }
        InvalidRequest::ExecutionId(text) => format!(
            "{text:?} is no execution's id; give the id that `sexton executions list` shows, or at \
             least its first {} digits",
            execution_ids::MIN_DIGITS
        ),
        InvalidRequest::AmbiguousExecutionId { .. }
        | InvalidRequest::AmbiguousWorker { .. }
        | InvalidRequest::AmbiguousFingerprint { .. }
        | InvalidRequest::AmbiguousMessageId { .. } => format!("{invalid}; give more digits"),
        InvalidRequest::Fingerprint(text) => format!(
            "{text:?} is no fingerprint; give the {FINGERPRINT_DIGITS} digits that `sexton groups list` shows, \
             or at least the first {}",
            groups::MIN_DIGITS
        ),
        InvalidRequest::MessageId(text) => format!(
            "{text:?} is no id of an unknown message: write at least {} of its 64 hexadecimal digits, as \
             `sexton unknown list` shows them",
            unknown_messages::MIN_ID_DIGITS
        ),
        InvalidRequest::OverlapForbidden(_) => {
            format!("{invalid}; --overlap allow lets these run beside each other and beside others")
        }
        InvalidRequest::AdvisoryLock { holders, .. } => {
            format!("{invalid}; {}", free_advisory(holders))
        }
        InvalidRequest::LockKey(DeriveError::NamespaceMissing(_)) => {
            format!("{invalid}; add --namespace")
        }
        InvalidRequest::IdsAndFilter
        | InvalidRequest::Other(_)
        | InvalidRequest::Params { .. }
        | InvalidRequest::Items(_)
        | InvalidRequest::Several(_)
        | InvalidRequest::JobsFile(_)
        | InvalidRequest::RangesFile(_)
        | InvalidRequest::AlertsFile(_)
        | InvalidRequest::LockKey(_) => invalid.to_string(),
    }
}

/// What frees an advisory lock, of which nobody but its session can let go.
fn free_advisory(holders: &[AdvisoryLock]) -> String {
    let Some(holder) = holders.first() else {
        return "nobody holds it: `sexton locks` shows the locks that are held".to_owned();
    };
    let held = format!("it is held by {}", describe_session(holder.session.as_ref()));
    let end_execution = holder.attempt.as_ref().map(|attempt| {
        let id = attempt.execution_id;
        format!("`sexton executions cancel {id}` ends the execution that holds it")
    });
    let end_session = holder.session.as_ref().map_or_else(
        || "`ROLLBACK PREPARED`, with a gid of pg_prepared_xacts, ends it".to_owned(),
        |session| {
            format!(
                "`SELECT pg_terminate_backend({})` ends the session: the server rolls its transaction back and frees \
                 all its locks at once, also those of other jobs; the end of the process that holds it does the same",
                session.pid
            )
        },
    );
    let parts = [Some(held), end_execution, Some(end_session)];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn not_found(missing: NotFound) -> String {
    let text = missing.to_string();
    match missing {
        NotFound::Job { similar, .. } if similar.is_empty() => {
            format!("{text}; `sexton jobs list` shows those there are")
        }
        NotFound::Job { similar, .. } => format!("{text}; did you mean {}?", similar.join(", ")),
        NotFound::Execution(_) => format!(
            "{text}; `sexton executions list` shows those there are (retention removes old ones)"
        ),
        NotFound::Flow(_) => format!(
            "{text}; `sexton flows list` shows those there are (retention removes old ones)"
        ),
        NotFound::Attempt { execution, .. } => {
            format!("{text}; `sexton executions show {execution}` lists them")
        }
        NotFound::Group { similar, .. } => {
            let similar = if similar.is_empty() {
                String::new()
            } else {
                format!(" did you mean {}?", similar.join(" or "))
            };
            format!("{text};{similar} `sexton groups list --all` lists those there are")
        }
        NotFound::Worker(_) => {
            format!(
                "{text}; `sexton workers list --all` lists names and ids (retention removes old ones)"
            )
        }
        NotFound::LockRow(_) => format!("{text}; `sexton locks --all` shows those there are"),
        NotFound::KeyRange(_) => format!("{text}; `sexton keys list` shows those there are"),
        NotFound::Check(_) => format!("{text}; `sexton checks list` shows those there are"),
        NotFound::Token(_) => format!("{text}; `sexton tokens list` shows those there are"),
        NotFound::Account(_) => format!("{text}; `sexton accounts list` shows those there are"),
        NotFound::PingKey(_) => format!("{text}; `sexton checks keys` shows those there are"),
        NotFound::Channel(_) => format!("{text}; `sexton channels list` shows those there are"),
        NotFound::Bulk(_) => format!("{text}; `sexton bulks list` shows those there are"),
        NotFound::UnknownMessage(id) => format!(
            "there is no unknown message {id}; `sexton unknown list --all` shows all that are known"
        ),
        NotFound::ForgottenMessage(id) => format!("there is no unknown message {id} any more"),
        NotFound::ServedPool { served, .. } => {
            let served =
                if served.is_empty() { "none".to_owned() } else { line(&served.join(", "), 500) };
            format!(
                "{text}; there are {served}; --force sends it there all the same, where it waits for one"
            )
        }
        NotFound::AnyAttempt { .. } | NotFound::Other(_) => text,
    }
}

fn describe_conflict(conflict: Conflict) -> String {
    let text = conflict.to_string();
    match conflict {
        Conflict::Execution { action, state, last, .. } => {
            let last = last.map_or_else(String::new, |(last, ago)| {
                format!(
                    "; the last that was done to it: {} by {}, {ago}",
                    line(&last.action, 50),
                    line(&last.actor, 200)
                )
            });
            format!("{text}{}{last}", execution_hint(action, state))
        }
        Conflict::Bulk { stopped_by, .. } => {
            let by = stopped_by.map(|by| format!(" by {}", line(&by, 200)));
            format!("{text}{}", by.unwrap_or_default())
        }
        Conflict::BulkStillDiscards { id, .. } => {
            format!("{text}; stop it first: sexton bulks stop {id}")
        }
        Conflict::NoExecutions { left_out } => {
            let none = format!("{text}; nothing was done");
            let beside = describe_muted(&left_out).map(|text| format!("{none}. {text}"));
            beside.unwrap_or(none)
        }
        Conflict::JobUnderWay(_) => format!(
            "{text}; wait for them (`sexton jobs pause` lets no others begin), or add --cancel"
        ),
        Conflict::LockRowChanged { .. } => format!("{text}; nothing was done"),
        Conflict::LockRowRunning { execution, .. } => format!(
            "{text}; `sexton executions cancel {execution}` ends it and frees the row; if its worker is dead, a \
             scheduler ends it within a lease. --force breaks the lock all the same: another holder may begin while \
             the task still runs"
        ),
        Conflict::TruncatedMessage { .. } => format!(
            "{text}: take the message out of the queue with an AMQP tool, or add --cut for what is kept"
        ),
        Conflict::JobChanged { .. }
        | Conflict::JobExists(_)
        | Conflict::NothingDiscarded(_)
        | Conflict::LockRowFree(_)
        | Conflict::Other(_) => text,
    }
}

const fn execution_hint(action: ExecutionAction, state: State) -> &'static str {
    match (state, action) {
        (State::Failed, ExecutionAction::Cancel) => {
            "; `sexton failed discard` gives up a failed execution"
        }
        (State::Failed, ExecutionAction::Requeue) => {
            "; it failed again since you looked, `sexton failed show` says why"
        }
        (State::Pending | State::Running | State::Retrying, ExecutionAction::Requeue) => {
            "; it was requeued already"
        }
        (State::Pending | State::Running | State::Retrying, ExecutionAction::Discard) => {
            "; `sexton executions cancel` ends it"
        }
        (
            State::Discarded,
            ExecutionAction::Requeue | ExecutionAction::Restore | ExecutionAction::Cancel,
        ) => "; `sexton failed restore` takes that back",
        _ => "",
    }
}
