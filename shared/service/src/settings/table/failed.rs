//! The limits above which failed executions are too many.

use crate::settings::rule::{Milliseconds, Whole};
use crate::settings::setting::Program::{Console, Scheduler};
use crate::settings::setting::{Fallback, Setting, SettingInfo};

pub(crate) static FAILED_WARN_COUNT: Setting<Whole> = Setting {
    about: SettingInfo {
        name: "FAILED_WARN_COUNT",
        meaning: "`sexton status` warns, and an incident opens, when more failed executions than \
                  this wait for an operator.",
        unit: "executions",
        fallback: Fallback::Text("100"),
        trade_off: "Choose what you usually review.",
        programs: &[Scheduler, Console],
        secret: false,
    },
    rule: Whole { min: 0, max: 1_000_000_000 },
};

pub(crate) static FAILED_WARN_AGE_MS: Setting<Milliseconds> = Setting {
    about: SettingInfo {
        name: "FAILED_WARN_AGE_MS",
        meaning: "`sexton status` warns, and an incident opens, when the oldest failed execution \
                  has waited longer than this.",
        unit: "milliseconds",
        fallback: Fallback::Text("86400000"),
        trade_off: "Choose more than people need to look, weekends included.",
        programs: &[Scheduler, Console],
        secret: false,
    },
    rule: Milliseconds(Whole { min: 1, max: 4_000_000_000 }),
};

pub(crate) static FAILED_WARN_PER_HOUR: Setting<Whole> = Setting {
    about: SettingInfo {
        name: "FAILED_WARN_PER_HOUR",
        meaning: "`sexton status` warns when more executions than this failed within the last hour \
                  and still wait.",
        unit: "executions",
        fallback: Fallback::Text("60"),
        trade_off: "Choose less than a broken dependency causes, more than an ordinary hour.",
        programs: &[Console],
        secret: false,
    },
    rule: Whole { min: 0, max: 1_000_000_000 },
};
