//! The list of findings: for each its severity, problem, remedy, and the repair of `--fix`.
//!
//! Names of findings are part of the documented interface: scripts match them, so they never change.

use std::fmt::Write as _;

use serde::{Serialize, Serializer};
use sexton_model::lint::Severity::{self, Error, Note, Warning};

/// An entry of the list.
#[derive(Clone, Copy, Debug)]
pub struct CodeEntry {
    /// The name that scripts match.
    pub name: &'static str,
    /// The highest severity.
    pub severity: Severity,
    /// The problem, in whole sentences.
    pub what: &'static str,
    /// The operator's remedy, in whole sentences.
    pub remedy: &'static str,
    /// The repair: a verb with its object, which the subject `--fix` precedes.
    pub fix: Option<&'static str>,
}

/// Declares the codes and their entries in one place, so that neither can be missing.
macro_rules! findings {
    ($($code:ident $name:literal $severity:ident $what:literal $remedy:literal $fix:expr;)*) => {
        /// The code of a finding.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = FindingCode, rename_all = "snake_case"))]
        pub enum Code {
            $(#[doc = $what] $code,)*
        }

        impl Code {
            /// All codes, in the order of the list.
            pub const ALL: &'static [Self] = &[$(Self::$code,)*];

            /// Returns its entry.
            pub const fn entry(self) -> CodeEntry {
                match self {
                    $(Self::$code => CodeEntry {
                        name: $name, severity: $severity, what: $what, remedy: $remedy, fix: $fix,
                    },)*
                }
            }
        }
    };
}

findings! {
    DatabaseUnreachable "database_unreachable" Error
        "PostgreSQL cannot be reached, or refuses the login."
        "Check `DATABASE_URL` and that PostgreSQL runs. Until then no firing is claimed and no task begins."
        None;
    DatabaseReadOnly "database_read_only" Error
        "PostgreSQL takes no writes."
        "Point `DATABASE_URL` at the primary, or end what makes it read-only: a standby, a full disk, \
         `default_transaction_read_only`."
        None;
    DatabaseVersion "database_version" Error
        "PostgreSQL is older than 13; a release newer than the tested ones is a note."
        "Upgrade PostgreSQL."
        None;
    DatabaseNotEncrypted "database_not_encrypted" Warning
        "The connection to PostgreSQL leaves this host unencrypted."
        "Add `?sslmode=verify-full` to `DATABASE_URL`."
        None;
    DatabaseSlow "database_slow" Warning
        "A round trip to PostgreSQL takes long."
        "Run schedulers and workers near it; each attempt needs several round trips."
        None;
    BrokerUnreachable "broker_unreachable" Error
        "RabbitMQ cannot be reached, or refuses the login."
        "Check `AMQP_URL` and that RabbitMQ runs. Schedulers claim firings meanwhile and publish them afterwards."
        None;
    BrokerVersion "broker_version" Error
        "RabbitMQ is older than 3.10; a release newer than the tested ones is a note."
        "Upgrade RabbitMQ."
        None;
    BrokerNotEncrypted "broker_not_encrypted" Warning
        "The connection to RabbitMQ leaves this host unencrypted."
        "Use `amqps://` in `AMQP_URL`."
        None;
    BrokerSlow "broker_slow" Warning
        "A round trip to RabbitMQ takes long."
        "Run schedulers and workers near it, or find what keeps it busy."
        None;
    BrokerFlagUnseen "broker_flag_unseen" Note
        "RabbitMQ 3.10 and 3.11 may lack the feature flag `stream_queue`; without it, dead-lettering is at most once."
        "Run `rabbitmqctl enable_feature_flag stream_queue` on a node."
        None;
    MigrationsMissing "migrations_missing" Error
        "The database's schema is older than this program."
        "Run `sexton migrate`, then start the new schedulers and workers."
        None;
    MigrationsUnknown "migrations_unknown" Warning
        "The database's schema is newer than this program."
        "Use the version of `sexton` that migrated the database."
        None;
    MigrationsChanged "migrations_changed" Error
        "The text of an applied migration differs from this program's."
        "Use the version of `sexton` that migrated the database, and find out who changed the file."
        None;
    IndexInvalid "index_invalid" Warning
        "An interrupted build left an index that writes maintain and no query uses."
        "Run `sexton migrate`, also while the platform runs."
        None;
    RowsUnread "rows_unread" Error
        "The tables cannot be read, so the checks that need them were left out."
        "See `database_privileges`, or run `sexton migrate`; then run the doctor again."
        None;
    DatabasePrivileges "database_privileges" Error
        "The role lacks privileges on the schema or its tables, for what it is: a program, an operator or a viewer."
        "Run `sexton migrate --grant` as the tables' owner for the platform's roles, or `--grant ROLE` for one that \
         schedulers and workers use."
        None;
    DatabaseDeaf "database_deaf" Warning
        "PostgreSQL's notifications do not arrive, so requeues, triggers and cancels wait for the next poll."
        "Set `DATABASE_DIRECT_URL` where `DATABASE_URL` leads through a pooler, or grant EXECUTE on `pg_notify`."
        None;
    BrokerPermissions "broker_permissions" Error
        "The user lacks permissions on RabbitMQ that schedulers and workers need."
        "Run `rabbitmqctl set_permissions -p VHOST USER CONFIGURE WRITE READ`; the expressions must match the names \
         in docs/reference/messages.md, and WRITE also `amq.default`."
        None;
    TopologyMissing "topology_missing" Error
        "Queues or exchanges of the namespace do not exist."
        "Check `SEXTON_NAMESPACE` and start a scheduler, which declares them. If they existed before, see \
         `queues_vanished`."
        Some("declares what is missing");
    TopologyMismatch "topology_mismatch" Error
        "A queue or exchange exists with other arguments."
        "Choose another namespace; or stop all that use this one, drain the queue, delete it and start again."
        None;
    MessagesExpired "messages_expired" Warning
        "Messages expired in a main queue, or vanished from the failed queue repeatedly, within a day. Probably a \
         policy sets `message-ttl`."
        "Exclude the namespace's queues from the policy: docs/operations/servers.md. Schedulers publish lost \
         tickets again."
        None;
    MessagesRefused "messages_refused" Warning
        "A queue refused, dropped or did not confirm messages within a day. Probably a policy sets `max-length` or \
         `max-length-bytes`, or the queue has no leader."
        "Exclude the namespace's queues from the policy: docs/operations/servers.md. Or bring the queue's nodes \
         back. Schedulers publish the refused messages again."
        None;
    QueuesVanished "queues_vanished" Warning
        "Declared queues vanished within a day. Probably a policy sets `expires`, or somebody deleted them."
        "Exclude the namespace's queues from the policy: docs/operations/servers.md. Schedulers declare the queues \
         and publish long overdue tickets again."
        None;
    ConnectionsExceed "connections_exceed" Warning
        "The processes may open more connections than PostgreSQL allows."
        "Lower `DB_POOL_SIZE`, run fewer processes, or raise `max_connections`."
        None;
    PoolTooSmall "pool_too_small" Warning
        "A worker has many slots for few connections."
        "Raise its `DB_POOL_SIZE`, or lower `WORKER_SLOTS`."
        None;
    PoolWithoutWorkers "pool_without_workers" Warning
        "Jobs or executions are in a pool that no worker serves."
        "Start a worker with the pool in `WORKER_POOLS`, or correct the jobs' `pool`."
        None;
    ClockOffset "clock_offset" Warning
        "This host's clock differs from the database's, which decides what is due."
        "Set up time synchronisation (NTP) on both hosts."
        None;
    TimeZonesDiffer "time_zones_differ" Warning
        "Schedulers run with older time zone data than jobs were planned with."
        "Replace the schedulers of the older version."
        None;
    CatchUpHeld "catch_up_held" Warning
        "The database's time jumped, and late firings wait for an operator."
        "Run `sexton jobs catch-up --dry-run`, then `--release` or `--discard`."
        None;
    NoScheduler "no_scheduler" Error
        "No scheduler is at work: no job fires, and no unpublished ticket is published."
        "Start a scheduler, or find in its log why it is not ready."
        None;
    TicketsUnpublished "tickets_unpublished" Warning
        "Tickets have been unpublished for more than a minute."
        "See `broker_unreachable` and `no_scheduler`, then the schedulers' logs."
        None;
    TicketsLost "tickets_lost" Warning
        "Tickets were published, are long overdue, and seem lost."
        "Keep a scheduler running; it publishes them again within half a minute."
        Some("marks them unpublished");
    AuditUnsealed "audit_unsealed" Warning
        "Operators' actions have not been appended to the audit's chain for more than five minutes, so a change of them would not \
         show, or one was removed."
        "Keep a scheduler of this version running, and read its log for `audit_sealer`. `sexton audit verify` finds an action \
         that was removed."
        None;
    ApprovedNotCarriedOut "approved_not_carried_out" Warning
        "An action is approved, and has not been carried out for more than five minutes: its process has ended in \
         between, or what kept it from being carried out has not passed."
        "`sexton approvals show ID` shows what it would do. `sexton approvals approve ID` carries it out, or goes on with it; \
         reject it if it is not wanted any more."
        None;
    LeasesOverdue "leases_overdue" Warning
        "Attempts are open whose lease has run out by the database's clock."
        "Keep a scheduler running; it ends them as lost after a whole lease without a renewal. If the database's \
         clock was set ahead, do nothing."
        None;
    FailedWithoutMessages "failed_without_messages" Warning
        "Failed executions lack their message in the failed queue."
        "Keep a scheduler running; its sweep publishes them again within half a minute."
        Some("marks them unpublished if the failed queue is empty");
    MessagesWithoutRows "messages_without_rows" Note
        "The failed queue holds messages that no row knows."
        "List them with `sexton unknown list`; export or discard them."
        None;
    MessagesUncounted "messages_uncounted" Note
        "The failed queue holds more messages than failed executions and listed unknown messages."
        "Run the doctor again after the next sweep, half a minute later."
        None;
    ProcessSilent "process_silent" Warning
        "A process has sent no heartbeat for a minute and has not signed off."
        "Check that it runs and reaches the database. If it is gone for good, do nothing."
        Some("marks it as stopped after an hour of silence without an open attempt");
    ProcessNotReady "process_not_ready" Warning
        "A process runs and is not ready."
        "Read its `/readyz` or its log."
        None;
    VersionsDiffer "versions_differ" Note
        "Processes run another version than this program."
        "Replace them one by one; the runbook says how to roll back."
        None;
    VerifyTaskUnoffered "verify_task_unoffered" Warning
        "A job names a verify task that no worker of its pool offers. Its requeues wait, and end after ten \
         minutes."
        "Add the task to the pool's workers and restart them, or correct the job's `verify`. \
         `sexton failed requeue --no-verify` skips the question."
        None;
    VerifyTaskHeld "verify_task_held" Warning
        "A worker of a version without verify tasks is at work; requeues that ask a verify task wait."
        "Replace it; the requeues go on by themselves."
        None;
    LockHeldTooLong "lock_held_too_long" Warning
        "A lock is held for longer than the timeout of its job."
        "Look at its holder with `sexton locks`. End the execution with `sexton executions cancel`, or the process or \
         session that holds it: docs/operations/locks.md."
        None;
    LockLeftBehind "lock_left_behind" Warning
        "A lock row is still locked by an attempt that has ended, probably with its worker. Until the row's time is \
         over its jobs skip or wait."
        "Wait for that; or, once no process of the task is left, run `sexton locks break NAME --reason …`."
        None;
    LockStranded "lock_stranded" Warning
        "A session that is neither a worker's nor took a tick holds a job's lock, and has done nothing for a day. \
         Probably a pooler gave the session to one client after another."
        "End it with `SELECT pg_terminate_backend(PID)` once nobody works under the lock. Let services connect past the \
         pooler, or lock rows: docs/operations/locks.md."
        None;
}

impl Code {
    /// Returns the name that scripts match.
    pub const fn as_str(self) -> &'static str {
        self.entry().name
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Returns the tables of docs/operations/doctor.md: one for each severity, the worst first.
pub fn tables() -> String {
    let mut tables = String::new();
    for (severity, heading) in [(Error, "Errors"), (Warning, "Warnings"), (Note, "Notes")] {
        let head = "| finding | what is wrong | what to do |\n|---|---|---|";
        // Writing to a String cannot fail.
        let _ = writeln!(tables, "## {heading}\n\n{head}");
        let of_severity = Code::ALL.iter().map(|code| code.entry());
        for entry in of_severity.filter(|entry| entry.severity == severity) {
            let CodeEntry { name, what, remedy, fix, .. } = entry;
            let fix = fix.map_or_else(String::new, |does| format!(" `--fix` {does}."));
            let _ = writeln!(tables, "| `{name}` | {what} | {remedy}{fix} |");
        }
        tables.push('\n');
    }
    tables
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_finding_has_a_name_of_its_own_and_says_what_to_do() {
        let names: BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(names.len(), Code::ALL.len());
        for code in Code::ALL {
            let entry = code.entry();
            let plain = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(entry.name.chars().all(plain), "{}", entry.name);
            assert!(entry.what.ends_with('.') && entry.remedy.ends_with('.'), "{}", entry.name);
            assert!(!entry.what.contains('|') && !entry.remedy.contains('|'), "{}", entry.name);
        }
    }
}
