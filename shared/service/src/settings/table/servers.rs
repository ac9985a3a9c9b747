//! The servers, and this process's name there.

use crate::settings::rule::{self, FilePath, Name, Whole};
use crate::settings::server_url::ServerKind;
use crate::settings::setting::Program::{Console, Scheduler, Server, Worker};
use crate::settings::setting::{Fallback, Program, Setting, SettingInfo};

const ALL: &[Program] = &[Scheduler, Worker, Server, Console];
const WITH_RABBITMQ: &[Program] = &[Scheduler, Worker, Console];
const SERVICES: &[Program] = &[Scheduler, Worker, Server];

pub(crate) static DATABASE_URL: Setting<rule::Server> = Setting {
    about: SettingInfo {
        name: "DATABASE_URL",
        meaning: "The PostgreSQL database that holds jobs, executions and their history.",
        unit: "URL",
        fallback: Fallback::Required,
        trade_off: "Back it up. Outside a trusted network add `?sslmode=verify-full`.",
        programs: ALL,
        secret: true,
    },
    rule: rule::Server(ServerKind::Postgres),
};

pub(crate) static DATABASE_DIRECT_URL: Setting<rule::Server> = Setting {
    about: SettingInfo {
        name: "DATABASE_DIRECT_URL",
        meaning: "The same database past a connection pooler: notifications, locks, the planner's claims, the workers' opens and settlements, and migrations need sessions of their own.",
        unit: "URL",
        fallback: Fallback::Without("all connections go by `DATABASE_URL`"),
        trade_off: "Set it where `DATABASE_URL` leads through a pooler.",
        programs: &[Scheduler, Worker, Console],
        secret: true,
    },
    rule: rule::Server(ServerKind::Postgres),
};

pub(crate) static AMQP_URL: Setting<rule::Server> = Setting {
    about: SettingInfo {
        name: "AMQP_URL",
        meaning: "The RabbitMQ server and virtual host that carry tickets to the workers.",
        unit: "URL",
        fallback: Fallback::Required,
        trade_off: "Outside a trusted network use `amqps://`. Write the virtual host `/` as `/%2f` \
                    or leave it out. Optional, joined by `&`: `?heartbeat=15` (seconds; a program \
                    gives up a broker after about two silent ones) and `?frame_max=16384` (bytes, \
                    at least 8192); both show the default.",
        programs: WITH_RABBITMQ,
        secret: true,
    },
    rule: rule::Server(ServerKind::Amqp),
};

pub(crate) static SEXTON_NAMESPACE: Setting<Name> = Setting {
    about: SettingInfo {
        name: "SEXTON_NAMESPACE",
        meaning: "The first part of every queue's and exchange's name, the same for schedulers, \
                  workers and `sexton`.",
        unit: "name",
        fallback: Fallback::Text("cron_scheduler"),
        trade_off: "A second platform on the same virtual host needs its own. After a change, \
                    schedulers publish due tickets to the new queues; the old ones stay.",
        programs: WITH_RABBITMQ,
        secret: false,
    },
    rule: Name {
        allowed: "`cron_scheduler`, or lower-case letters, digits and hyphens (not `cron`)",
        max_bytes: 63,
        fits: is_namespace,
    },
};

pub(crate) static DB_POOL_SIZE: Setting<Whole> = Setting {
    about: SettingInfo {
        name: "DB_POOL_SIZE",
        meaning: "The most connections that one process opens to PostgreSQL for its own work.",
        unit: "connections",
        fallback: Fallback::Text("8"),
        trade_off: "Few suffice, because the programs batch their writes. A scheduler or worker has \
                    one more; a scheduler opens another during retention, a worker up to one per \
                    slot for `sql` tasks. `sexton serve` opens up to 16 more for the API and the \
                    console, and one while its doctor runs. Keep the sum over all processes below \
                    the server's `max_connections`.",
        programs: SERVICES,
        secret: false,
    },
    rule: Whole { min: 3, max: 500 },
};

pub(crate) static SEXTON_INSTANCE: Setting<Name> = Setting {
    about: SettingInfo {
        name: "SEXTON_INSTANCE",
        meaning: "The name of this process in `sexton status` and in rows. A worker that starts \
                  with the name of a dead worker on its host ends that worker's attempts as lost \
                  at once.",
        unit: "name",
        fallback: Fallback::Derived("the host name"),
        trade_off: "Give each worker of a host its own stable name; otherwise a dead worker's \
                    attempts end only with their leases.",
        programs: SERVICES,
        secret: false,
    },
    rule: Name { allowed: "letters, digits, `.`, `_` and `-`", max_bytes: 100, fits: is_instance },
};

pub(crate) static SEXTON_STATE_DIR: Setting<FilePath> = Setting {
    about: SettingInfo {
        name: "SEXTON_STATE_DIR",
        meaning: "The folder of the lock files that show a worker whether its predecessor of the \
                  same name is dead.",
        unit: "path",
        fallback: Fallback::Derived(
            "`sexton` in `XDG_RUNTIME_DIR`, or else `sexton-<user id>` in `TMPDIR` or `/tmp`",
        ),
        trade_off: "Use one local folder for all workers of a host; the worker creates it. Its \
                    loss only slows recovery after a crash.",
        programs: &[Worker],
        secret: false,
    },
    rule: FilePath,
};

fn is_namespace(text: &str) -> bool {
    let fits = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    text == "cron_scheduler" || (text != "cron" && !text.is_empty() && text.bytes().all(fits))
}

fn is_instance(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_instance_byte)
}

/// Colons are excluded, because one separates an instance and a process id.
pub(crate) fn is_instance_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}
