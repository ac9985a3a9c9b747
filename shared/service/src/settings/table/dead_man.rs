//! The dead man's switch.

use crate::settings::rule::{Milliseconds, Watcher, Whole};
use crate::settings::setting::Program::Scheduler;
use crate::settings::setting::{Fallback, Setting, SettingInfo};

pub(crate) static DEADMAN_URL: Setting<Watcher> = Setting {
    about: SettingInfo {
        name: "DEADMAN_URL",
        meaning: "The address of an outside watcher, such as a check of Healthchecks, which one scheduler \
                  pings in each period while the platform is well.",
        unit: "URL",
        fallback: Fallback::Without("no pings are sent"),
        trade_off: "Set the same on all schedulers. The watcher must not depend on what it watches.",
        programs: &[Scheduler],
        secret: true,
    },
    rule: Watcher,
};

pub(crate) static DEADMAN_PERIOD_MS: Setting<Milliseconds> = Setting {
    about: SettingInfo {
        name: "DEADMAN_PERIOD_MS",
        meaning: "The period of these pings.",
        unit: "milliseconds",
        fallback: Fallback::Text("60000"),
        trade_off: "Shorter notices an outage sooner. Give the watcher the same period, and a grace of two periods.",
        programs: &[Scheduler],
        secret: false,
    },
    rule: Milliseconds(Whole { min: 1_000, max: 86_400_000 }),
};
