//! Jobs from the environment, and defaults for jobs.

use crate::settings::rule::{Days, Decimal, Milliseconds, Name, Text, Whole};
use crate::settings::setting::Program::{Scheduler, Worker};
use crate::settings::setting::{Fallback, Program, Setting, SettingInfo};

const SERVICES: &[Program] = &[Scheduler, Worker];

pub(crate) static SEXTON_SERVICE: Setting<Name> = Setting {
    about: SettingInfo {
        name: "SEXTON_SERVICE",
        meaning: "The prefix for names of jobs in `CRON_JOBS`: with `billing`, `dailyReport` \
                  becomes `billing.dailyReport`.",
        unit: "name",
        fallback: Fallback::Without("names stay as they are"),
        trade_off: "Services that share a database each need a prefix: two jobs of the same name \
                    are one job.",
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
        meaning: "Jobs as JSON: `{\"dailyReport\": {\"schedule\": \"0 8 * * *\", \"lockKey\": \
                  1301}}`. The scheduler checks and applies them at every start. The task type is \
                  the job's full name, prefix included.",
        unit: "JSON",
        fallback: Fallback::Without("jobs come only from `sexton jobs apply`"),
        trade_off: "A jobs file has more fields and a preview of its changes.",
        programs: &[Scheduler],
        secret: false,
    },
    rule: Text { what: "a JSON object", max_bytes: 100_000 },
};

pub(crate) static CRON_MAX_RETRIES: Setting<Whole> = Setting {
    about: SettingInfo {
        name: "CRON_MAX_RETRIES",
        meaning: "Retries after the first attempt, unless the job or its task type sets them. Then \
                  the execution fails and its ticket is parked.",
        unit: "retries",
        fallback: Fallback::Text("3"),
        trade_off: "More survive longer outages; fewer inform operators sooner. Give schedulers \
                    and workers the same value.",
        programs: SERVICES,
        secret: false,
    },
    rule: Whole { min: 0, max: 1000 },
};

pub(crate) static CRON_RETRY_DELAY_MS: Setting<Milliseconds> = Setting {
    about: SettingInfo {
        name: "CRON_RETRY_DELAY_MS",
        meaning: "The delay before the first retry, unless the job or its task type sets it.",
        unit: "milliseconds",
        fallback: Fallback::Text("30000"),
        trade_off: "A shorter delay recovers sooner; a longer one spares a struggling service.",
        programs: SERVICES,
        secret: false,
    },
    rule: Milliseconds(Whole { min: 1, max: 86_400_000 }),
};

pub(crate) static CRON_RETRY_DELAY_MULTIPLIER: Setting<Decimal> = Setting {
    about: SettingInfo {
        name: "CRON_RETRY_DELAY_MULTIPLIER",
        meaning: "The factor between retry delays, unless the job or its task type sets it: 30000 \
                  ms and 2.0 give 30 s, 60 s, 120 s.",
        unit: "factor",
        fallback: Fallback::Text("2.0"),
        trade_off: "1.0 keeps the delay constant.",
        programs: SERVICES,
        secret: false,
    },
    rule: Decimal { min: 1.0, max: 100.0 },
};

pub(crate) static CATCH_UP_HOLD_MS: Setting<Milliseconds> = Setting {
    about: SettingInfo {
        name: "CATCH_UP_HOLD_MS",
        meaning: "Schedulers hold late firings for `sexton jobs catch-up` if the database's clock \
                  is ahead of the last instant that a scheduler saw by more than this, or behind \
                  it by more than a minute.",
        unit: "milliseconds",
        fallback: Fallback::Text("43200000"),
        trade_off: "Choose more than the longest absence that schedulers may catch up alone, and \
                    less than the age of a backup that you would restore. Give all schedulers the \
                    same value.",
        programs: &[Scheduler],
        secret: false,
    },
    rule: Milliseconds(Whole { min: 60_000, max: 2_678_400_000 }),
};

pub(crate) static RETENTION_DAYS: Setting<Whole> = Setting {
    about: SettingInfo {
        name: "RETENTION_DAYS",
        meaning: "How long Sexton keeps finished executions. Failed ones stay until an operator \
                  acts; a caller's own keys deduplicate for 400 days.",
        unit: "days",
        fallback: Fallback::Text("30"),
        trade_off: "Disk space grows in proportion.",
        programs: &[Scheduler],
        secret: false,
    },
    rule: Whole { min: 1, max: 3650 },
};

pub(crate) static AUDIT_DAYS: Setting<Days> = Setting {
    about: SettingInfo {
        name: "AUDIT_DAYS",
        meaning: "How long Sexton keeps the audit of operators' actions.",
        unit: "days",
        fallback: Fallback::Text("400"),
        trade_off: "`sexton audit export` prints it for an archive. The database never removes \
                    entries younger than 30 days.",
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
