//! Stopping, health and logs.

use crate::settings::rule::{Address, Filter, Format, Milliseconds, Whole};
use crate::settings::setting::Program::{Console, Scheduler, Worker};
use crate::settings::setting::{Fallback, Program, Setting, SettingInfo};

const ALL: &[Program] = &[Scheduler, Worker, Console];
const SERVICES: &[Program] = &[Scheduler, Worker];

pub(crate) static SHUTDOWN_GRACE_MS: Setting<Milliseconds> = Setting {
    about: SettingInfo {
        name: "SHUTDOWN_GRACE_MS",
        meaning: "How long running work may go on after SIGTERM or SIGINT, while nothing new is \
                  begun. A second signal ends the wait.",
        unit: "milliseconds",
        fallback: Fallback::Text("30000"),
        trade_off: "Tasks that outlast it are ended and tried again elsewhere. Whatever stops the \
                    process must wait at least 15 s longer before it kills.",
        programs: SERVICES,
        secret: false,
    },
    rule: Milliseconds(Whole { min: 0, max: 86_400_000 }),
};

pub(crate) static HEALTH_ADDR: Setting<Address> = Setting {
    about: SettingInfo {
        name: "HEALTH_ADDR",
        meaning: "Where `/livez` and `/readyz` are answered. Port 0 takes a free one; the log \
                  says which.",
        unit: "address",
        fallback: Fallback::Text("127.0.0.1:0"),
        trade_off: "The default never clashes on a shared host. In a container use \
                    `0.0.0.0:8080`; the answers hold no secrets, but need no public either.",
        programs: SERVICES,
        secret: false,
    },
    rule: Address,
};

pub(crate) static LOG_FORMAT: Setting<Format> = Setting {
    about: SettingInfo {
        name: "LOG_FORMAT",
        meaning: "How log lines are written to standard error.",
        unit: "word",
        fallback: Fallback::Text("pretty"),
        trade_off: "`pretty` is for people, `json` is one object a line for a log collector.",
        programs: ALL,
        secret: false,
    },
    rule: Format,
};

pub(crate) static RUST_LOG: Setting<Filter> = Setting {
    about: SettingInfo {
        name: "RUST_LOG",
        meaning: "Which log lines are written. `lapin` and `sqlx` stay at `warn` unless they are \
                  named.",
        unit: "filter",
        fallback: Fallback::Text("info"),
        trade_off: "`debug` tells each step and may show params of tasks; `warn` is silent while \
                    all is well.",
        programs: ALL,
        secret: false,
    },
    rule: Filter,
};
