//! A worker's tasks, and its number of slots.

use crate::settings::rule::{FilePath, Milliseconds, Name, Pattern, PoolList, TypeList, Whole};
use crate::settings::setting::Program::Worker;
use crate::settings::setting::{Fallback, Setting, SettingInfo};

pub(crate) static WORKER_TASKS: Setting<FilePath> = Setting {
    about: SettingInfo {
        name: "WORKER_TASKS",
        meaning: "The task catalogue, a TOML file that says what each task type runs.",
        unit: "path",
        fallback: Fallback::Without("the worker does not start"),
        trade_off: "Only people who may write this file decide what runs; editors of jobs choose \
                    from it.",
        programs: &[Worker],
        secret: false,
    },
    rule: FilePath,
};

pub(crate) static WORKER_POOLS: Setting<PoolList> = Setting {
    about: SettingInfo {
        name: "WORKER_POOLS",
        meaning: "The pools that this worker serves, with their slots, like `default:4,reports:2`. \
                  Without numbers the worker distributes WORKER_SLOTS over them. A job without a \
                  pool is in `default`.",
        unit: "names",
        fallback: Fallback::Text("default"),
        trade_off: "A separate pool keeps slow tasks from delaying others. `sexton status` warns \
                    of a pool without workers.",
        programs: &[Worker],
        secret: false,
    },
    rule: PoolList {
        name: Name {
            allowed: "lower-case letters, digits and hyphens, a letter first",
            max_bytes: 31,
            fits: is_pool,
        },
        max_pools: 32,
        slots: Whole { min: 1, max: 1000 },
    },
};

pub(crate) static WORKER_SLOTS: Setting<Whole> = Setting {
    about: SettingInfo {
        name: "WORKER_SLOTS",
        meaning: "How many tasks this worker runs at the same time, unless WORKER_POOLS has \
                  numbers.",
        unit: "tasks",
        fallback: Fallback::Text("8"),
        trade_off: "Tasks that wait (HTTP calls) allow many; tasks that compute need about one per \
                    core.",
        programs: &[Worker],
        secret: false,
    },
    rule: Whole { min: 1, max: 1000 },
};

pub(crate) static WORKER_PREFETCH: Setting<Whole> = Setting {
    about: SettingInfo {
        name: "WORKER_PREFETCH",
        meaning: "Tickets that one slot holds at once, the running one included.",
        unit: "tickets",
        fallback: Fallback::Text("1"),
        trade_off: "With 1, no ticket waits behind a busy slot while another is idle. More is \
                    faster for floods of millisecond tasks.",
        programs: &[Worker],
        secret: false,
    },
    rule: Whole { min: 1, max: 100 },
};

pub(crate) static LEASE_MS: Setting<Milliseconds> = Setting {
    about: SettingInfo {
        name: "LEASE_MS",
        meaning: "How long an attempt's lease lasts after each renewal, unless the job sets it. \
                  The worker renews it every quarter of this time.",
        unit: "milliseconds",
        fallback: Fallback::Text("20000"),
        trade_off: "With a shorter lease, schedulers find a dead worker sooner. With a longer one, \
                    tasks survive a longer loss of PostgreSQL.",
        programs: &[Worker],
        secret: false,
    },
    rule: Milliseconds(Whole { min: 1000, max: 3_600_000 }),
};

pub(crate) static WORKER_MASK: Setting<Pattern> = Setting {
    about: SettingInfo {
        name: "WORKER_MASK",
        meaning: "Text that the worker replaces by `***` before it stores a task's output, result, \
                  progress or failure reason: each match within a line.",
        unit: "regular expression",
        fallback: Fallback::Without("the worker masks only the values of secrets"),
        trade_off: "A broad pattern hides what you need to find a fault.",
        programs: &[Worker],
        secret: false,
    },
    rule: Pattern { max_bytes: 4096 },
};

pub(crate) static WORKER_FOREIGN_TYPES: Setting<TypeList> = Setting {
    about: SettingInfo {
        name: "WORKER_FOREIGN_TYPES",
        meaning: "Task types that this worker adopts from other programs' messages although no \
                  worker of the pool offers them, like `report,billing.*`.",
        unit: "task types",
        fallback: Fallback::Without(
            "the worker adopts only types that a worker of the pool offers",
        ),
        trade_off: "Their executions wait up to an hour for a worker that offers the type. With \
                    `*`, a publisher can create a thousand jobs. Give all workers of a pool the \
                    same list.",
        programs: &[Worker],
        secret: false,
    },
    rule: TypeList,
};

fn is_pool(text: &str) -> bool {
    let fits = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    text.starts_with(|first: char| first.is_ascii_lowercase()) && text.bytes().all(fits)
}
