//! How soon work continues, to the second.
//!
//! Goal: the platform keeps the times that the guarantees name. Method: the same faults under the
//! same load as in the tests beside this one, but one after the other and with the machine for
//! themselves. Where other tests use the processors as well, an exceeded time says nothing about
//! the platform, so these are not part of `make test`; `make verify` runs them.

use super::loaded_platform::Line;
use super::{Machine, clock, lease, networks, postgresql, rabbitmq, server_wipes};

#[tokio::test]
#[ignore = "asserts times and needs the machine to itself: run `make promised`"]
async fn work_resumes_within_five_seconds_after_rabbitmq_was_restarted_killed_and_frozen() {
    rabbitmq::restarted_killed_and_frozen(Machine::Dedicated).await;
}

#[tokio::test]
#[ignore = "asserts times and needs the machine to itself: run `make promised`"]
async fn work_resumes_within_five_seconds_after_rabbitmq_was_wiped() {
    Box::pin(server_wipes::rabbitmq_wiped(Machine::Dedicated)).await;
}

#[tokio::test]
#[ignore = "asserts times and needs the machine to itself: run `make promised`"]
async fn work_resumes_within_five_seconds_after_the_network_to_rabbitmq_was_cut_slow_and_silent() {
    networks::survives(Line::SchedulerToBroker, Machine::Dedicated).await;
    networks::survives(Line::WorkerToBroker, Machine::Dedicated).await;
}

#[tokio::test]
#[ignore = "asserts times and needs the machine to itself: run `make promised`"]
async fn work_resumes_within_ten_seconds_after_postgresql_was_restarted_killed_and_frozen() {
    Box::pin(postgresql::restarted_killed_and_frozen(Machine::Dedicated)).await;
}

#[tokio::test]
#[ignore = "asserts times and needs the machine to itself: run `make promised`"]
async fn work_resumes_within_ten_seconds_after_postgresql_was_wiped() {
    Box::pin(server_wipes::postgresql_wiped(Machine::Dedicated)).await;
}

#[tokio::test]
#[ignore = "asserts times and needs the machine to itself: run `make promised`"]
async fn work_resumes_within_ten_seconds_after_the_network_to_postgresql_was_cut_slow_and_silent() {
    networks::survives(Line::SchedulerToDatabase, Machine::Dedicated).await;
    networks::survives(Line::WorkerToDatabase, Machine::Dedicated).await;
}

#[tokio::test]
#[ignore = "asserts times and needs the machine to itself: run `make promised`"]
async fn an_attempt_is_retried_within_its_lease_and_five_seconds_after_a_worker_died_with_its_guard()
 {
    lease::is_tried_again(Machine::Dedicated).await;
}

#[tokio::test]
#[ignore = "asserts times and needs the machine to itself: run `make promised`"]
async fn an_attempt_is_retried_within_its_lease_and_five_seconds_though_postgresql_s_clock_was_set()
{
    Box::pin(clock::is_tried_again(Machine::Dedicated)).await;
}
