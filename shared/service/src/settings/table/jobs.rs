//! Jobs given by the environment, and what holds for jobs that do not say.

use crate::settings::rule::{Days, Decimal, Milliseconds, Name, Text, Whole};
use crate::settings::setting::Program::{Scheduler, Worker};
use crate::settings::setting::{Fallback, Program, Setting, SettingInfo};

const SERVICES: &[Program] = &[Scheduler, Worker];

pub(crate) static SEXTON_SERVICE: Setting<Name> = Setting {
    about: SettingInfo {
        name: "SEXTON_SERVICE",
        meaning: "What is put before the names of the jobs in `CRON_JOBS`, with a dot: \
                  `dailyReport` becomes `billing.dailyReport`.",
        unit: "name",
        fallback: Fallback::Without("the jobs keep the names they have there"),
        trade_off: "Services that share a database each need one, or two jobs of the same name would \
                    be taken for one.",
        programs: &[Scheduler],
        secret: false,
    },
    rule: Name {
        allowed: "letters, digits, `_` and `-`, a letter first (not `foreign`)",
        max_bytes: 60,
        fits: is_service,
    },
};

pub(crate) static CRON_JOBS: Setting<Text> = Setting {
    about: SettingInfo {
        name: "CRON_JOBS",
        meaning: "Jobs to have, as JSON: `{\"dailyReport\": {\"schedule\": \"0 8 * * *\", \
                  \"lockKey\": 1301}}`. The task type is the job's name, what `SEXTON_SERVICE` \
                  puts before it included. They are checked and \
                  applied at every start.",
        unit: "JSON",
        fallback: Fallback::Without("jobs come from `sexton jobs apply` alone"),
        trade_off: "Good for a handful of jobs that live with one deployment. A jobs file knows \
                    more settings and shows what it would change.",
        programs: &[Scheduler],
        secret: false,
    },
    rule: Text { what: "a JSON object", max_bytes: 100_000 },
};

pub(crate) static CRON_MAX_RETRIES: Setting<Whole> = Setting {
    about: SettingInfo {
        name: "CRON_MAX_RETRIES",
        meaning: "Retries after a failed first attempt, for jobs that do not say. Then the task \
                  is parked in the failed queue.",
        unit: "retries",
        fallback: Fallback::Text("3"),
        trade_off: "More rides out longer disturbances of what the tasks depend on; fewer tells \
                    the operators sooner. 0 parks after the first failure. Schedulers and workers \
                    should agree on it: either may have to record a failure.",
        programs: SERVICES,
        secret: false,
    },
    rule: Whole { min: 0, max: 1000 },
};

pub(crate) static CRON_RETRY_DELAY_MS: Setting<Milliseconds> = Setting {
    about: SettingInfo {
        name: "CRON_RETRY_DELAY_MS",
        meaning: "The wait before the first retry, for jobs that do not say.",
        unit: "milliseconds",
        fallback: Fallback::Text("30000"),
        trade_off: "Shorter recovers sooner from a passing fault; longer is kinder to a service \
                    that is struggling.",
        programs: SERVICES,
        secret: false,
    },
    rule: Milliseconds(Whole { min: 1, max: 86_400_000 }),
};

pub(crate) static CRON_RETRY_DELAY_MULTIPLIER: Setting<Decimal> = Setting {
    about: SettingInfo {
        name: "CRON_RETRY_DELAY_MULTIPLIER",
        meaning: "The factor from one wait to the next, for jobs that do not say: with 30000 ms \
                  and 2.0 the waits are 30 s, 60 s, 120 s.",
        unit: "factor",
        fallback: Fallback::Text("2.0"),
        trade_off: "1.0 keeps the wait the same. Larger factors reach far with few retries.",
        programs: SERVICES,
        secret: false,
    },
    rule: Decimal { min: 1.0, max: 100.0 },
};

pub(crate) static CATCH_UP_HOLD_MS: Setting<Milliseconds> = Setting {
    about: SettingInfo {
        name: "CATCH_UP_HOLD_MS",
        meaning: "After the database's time has jumped by more than this against the last instant \
                  that a scheduler saw (or back by more than a minute), late firings are set aside \
                  until an operator decides with `sexton jobs catch-up`. What is on time goes on.",
        unit: "milliseconds",
        fallback: Fallback::Text("43200000"),
        trade_off: "An absence of all schedulers looks like a clock that was set forward or a backup \
                    that was restored. Longer than the longest absence after which firings are to be \
                    caught up without a person; shorter than the age of the backups that you would \
                    restore. All schedulers should agree on it.",
        programs: &[Scheduler],
        secret: false,
    },
    rule: Milliseconds(Whole { min: 60_000, max: 2_678_400_000 }),
};

pub(crate) static RETENTION_DAYS: Setting<Whole> = Setting {
    about: SettingInfo {
        name: "RETENTION_DAYS",
        meaning: "How long finished executions are kept. Failed ones are never removed by age, \
                  and keys that a caller chose go on deduplicating.",
        unit: "days",
        fallback: Fallback::Text("30"),
        trade_off: "Longer answers older questions and takes disk space in proportion.",
        programs: &[Scheduler],
        secret: false,
    },
    rule: Whole { min: 1, max: 3650 },
};

pub(crate) static AUDIT_DAYS: Setting<Days> = Setting {
    about: SettingInfo {
        name: "AUDIT_DAYS",
        meaning: "How long the audit is kept: what operators did, to what, when and why. `sexton audit \
                  export` writes it down before.",
        unit: "days",
        fallback: Fallback::Text("400"),
        trade_off: "Longer answers older questions, and the table grows with each action. What is \
                    younger than 30 days the database keeps, whatever it is asked for.",
        programs: &[Scheduler],
        secret: false,
    },
    rule: Days(Whole { min: 30, max: 36_500 }),
};

fn is_service(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    text != "foreign"
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(fits)
}
