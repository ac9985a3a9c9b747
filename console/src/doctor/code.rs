//! The list of findings: each with how bad it is, what it means, what to do, and what `--fix` does.
//!
//! Codes are part of the documented interface: scripts may ask for them, so none is renamed.

use std::fmt::Write as _;

use serde::{Serialize, Serializer};
use sexton_model::lint::Severity::{self, Error, Note, Warning};

/// An entry of the list.
#[derive(Clone, Copy, Debug)]
pub struct CodeEntry {
    /// What scripts call it.
    pub name: &'static str,
    /// How bad it is, at the worst.
    pub severity: Severity,
    /// A sentence.
    pub what: &'static str,
    /// What to do.
    pub remedy: &'static str,
    /// What `--fix` does, if anything.
    pub fix: Option<&'static str>,
}

/// Declares the codes and their entries in one place, so that neither can lack the other.
macro_rules! findings {
    ($($code:ident $name:literal $severity:ident $what:literal $remedy:literal $fix:expr;)*) => {
        /// A finding of the list.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Code {
            $(#[doc = $what] $code,)*
        }

        impl Code {
            /// All of them, in the order of the list.
            pub const ALL: &'static [Self] = &[$(Self::$code,)*];

            /// Its entry.
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
        "Check `DATABASE_URL` and that PostgreSQL runs; until then nothing is claimed and no task begins."
        None;
    DatabaseReadOnly "database_read_only" Error
        "PostgreSQL takes no writes."
        "Point `DATABASE_URL` at the primary, or end what made it read-only (a standby, a full disk, \
         `default_transaction_read_only`)."
        None;
    DatabaseVersion "database_version" Error
        "PostgreSQL is older than 13, or of a release that Sexton was not tried with."
        "Upgrade PostgreSQL; a newer release than the tried ones is only a note."
        None;
    DatabaseNotEncrypted "database_not_encrypted" Warning
        "The connection to PostgreSQL leaves this host unencrypted."
        "Add `?sslmode=verify-full` to `DATABASE_URL`."
        None;
    DatabaseSlow "database_slow" Warning
        "A round trip to PostgreSQL takes long."
        "Run schedulers and workers near the database; every attempt takes several round trips."
        None;
    BrokerUnreachable "broker_unreachable" Error
        "RabbitMQ cannot be reached, or refuses the login."
        "Check `AMQP_URL` and that RabbitMQ runs; firings are claimed meanwhile and published afterwards."
        None;
    BrokerVersion "broker_version" Error
        "RabbitMQ is older than 3.10, or of a release that Sexton was not tried with."
        "Upgrade RabbitMQ; a newer release than the tried ones is only a note."
        None;
    BrokerNotEncrypted "broker_not_encrypted" Warning
        "The connection to RabbitMQ leaves this host unencrypted."
        "Use `amqps://` in `AMQP_URL`."
        None;
    BrokerSlow "broker_slow" Warning
        "A round trip to RabbitMQ takes long."
        "Run schedulers and workers near the broker, or look for what keeps it busy."
        None;
    BrokerFlagUnseen "broker_flag_unseen" Note
        "Whether the feature flag `stream_queue` is enabled cannot be seen over AMQP, and RabbitMQ 3.10 and \
         3.11 have it off on nodes that were upgraded; dead-lettering is at most once then."
        "On a node: `rabbitmqctl list_feature_flags`, and if it is disabled \
         `rabbitmqctl enable_feature_flag stream_queue`. From 3.12 on it is always enabled."
        None;
    MigrationsMissing "migrations_missing" Error
        "The database's schema is older than this program."
        "`sexton migrate`, then start the new schedulers and workers."
        None;
    MigrationsUnknown "migrations_unknown" Warning
        "The database's schema is newer than this program."
        "Use the version of `sexton` that the database was migrated with."
        None;
    MigrationsChanged "migrations_changed" Error
        "A migration was applied from another text than this program's."
        "Use the version of `sexton` that migrated the database, and find out who changed the file."
        None;
    IndexInvalid "index_invalid" Warning
        "The build of an index was interrupted: writes maintain it, and no question uses it."
        "`sexton migrate` builds it again, while the platform works."
        None;
    RowsUnread "rows_unread" Error
        "The rows cannot be asked, so what depends on them was not looked at."
        "Grant what is withheld (see `database_privileges`), or run `sexton migrate`, and ask again."
        None;
    DatabasePrivileges "database_privileges" Error
        "The role may not work with all tables."
        "As their owner: `sexton migrate --grant …`, or `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN \
         SCHEMA sexton TO …`; of `operator_actions` only SELECT and INSERT, and EXECUTE on the function \
         `delete_old_operator_actions`."
        None;
    DatabaseDeaf "database_deaf" Warning
        "Notifications of the database do not arrive, so requeues, triggers and cancels wait for the next \
         poll."
        "Let `DATABASE_DIRECT_URL` name PostgreSQL itself where `DATABASE_URL` leads through a pooler, or grant \
         EXECUTE on `pg_notify`."
        None;
    BrokerPermissions "broker_permissions" Error
        "The user may not do on the broker what schedulers and workers do."
        "`rabbitmqctl set_permissions -p VHOST USER CONFIGURE WRITE READ`, with expressions that match the \
         names in docs/messages.md; `amq.default` must match WRITE."
        None;
    TopologyMissing "topology_missing" Error
        "Queues or exchanges of the namespace do not exist."
        "Check `SEXTON_NAMESPACE`; start a scheduler, which declares them, or `sexton doctor --fix`. If they were \
         there, a policy of RabbitMQ with `expires` may have deleted them, see docs/servers.md."
        Some("declares what is missing, as a scheduler does when it connects");
    TopologyMismatch "topology_mismatch" Error
        "A queue or exchange exists with other arguments."
        "Choose another namespace, or stop everything that uses this one, drain the queue, delete it and \
         start again."
        None;
    MessagesExpired "messages_expired" Warning
        "Messages expired in a main queue, or vanished from the failed queue again and again, within the last day: \
         probably a policy of RabbitMQ sets `message-ttl`."
        "`rabbitmqctl list_policies -p VHOST`, and exclude the namespace's queues as docs/servers.md says; rows \
         publish what was lost again."
        None;
    MessagesRefused "messages_refused" Warning
        "A queue refused, dropped or did not confirm messages within the last day: probably a policy of RabbitMQ \
         sets `max-length` or `max-length-bytes`, or the queue has no leader."
        "`rabbitmqctl list_policies -p VHOST`, and exclude the namespace's queues as docs/servers.md says. Without \
         such a policy see RabbitMQ's log, and bring the queue's nodes back. What was refused waits in rows and \
         delay queues and is published again."
        None;
    QueuesVanished "queues_vanished" Warning
        "Queues vanished within the last day that a program had declared: probably a policy of RabbitMQ sets \
         `expires`, or somebody deleted them."
        "`rabbitmqctl list_policies -p VHOST`, and exclude the namespace's queues as docs/servers.md says. They were \
         declared again; rows publish what was in them again, once it is long overdue."
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
        "Jobs or executions are in a pool that no worker takes tasks from."
        "Start a worker with the pool in `WORKER_POOLS`, or correct the jobs' `pool`."
        None;
    ClockOffset "clock_offset" Warning
        "This host's clock differs from the database's, which alone decides what is due."
        "Set up time synchronisation (NTP) on both hosts."
        None;
    TimeZonesDiffer "time_zones_differ" Warning
        "Schedulers run with older time zone data than jobs were planned with."
        "Replace the schedulers of the older version."
        None;
    CatchUpHeld "catch_up_held" Warning
        "The database's time jumped, and late firings wait for an operator."
        "`sexton jobs catch-up --dry-run`, then `--release` or `--discard`."
        None;
    NoScheduler "no_scheduler" Error
        "No scheduler is at work: nothing fires, and nothing that is owed is published."
        "Start a scheduler, or see in its log why it is not ready."
        None;
    TicketsOwed "tickets_owed" Warning
        "Tickets have been owed for a while."
        "See `broker_unreachable` and `no_scheduler`, then the schedulers' logs for what the broker refuses."
        None;
    TicketsLost "tickets_lost" Warning
        "Tickets were published, are long overdue, and seem lost."
        "A scheduler publishes them again within half a minute; without one, `sexton doctor --fix` owes \
         them."
        Some("owes them again, by the reconciler's own statement");
    LeasesOverdue "leases_overdue" Warning
        "Attempts are open whose lease is over by the database's clock."
        "Keep a scheduler running: its rescuer ends them as lost when it has seen nobody renew them for a \
         whole lease. If the database's clock was set ahead, nothing is to be done."
        None;
    FailedWithoutMessages "failed_without_messages" Warning
        "Failed executions lack their message in the failed queue."
        "A scheduler's sweep publishes them again within half a minute; without one, and if the queue is \
         empty, `sexton doctor --fix` owes them."
        Some("owes them again if the failed queue is empty, by the sweep's own statement");
    MessagesWithoutRows "messages_without_rows" Note
        "Messages are in the failed queue that no row knows."
        "`sexton failed raw list` shows them; export or discard them."
        None;
    MessagesUncounted "messages_uncounted" Note
        "There are more messages in the failed queue than rows and known raw messages."
        "A scheduler's sweep looks through the queue within half a minute; ask again then."
        None;
    ProcessSilent "process_silent" Warning
        "A process has not been heard of and has not said goodbye."
        "See whether it runs and reaches the database; if it is gone, nothing is to be done, or \
         `sexton doctor --fix` once it was silent for an hour."
        Some("marks as stopped what was silent for an hour and holds no attempt");
    ProcessNotReady "process_not_ready" Warning
        "A process is there and not ready."
        "Ask its `/readyz`, or see its log."
        None;
    VersionsDiffer "versions_differ" Note
        "Processes run another version than this program."
        "Replace them, one by one; see the runbook for the way back."
        None;
    VerifyTaskUnoffered "verify_task_unoffered" Warning
        "A job names a verify task that no worker at work in its pool offers, so nothing of it can be requeued: \
         questions wait, and after ten minutes are given up."
        "Put the task into the catalogue (or among the handlers) of the pool's workers and start them again, or \
         correct the job's `verify`; `sexton failed requeue --no-verify` asks nobody."
        None;
    VerifyTaskHeld "verify_task_held" Warning
        "A worker at work is of a version that knows nothing of verify tasks; while it is, none is asked, and \
         requeues wait."
        "Replace it with the version of the others; what waits goes on by itself."
        None;
}

impl Code {
    /// What scripts call it.
    pub const fn as_str(self) -> &'static str {
        self.entry().name
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The table of docs/doctor.md.
pub fn table() -> String {
    let mut table = String::from(
        "| finding | severity | what is wrong | what to do | `--fix` |\n|---|---|---|---|---|\n",
    );
    for code in Code::ALL {
        let CodeEntry { name, severity, what, remedy, fix } = code.entry();
        let (severity, fix) = (severity.as_str(), fix.unwrap_or_default());
        // Writing to a String cannot fail.
        let _ = writeln!(table, "| `{name}` | {severity} | {what} | {remedy} | {fix} |");
    }
    table
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
