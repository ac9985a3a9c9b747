//! The settings, each described once.
//!
//! The order is that of the documentation and of the reported problems. Texts are for the person who deploys, so they
//! describe effects, not the implementation.

mod dead_man;
mod failed;
mod identity;
mod jobs;
mod running;
mod server;
mod servers;
mod traces;
mod work;

pub(crate) use dead_man::{DEADMAN_PERIOD_MS, DEADMAN_URL};
pub(crate) use failed::{FAILED_WARN_AGE_MS, FAILED_WARN_COUNT, FAILED_WARN_PER_HOUR};
pub(crate) use identity::{
    SERVE_OIDC_CLIENT_ID, SERVE_OIDC_CLIENT_SECRET, SERVE_OIDC_ISSUER, SERVE_OIDC_NAME_CLAIM,
    SERVE_OIDC_ROLES, SERVE_OIDC_SCOPES, SERVE_PUBLIC_URL,
};
pub(crate) use jobs::{
    AUDIT_DAYS, CATCH_UP_HOLD_MS, CRON_JOBS, CRON_MAX_RETRIES, CRON_RETRY_DELAY_MS,
    CRON_RETRY_DELAY_MULTIPLIER, RETENTION_DAYS, SEXTON_SERVICE,
};
pub(crate) use running::{HEALTH_ADDR, LOG_FORMAT, METRICS_PER_JOB, RUST_LOG, SHUTDOWN_GRACE_MS};
pub(crate) use server::{
    PINGS_PER_MINUTE, SERVE_ADDR, SERVE_BEHIND_TLS, SERVE_LOCAL_ROLE, SERVE_PROXY_ROLE,
    SERVE_PROXY_ROLE_HEADER, SERVE_PROXY_USER_HEADER, SERVE_REQUESTS_PER_MINUTE,
    SERVE_TRUSTED_PROXIES, SEXTON_BASE_PATH,
};
pub(crate) use servers::{
    AMQP_URL, DATABASE_DIRECT_URL, DATABASE_URL, DB_POOL_SIZE, SEXTON_INSTANCE, SEXTON_NAMESPACE,
    SEXTON_STATE_DIR, is_instance_byte,
};
pub(crate) use traces::{OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER_ARG};
pub(crate) use work::{
    LEASE_MS, WORKER_FOREIGN_TYPES, WORKER_MASK, WORKER_POOLS, WORKER_PREFETCH, WORKER_SLOTS,
    WORKER_TASKS,
};

use super::setting::AnySetting;

/// A heading and its settings.
pub(crate) type Group = (&'static str, &'static [&'static dyn AnySetting]);

/// All settings.
pub(crate) static GROUPS: &[Group] = &[
    (
        "Servers",
        &[&DATABASE_URL, &DATABASE_DIRECT_URL, &AMQP_URL, &SEXTON_NAMESPACE, &DB_POOL_SIZE],
    ),
    ("Identity", &[&SEXTON_INSTANCE, &SEXTON_STATE_DIR]),
    ("Jobs from the environment", &[&SEXTON_SERVICE, &CRON_JOBS]),
    ("Catch-up", &[&CATCH_UP_HOLD_MS]),
    (
        "Retries and retention",
        &[
            &CRON_MAX_RETRIES,
            &CRON_RETRY_DELAY_MS,
            &CRON_RETRY_DELAY_MULTIPLIER,
            &RETENTION_DAYS,
            &AUDIT_DAYS,
        ],
    ),
    (
        "Work",
        &[
            &WORKER_TASKS,
            &WORKER_POOLS,
            &WORKER_SLOTS,
            &WORKER_PREFETCH,
            &WORKER_FOREIGN_TYPES,
            &LEASE_MS,
            &WORKER_MASK,
        ],
    ),
    ("Warnings about failures", &[&FAILED_WARN_COUNT, &FAILED_WARN_AGE_MS, &FAILED_WARN_PER_HOUR]),
    ("Dead man's switch", &[&DEADMAN_URL, &DEADMAN_PERIOD_MS]),
    (
        "Running as a service",
        &[&SHUTDOWN_GRACE_MS, &HEALTH_ADDR, &METRICS_PER_JOB, &LOG_FORMAT, &RUST_LOG],
    ),
    (
        "API and pings",
        &[
            &SERVE_ADDR,
            &SEXTON_BASE_PATH,
            &SERVE_LOCAL_ROLE,
            &SERVE_REQUESTS_PER_MINUTE,
            &SERVE_BEHIND_TLS,
            &SERVE_TRUSTED_PROXIES,
            &SERVE_PROXY_USER_HEADER,
            &SERVE_PROXY_ROLE_HEADER,
            &SERVE_PROXY_ROLE,
            &PINGS_PER_MINUTE,
        ],
    ),
    (
        "Log-in by an identity provider",
        &[
            &SERVE_OIDC_ISSUER,
            &SERVE_OIDC_CLIENT_ID,
            &SERVE_OIDC_CLIENT_SECRET,
            &SERVE_OIDC_ROLES,
            &SERVE_OIDC_NAME_CLAIM,
            &SERVE_OIDC_SCOPES,
            &SERVE_PUBLIC_URL,
        ],
    ),
    ("Traces", &[&OTEL_EXPORTER_OTLP_ENDPOINT, &OTEL_SERVICE_NAME, &OTEL_TRACES_SAMPLER_ARG]),
];

/// All settings in order.
pub(crate) fn settings() -> impl Iterator<Item = &'static dyn AnySetting> {
    GROUPS.iter().flat_map(|(_, settings)| settings.iter().copied())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::settings::setting::Fallback;

    #[test]
    fn every_default_obeys_its_own_rule() {
        for setting in settings() {
            let about = setting.about();
            if let Fallback::Text(text) = about.fallback {
                assert_eq!(setting.refusal(text), None, "{}", about.name);
            }
        }
    }

    #[test]
    fn every_setting_is_listed_once_and_read_by_somebody() {
        let names: BTreeSet<_> = settings().map(|setting| setting.about().name).collect();
        assert_eq!(names.len(), settings().count());
        assert!(settings().all(|setting| !setting.about().programs.is_empty()));
    }

    #[test]
    fn names_that_would_collide_or_are_reserved_are_refused() {
        for (setting, text) in [
            (&SEXTON_NAMESPACE as &dyn AnySetting, "cron"),
            (&SEXTON_NAMESPACE, "a_b"),
            (&SEXTON_NAMESPACE, "A"),
            (&SEXTON_INSTANCE, "host:1"),
            (&SEXTON_SERVICE, "foreign"),
            (&SEXTON_SERVICE, "a.b"),
            (&WORKER_POOLS, "default,,x"),
            (&WORKER_POOLS, "eu_west"),
            (&WORKER_POOLS, "default:4,reports"),
            (&WORKER_POOLS, "default:0"),
            (&WORKER_POOLS, "default:"),
            (&WORKER_POOLS, "default:4:4"),
            (&WORKER_POOLS, ":4"),
            (&WORKER_POOLS, "default:4,default:4"),
            (&WORKER_POOLS, "default:900,reports:101"),
            (&WORKER_FOREIGN_TYPES, "report,,x"),
            (&WORKER_FOREIGN_TYPES, "*.report"),
            (&WORKER_MASK, "(unclosed"),
            (&WORKER_MASK, "x*"),
            (&WORKER_MASK, "(?:[a-z]{1000}){1000}"),
        ] {
            assert!(setting.refusal(text).is_some(), "{text} was accepted");
        }
        assert_eq!(SEXTON_NAMESPACE.refusal("demo-17"), None);
        assert_eq!(WORKER_FOREIGN_TYPES.refusal("report, billing.*"), None);
        assert_eq!(WORKER_POOLS.refusal("default, eu-west"), None);
        assert_eq!(WORKER_POOLS.refusal("default:4, eu-west : 2"), None);
        assert_eq!(WORKER_MASK.refusal("(?i)bearer [a-z0-9.]+|[0-9]{4}-[0-9]{4}"), None);
    }
}
