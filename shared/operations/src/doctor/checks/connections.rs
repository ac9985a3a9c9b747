//! Checks that both servers answer, quickly, over encrypted connections, and have a known version.

use std::time::Duration;

use crate::doctor::facts::{Broker, Database, Facts};
use crate::doctor::{Code, Finding};

/// The oldest PostgreSQL whose features suffice, and the newest that was tested.
const POSTGRES_VERSIONS: [i32; 2] = [13, 17];
/// The same for RabbitMQ, as `(major, minor)`; of a newer major, any minor counts.
const RABBITMQ_VERSIONS: [(u32, u32); 2] = [(3, 10), (4, 0)];
/// From this release on, the feature flag is always enabled.
const FLAG_ALWAYS_ENABLED: (u32, u32) = (3, 12);

const MAX_DATABASE_LATENCY: Duration = Duration::from_millis(50);
const MAX_BROKER_LATENCY: Duration = Duration::from_millis(100);

pub(in crate::doctor) fn check(facts: &Facts, found: &mut Vec<Finding>) {
    match &facts.database {
        Ok(database) => check_database(database, found),
        Err(why) => found.push(Finding::new(Code::DatabaseUnreachable, why)),
    }
    match &facts.broker {
        Ok(broker) => check_broker(broker, found),
        Err(why) => found.push(Finding::new(Code::BrokerUnreachable, why)),
    }
}

fn check_database(database: &Database, found: &mut Vec<Finding>) {
    let Database { place, server, latency, .. } = database;
    if server.read_only {
        found.push(Finding::new(Code::DatabaseReadOnly, format!("{place} takes no writes")));
    }
    let [oldest, newest] = POSTGRES_VERSIONS;
    let major = server.version / 10_000;
    let version = format!("PostgreSQL {} at {place}", server.version_text);
    if major < oldest {
        found.push(Finding::new(Code::DatabaseVersion, version));
    } else if major > newest {
        let text = format!("{version}; {newest} is the newest that was tried");
        found.push(Finding::new(Code::DatabaseVersion, text).into_note());
    }
    if !database.local && !server.encrypted {
        found.push(Finding::new(Code::DatabaseNotEncrypted, place));
    }
    if *latency > MAX_DATABASE_LATENCY {
        found.push(Finding::new(Code::DatabaseSlow, describe_round_trip(place, *latency)));
    }
}

fn check_broker(broker: &Broker, found: &mut Vec<Finding>) {
    let Broker { place, examined, .. } = broker;
    if let Some(version_text) = &examined.version {
        let evidence = format!("RabbitMQ {version_text} at {place}");
        match parse_release(version_text) {
            Some(version) if version < RABBITMQ_VERSIONS[0] => {
                found.push(Finding::new(Code::BrokerVersion, evidence));
            }
            Some((major, _)) if major > RABBITMQ_VERSIONS[1].0 => {
                found.push(Finding::new(Code::BrokerVersion, evidence).into_note());
            }
            Some(version) if version < FLAG_ALWAYS_ENABLED => {
                found.push(Finding::new(Code::BrokerFlagUnseen, evidence));
            }
            Some(_) => {}
            None => found.push(Finding::new(Code::BrokerVersion, evidence).into_note()),
        }
    }
    if !broker.local && !broker.encrypted {
        found.push(Finding::new(Code::BrokerNotEncrypted, place));
    }
    if examined.latency > MAX_BROKER_LATENCY {
        found.push(Finding::new(Code::BrokerSlow, describe_round_trip(place, examined.latency)));
    }
}

fn describe_round_trip(place: &str, latency: Duration) -> String {
    format!("{} ms to {place} and back", latency.as_millis())
}

/// Parses a version: `3.10.8` is `(3, 10)`.
fn parse_release(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map(|part| part.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use sexton_broker::diagnostics::Diagnostics;
    use sexton_model::lint::Severity;
    use sexton_store::doctor::{Migrations, Privileges, Server};

    use super::*;

    fn database(version: i32) -> Database {
        let server = Server {
            version,
            version_text: "of a test".to_owned(),
            encrypted: false,
            read_only: false,
            user: "u".to_owned(),
            max_connections: 100,
            reserved: 3,
            connections: 1,
            now: chrono::DateTime::UNIX_EPOCH,
        };
        Database {
            place: "postgres://localhost/x".to_owned(),
            local: true,
            server,
            latency: Duration::ZERO,
            host_ahead_ms: 0,
            migrations: Migrations::default(),
            notification_failure: None,
            invalid_indexes: Vec::new(),
            privileges: Privileges::default(),
            rows: Err("not read".to_owned()),
        }
    }

    fn broker(version: &str) -> Broker {
        Broker {
            place: "amqp://localhost".to_owned(),
            local: true,
            encrypted: false,
            user: "u".to_owned(),
            examined: Diagnostics { version: Some(version.to_owned()), ..Diagnostics::default() },
        }
    }

    /// Tests on real servers must not depend on the machine's load.
    #[test]
    fn a_round_trip_is_slow_beyond_its_limit_alone() {
        for (over, expected) in [(0, false), (1, true)] {
            let over = Duration::from_millis(over);
            let (mut near, mut found) = (database(150_004), Vec::new());
            near.latency = MAX_DATABASE_LATENCY + over;
            check_database(&near, &mut found);
            let mut near = broker("3.13.7");
            near.examined.latency = MAX_BROKER_LATENCY + over;
            check_broker(&near, &mut found);
            let findings: Vec<_> = found.iter().map(|one| one.code).collect();
            let both = [Code::DatabaseSlow, Code::BrokerSlow];
            assert_eq!(findings, if expected { both.to_vec() } else { Vec::new() });
        }
    }

    /// No server of those versions is available for a test.
    #[test]
    fn doctor_finds_database_version() {
        for (version, expected) in [
            (120_019, Some(Severity::Error)),
            (130_000, None),
            (170_002, None),
            (180_000, Some(Severity::Note)),
        ] {
            let mut found = Vec::new();
            check_database(&database(version), &mut found);
            let findings: Vec<_> = found.iter().map(|one| (one.code, one.severity)).collect();
            let expected: Vec<_> =
                expected.map(|severity| (Code::DatabaseVersion, severity)).into_iter().collect();
            assert_eq!(findings, expected, "{version}");
        }
    }

    #[test]
    fn doctor_finds_broker_version() {
        for (version, expected) in [
            ("3.9.29", Some((Code::BrokerVersion, Severity::Error))),
            ("3.10.8", Some((Code::BrokerFlagUnseen, Severity::Note))),
            ("3.11.0", Some((Code::BrokerFlagUnseen, Severity::Note))),
            ("3.13.7", None),
            ("4.2.0", None),
            ("5.0.0", Some((Code::BrokerVersion, Severity::Note))),
            ("tip", Some((Code::BrokerVersion, Severity::Note))),
        ] {
            let mut found = Vec::new();
            check_broker(&broker(version), &mut found);
            let findings: Vec<_> = found.iter().map(|one| (one.code, one.severity)).collect();
            assert_eq!(findings, Vec::from_iter(expected), "{version}");
        }
    }
}
