//! The servers, and what this process is called there.

use crate::settings::rule::{FilePath, Name, Server, Whole};
use crate::settings::server_url::ServerKind;
use crate::settings::setting::Program::{Console, Scheduler, Worker};
use crate::settings::setting::{Fallback, Program, Setting, SettingInfo};

const ALL: &[Program] = &[Scheduler, Worker, Console];
const SERVICES: &[Program] = &[Scheduler, Worker];

pub(crate) static DATABASE_URL: Setting<Server> = Setting {
    about: SettingInfo {
        name: "DATABASE_URL",
        meaning: "The PostgreSQL database that holds jobs, executions and their history.",
        unit: "URL",
        fallback: Fallback::Required,
        trade_off: "It is the record of everything: the broker can be rebuilt from it, nothing \
                    rebuilds it. Add `?sslmode=verify-full` outside a trusted network.",
        programs: ALL,
        secret: true,
    },
    rule: Server(ServerKind::Postgres),
};

pub(crate) static DATABASE_DIRECT_URL: Setting<Server> = Setting {
    about: SettingInfo {
        name: "DATABASE_DIRECT_URL",
        meaning: "The same database without a connection pooler in between, for what needs a session of its own: \
                  notifications, locks, the worker's journal, the planner's clock, migrations.",
        unit: "URL",
        fallback: Fallback::Without("all connections go by `DATABASE_URL`"),
        trade_off: "Needed only where `DATABASE_URL` leads through a pooler. Each process then holds a few \
                    connections to PostgreSQL itself, and the pooler serves the rest. `sexton migrate` uses this one \
                    alone.",
        programs: ALL,
        secret: true,
    },
    rule: Server(ServerKind::Postgres),
};

pub(crate) static AMQP_URL: Setting<Server> = Setting {
    about: SettingInfo {
        name: "AMQP_URL",
        meaning: "The RabbitMQ server and virtual host that carry tickets to the workers.",
        unit: "URL",
        fallback: Fallback::Required,
        trade_off: "The virtual host `/` is written `/%2f` or left out. Use `amqps://` outside a \
                    trusted network. `?heartbeat=15` sets the seconds between two heartbeats (15 if \
                    left out; a broker that falls silent is given up after about two of them), \
                    `?frame_max=16384` the largest frame in bytes (16384, which is 16 KiB, if left \
                    out; at least 8192); `&` joins the two.",
        programs: ALL,
        secret: true,
    },
    rule: Server(ServerKind::Amqp),
};

pub(crate) static SEXTON_NAMESPACE: Setting<Name> = Setting {
    about: SettingInfo {
        name: "SEXTON_NAMESPACE",
        meaning: "The name that every queue and exchange begins with. Schedulers, workers and \
                  `sexton` must agree on it.",
        unit: "name",
        fallback: Fallback::Text("cron_scheduler"),
        trade_off: "Another one lets a second platform use the same virtual host. Changing it \
                    under a running platform leaves the old queues behind; what is due is \
                    published again under the new name.",
        programs: ALL,
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
        meaning: "Connections that one process may hold to PostgreSQL for its own work. They are \
                  opened when needed.",
        unit: "connections",
        fallback: Fallback::Text("8"),
        trade_off: "Writes travel in groups, so few connections carry many tasks. One of these listens. \
                    Each process has one more: a worker for its journal, a scheduler for its planner; and \
                    while it removes what is old a scheduler has another. \
                    A worker's `sql` tasks have connections of their own besides, up to one a slot. \
                    More takes memory on the server; keep the sum over all processes, slots of workers \
                    with `sql` tasks included, below its `max_connections`.",
        programs: SERVICES,
        secret: false,
    },
    rule: Whole { min: 3, max: 500 },
};

pub(crate) static SEXTON_INSTANCE: Setting<Name> = Setting {
    about: SettingInfo {
        name: "SEXTON_INSTANCE",
        meaning: "What this process is called in `sexton status` and in the rows it writes. A \
                  worker that starts under the name of a dead predecessor on the same host \
                  settles the attempts of that one as lost at once.",
        unit: "name",
        fallback: Fallback::Derived("the host name"),
        trade_off: "Give each of several workers on one host its own stable name. Without one \
                    nothing breaks: a dead worker's attempts then wait for the end of their lease.",
        programs: SERVICES,
        secret: false,
    },
    rule: Name { allowed: "letters, digits, `.`, `_` and `-`", max_bytes: 100, fits: is_instance },
};

pub(crate) static SEXTON_STATE_DIR: Setting<FilePath> = Setting {
    about: SettingInfo {
        name: "SEXTON_STATE_DIR",
        meaning: "The folder for the lock files that tell a live worker of this instance name \
                  from a dead one. It is created when missing and stays nearly empty.",
        unit: "path",
        fallback: Fallback::Derived(
            "`sexton` in `XDG_RUNTIME_DIR`, or else `sexton-<user id>` in `TMPDIR` or `/tmp`",
        ),
        trade_off: "It must be on a local disk, and the same for all workers of one host. Losing \
                    it costs nothing but the quick recovery after a crash.",
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

/// Colons are left out: an instance and a process id are written with one between them.
pub(crate) fn is_instance_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}
