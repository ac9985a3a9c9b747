//! From when on what failed is too much, for `sexton status`.

use crate::settings::rule::{Milliseconds, Whole};
use crate::settings::setting::Program::Console;
use crate::settings::setting::{Fallback, Setting, SettingInfo};

pub(crate) static FAILED_WARN_COUNT: Setting<Whole> = Setting {
    about: SettingInfo {
        name: "FAILED_WARN_COUNT",
        meaning: "With more failed executions than this waiting for an operator, `sexton status` warns.",
        unit: "executions",
        fallback: Fallback::Text("100"),
        trade_off: "Nothing failed is ever dropped, so it is a matter of whom it wakes up. As many as \
                    you are used to look through.",
        programs: &[Console],
        secret: false,
    },
    rule: Whole { min: 0, max: 1_000_000_000 },
};

pub(crate) static FAILED_WARN_AGE_MS: Setting<Milliseconds> = Setting {
    about: SettingInfo {
        name: "FAILED_WARN_AGE_MS",
        meaning: "When the oldest failed execution has waited for longer than this, `sexton status` warns.",
        unit: "milliseconds",
        fallback: Fallback::Text("86400000"),
        trade_off: "Longer than people take to look at what failed, weekends included if nobody does then.",
        programs: &[Console],
        secret: false,
    },
    rule: Milliseconds(Whole { min: 1, max: 4_000_000_000 }),
};

pub(crate) static FAILED_WARN_PER_HOUR: Setting<Whole> = Setting {
    about: SettingInfo {
        name: "FAILED_WARN_PER_HOUR",
        meaning: "When more executions than this failed within the last hour and still wait, `sexton \
                  status` warns.",
        unit: "executions",
        fallback: Fallback::Text("60"),
        trade_off: "Below what a broken dependency causes, above what an ordinary hour does.",
        programs: &[Console],
        secret: false,
    },
    rule: Whole { min: 0, max: 1_000_000_000 },
};
