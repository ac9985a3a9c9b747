//! What a worker runs, and how much at once.

use crate::settings::rule::{FilePath, Milliseconds, Name, Pattern, PoolList, TypeList, Whole};
use crate::settings::setting::Program::Worker;
use crate::settings::setting::{Fallback, Setting, SettingInfo};

pub(crate) static WORKER_TASKS: Setting<FilePath> = Setting {
    about: SettingInfo {
        name: "WORKER_TASKS",
        meaning: "The task catalogue, a TOML file: what each task type runs on this worker.",
        unit: "path",
        fallback: Fallback::Without("the worker refuses to start: it would have nothing to run"),
        trade_off: "Only who can write this file decides what is run; who edits jobs merely \
                    chooses among it.",
        programs: &[Worker],
        secret: false,
    },
    rule: FilePath,
};

pub(crate) static WORKER_POOLS: Setting<PoolList> = Setting {
    about: SettingInfo {
        name: "WORKER_POOLS",
        meaning: "The pools this worker takes tasks from, with the slots of each, like \
                  `default:4,reports:2`. Without numbers, like `default,reports`, the slots of \
                  WORKER_SLOTS are dealt out to them in turn. A job without a pool is in `default`.",
        unit: "names",
        fallback: Fallback::Text("default"),
        trade_off: "Pools of their own keep slow or demanding tasks from holding up the others. A \
                    pool that no worker takes from only collects; `sexton status` warns of it.",
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
        meaning: "How many tasks this worker runs at the same time, where WORKER_POOLS does not say \
                  it for each pool.",
        unit: "tasks",
        fallback: Fallback::Text("8"),
        trade_off: "Tasks that wait for others (HTTP calls, reports made elsewhere) allow many \
                    more; tasks that compute want about one for each core.",
        programs: &[Worker],
        secret: false,
    },
    rule: Whole { min: 1, max: 1000 },
};

pub(crate) static WORKER_PREFETCH: Setting<Whole> = Setting {
    about: SettingInfo {
        name: "WORKER_PREFETCH",
        meaning: "Tickets that the broker hands to one slot before the earlier ones are settled.",
        unit: "tickets",
        fallback: Fallback::Text("1"),
        trade_off: "1 is fair: no ticket waits behind a busy slot while another worker is idle. \
                    More is faster for floods of tasks that end within milliseconds; from 8 on \
                    tickets of tasks that have ended are acknowledged several at a time.",
        programs: &[Worker],
        secret: false,
    },
    rule: Whole { min: 1, max: 100 },
};

pub(crate) static LEASE_MS: Setting<Milliseconds> = Setting {
    about: SettingInfo {
        name: "LEASE_MS",
        meaning: "How long a running attempt stays its worker's own without a renewal, for jobs \
                  that do not say. It is renewed every quarter of that time, however long the \
                  task runs.",
        unit: "milliseconds",
        fallback: Fallback::Text("20000"),
        trade_off: "Shorter recovers sooner from a dead worker: a scheduler waits for this long after its last \
                    renewal, or after its own start or PostgreSQL's if that was later; a worker that is cut off from \
                    PostgreSQL for longer than this ends its tasks, so longer survives longer \
                    outages.",
        programs: &[Worker],
        secret: false,
    },
    rule: Milliseconds(Whole { min: 1000, max: 3_600_000 }),
};

pub(crate) static WORKER_MASK: Setting<Pattern> = Setting {
    about: SettingInfo {
        name: "WORKER_MASK",
        meaning: "What is replaced by `***` in the output of tasks and in the reasons of their \
                  failures, before they are stored: each match in a line. Write several patterns \
                  as `one|other`; `(?i)` in front ignores case.",
        unit: "regular expression",
        fallback: Fallback::Without("only the values of secrets are masked"),
        trade_off: "A pattern that matches much hides what is needed to mend a failure. Each line \
                    that is kept costs a search.",
        programs: &[Worker],
        secret: false,
    },
    rule: Pattern { max_bytes: 4096 },
};

pub(crate) static WORKER_FOREIGN_TYPES: Setting<TypeList> = Setting {
    about: SettingInfo {
        name: "WORKER_FOREIGN_TYPES",
        meaning: "Task types whose messages of other programs this worker adopts although no worker of the                   pool offers the type, like `report,billing.*`. A type that some worker of the pool offers                   needs no entry.",
        unit: "task types",
        fallback: Fallback::Without("only types that some worker of the pool offers are adopted"),
        trade_off: "The tasks of a listed type wait for a worker that offers it, as executions, for up to an                     hour. Each type becomes a job, so with `*` whoever may publish can make a thousand jobs.                     All workers of a pool should agree on it.",
        programs: &[Worker],
        secret: false,
    },
    rule: TypeList,
};

fn is_pool(text: &str) -> bool {
    let fits = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    text.starts_with(|first: char| first.is_ascii_lowercase()) && text.bytes().all(fits)
}
