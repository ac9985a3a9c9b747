//! The network between one kind of program and one server is cut, slow, and silent.
//!
//! Silence is the worst of the three: nothing is closed, and every request waits. Each program must
//! notice by itself, and must recover soon after the network does, whatever it was waiting for when
//! that happened.

use std::time::Duration;

use sexton_servers::shared;
use tokio::time::sleep;

use super::loaded_platform::{Line, LoadedPlatform};
use super::{BROKER, DATABASE, Machine};
use crate::bad_input::probe::not_ready;

/// How much longer a cut lasts once it is noticed.
const CUT: Duration = Duration::from_secs(1);
/// The delay in each direction; ten requests and answers take four seconds.
const DELAY: Duration = Duration::from_millis(200);
/// How much longer the silence lasts once the program has noticed it: it is retrying then, and its
/// retries get no answer either.
const SILENCE: Duration = Duration::from_secs(3);

pub(super) async fn survives(line: Line, machine: Machine) {
    let servers = shared().await.unwrap();
    let mut platform_under_load =
        LoadedPlatform::on(&servers.database_url, &servers.amqp_url, 1, machine).await;
    let (program, condition, soon) = match line {
        Line::SchedulerToDatabase => ("s1", "database", DATABASE),
        Line::SchedulerToBroker => ("s1", "broker", BROKER),
        Line::WorkerToDatabase => ("w1", "database", DATABASE),
        Line::WorkerToBroker => ("w1", "broker", BROKER),
    };

    platform_under_load.fault();
    platform_under_load.line(line).cut();
    not_ready(
        &platform_under_load.platform,
        platform_under_load.program_named(program),
        condition,
        &[],
    )
    .await;
    sleep(CUT).await;
    platform_under_load.line(line).pass();
    platform_under_load.resumes(&format!("a cut of {line:?}"), soon).await;

    platform_under_load.fault();
    platform_under_load.line(line).delay(DELAY);
    platform_under_load.goes_on(&format!("the beginning of a delay of {line:?}")).await;
    platform_under_load.line(line).pass();
    platform_under_load.resumes(&format!("a delay of {line:?}"), soon).await;

    platform_under_load.fault();
    platform_under_load.program(program).ready().await;
    platform_under_load.line(line).black_hole();
    not_ready(
        &platform_under_load.platform,
        platform_under_load.program_named(program),
        condition,
        &[],
    )
    .await;
    sleep(SILENCE).await;
    platform_under_load.line(line).pass();
    platform_under_load.resumes(&format!("a silence of {line:?}"), soon).await;
    platform_under_load.end().await;
}

#[tokio::test]
async fn programs_recover_when_connections_to_postgresql_are_cut_slow_or_silent() {
    tokio::join!(
        survives(Line::SchedulerToDatabase, Machine::Shared),
        survives(Line::WorkerToDatabase, Machine::Shared)
    );
}

#[tokio::test]
async fn programs_recover_when_connections_to_rabbitmq_are_cut_slow_or_silent() {
    tokio::join!(
        survives(Line::SchedulerToBroker, Machine::Shared),
        survives(Line::WorkerToBroker, Machine::Shared)
    );
}
