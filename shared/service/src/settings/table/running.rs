//! Stopping, health and logs.

use crate::settings::rule::{Address, Filter, Format, Milliseconds, Switch, Whole};
use crate::settings::setting::Program::{Console, Scheduler, Server, Worker};
use crate::settings::setting::{Fallback, Program, Setting, SettingInfo};

const ALL: &[Program] = &[Scheduler, Worker, Server, Console];
const SERVICES: &[Program] = &[Scheduler, Worker, Server];

pub(crate) static SHUTDOWN_GRACE_MS: Setting<Milliseconds> = Setting {
    about: SettingInfo {
        name: "SHUTDOWN_GRACE_MS",
        meaning: "How long tasks may continue after SIGTERM or SIGINT. A second signal ends the \
                  wait.",
        unit: "milliseconds",
        fallback: Fallback::Text("30000"),
        trade_off: "The worker stops tasks that take longer, and they run again elsewhere. `sexton serve` \
                    carries out approved requests that it has begun. Let your service manager wait \
                    at least 15 s longer.",
        programs: SERVICES,
        secret: false,
    },
    rule: Milliseconds(Whole { min: 0, max: 86_400_000 }),
};

pub(crate) static HEALTH_ADDR: Setting<Address> = Setting {
    about: SettingInfo {
        name: "HEALTH_ADDR",
        meaning: "The address of `/livez`, `/readyz` and `/metrics`. Port 0 takes a free port, which the log \
                  names.",
        unit: "address",
        fallback: Fallback::Text("127.0.0.1:0"),
        trade_off: "In a container use `0.0.0.0:8080`. The answers hold no secrets.",
        programs: SERVICES,
        secret: false,
    },
    rule: Address,
};

pub(crate) static METRICS_PER_JOB: Setting<Switch> = Setting {
    about: SettingInfo {
        name: "METRICS_PER_JOB",
        meaning: "Whether `/metrics` has each job's last success, next firing and failures in a row.",
        unit: "word",
        fallback: Fallback::Text("false"),
        trade_off: "`true` adds up to 3,003 series, and a query every 15 s: of the 10,000 first jobs by name, the first \
                    1,000 have series of their own, the others are `_other`. Give all schedulers the same value.",
        programs: &[Scheduler],
        secret: false,
    },
    rule: Switch,
};

pub(crate) static LOG_FORMAT: Setting<Format> = Setting {
    about: SettingInfo {
        name: "LOG_FORMAT",
        meaning: "The form of log lines on standard error.",
        unit: "word",
        fallback: Fallback::Text("pretty"),
        trade_off: "`json` writes one object per line for log collectors.",
        programs: ALL,
        secret: false,
    },
    rule: Format,
};

pub(crate) static RUST_LOG: Setting<Filter> = Setting {
    about: SettingInfo {
        name: "RUST_LOG",
        meaning: "Which log lines are written. `lapin` and `sqlx` stay at `warn` unless you name \
                  them.",
        unit: "filter",
        fallback: Fallback::Text("info"),
        trade_off: "`debug` logs each step and may show params; `warn` logs problems only.",
        programs: ALL,
        secret: false,
    },
    rule: Filter,
};
