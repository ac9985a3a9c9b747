//! Variables that look like settings but are not.
//!
//! A misspelt name would otherwise be ignored silently, and the default would apply.

use sexton_model::suggest::nearest;

use super::setting::Program;
use super::table;

/// Prefixes of Sexton's variables.
const PREFIXES: [&str; 3] = ["SEXTON_", "CRON_", "WORKER_"];

/// Variables that a worker sets for its tasks. A task may call `sexton`, which then sees them.
const TASK_VARIABLES: [&str; 9] = [
    "SEXTON_EXECUTION_ID",
    "SEXTON_ATTEMPT",
    "SEXTON_JOB",
    "SEXTON_TARGET",
    "SEXTON_EXECUTION_KEY",
    "SEXTON_SCHEDULED_FOR",
    "SEXTON_DEADLINE",
    "SEXTON_IDEMPOTENCY_KEY",
    "SEXTON_RESULT_FILE",
];

/// Returns the reason why `name` is a problem; `None` if it is a setting or belongs to another program.
pub(crate) fn unknown_name_problem(name: &str, value: &str) -> Option<String> {
    let ours = PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    let known = || table::settings().map(|setting| setting.about().name);
    if !ours
        || known().any(|setting| setting == name)
        || TASK_VARIABLES.contains(&name)
        || is_service_link(name, value)
    {
        return None;
    }
    Some(match nearest(name, known()) {
        Some(suggestion) => format!("no such setting; did you mean {suggestion}?"),
        None => "no such setting; `--help` lists them all".to_owned(),
    })
}

/// Returns the reason why a caller's code cannot set `name` for `program`; `None` if it is a setting of it.
///
/// In the environment most names belong to other programs; here none do.
pub fn unknown_setting_reason(program: Program, name: &str) -> Option<String> {
    let of_program =
        || table::settings().filter(|setting| setting.about().programs.contains(&program));
    let mut known = of_program().map(|setting| setting.about().name);
    if known.any(|setting| setting == name) {
        return None;
    }
    Some(match nearest(name, of_program().map(|setting| setting.about().name)) {
        Some(suggestion) => format!("no such setting; did you mean {suggestion}?"),
        None => "no such setting; `--help` lists them all".to_owned(),
    })
}

/// Kubernetes and Docker links put the addresses of neighbours into the environment under names made from the
/// neighbour's: a service called `worker-health` yields `WORKER_HEALTH_PORT`.
fn is_service_link(name: &str, value: &str) -> bool {
    let is_address = ["tcp://", "udp://", "sctp://"].iter().any(|scheme| value.starts_with(scheme));
    let is_part = ["_TCP", "_UDP", "_SCTP"].iter().any(|protocol| {
        name.split_once("_PORT_").is_some_and(|(_, rest)| {
            rest.starts_with(|first: char| first.is_ascii_digit()) && rest.contains(protocol)
        })
    });
    name.ends_with("_SERVICE_HOST")
        || name.ends_with("_SERVICE_PORT")
        || name.contains("_SERVICE_PORT_")
        || (name.ends_with("_PORT") && is_address)
        || is_part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_gets_the_nearest_known_one() {
        for (name, suggestion) in [
            ("WORKER_SLOT", "WORKER_SLOTS"),
            ("WORKER_POOL", "WORKER_POOLS"),
            ("CRON_MAX_RETRY", "CRON_MAX_RETRIES"),
            ("SEXTON_NAME_SPACE", "SEXTON_NAMESPACE"),
            ("CRON_RETRY_DELAY_MULTIPLIKATOR", "CRON_RETRY_DELAY_MULTIPLIER"),
        ] {
            let reason = unknown_name_problem(name, "1").unwrap();
            assert!(reason.ends_with(&format!("did you mean {suggestion}?")), "{name}: {reason}");
        }
        assert_eq!(
            unknown_name_problem("SEXTON_COFFEE_MACHINE", "1").unwrap(),
            "no such setting; `--help` lists them all"
        );
    }

    #[test]
    fn settings_task_variables_service_links_and_strangers_are_left_alone() {
        for (name, value) in [
            ("SEXTON_INSTANCE", "a"),
            ("SEXTON_IDEMPOTENCY_KEY", "a"),
            ("LEASE_MSS", "nothing of ours"),
            ("PATH", "/bin"),
            ("WORKER_HEALTH_SERVICE_HOST", "10.0.0.1"),
            ("WORKER_HEALTH_SERVICE_PORT_HTTP", "8080"),
            ("WORKER_HEALTH_PORT", "tcp://10.0.0.1:8080"),
            ("SEXTON_DB_PORT_5432_TCP_ADDR", "10.0.0.1"),
        ] {
            assert_eq!(unknown_name_problem(name, value), None, "{name}");
        }
        assert!(unknown_name_problem("WORKER_PORT", "8080").is_some());
        assert!(unknown_name_problem("WORKER_PORT_FORWARD_TCP", "8080").is_some());
    }
}
