//! The protocol's real statements in any order, with faults in between: see
//! [`sexton_tests::simulation`].

mod disabled_parts;
mod regressions;

use sexton_tests::simulation::{Campaign, Parts, SimulationRunner};

/// Cases of a run of all tests.
const CASES: u64 = 100;

/// A number from the environment.
fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text:?}")))
}

#[tokio::test]
async fn no_list_of_operations_breaks_an_invariant() {
    let campaign = Campaign {
        seed: setting("SIMULATION_SEED").unwrap_or(1),
        cases: setting("SIMULATION_CASES").unwrap_or(CASES),
        parts: Parts::ALL,
    };
    let mut runner = SimulationRunner::create().await.unwrap();
    match runner.campaign(campaign).await.unwrap() {
        Ok(report) => {
            println!(
                "{} cases from seed {}: {} operations in {:.1} s, {:.0} a second",
                report.cases,
                campaign.seed,
                report.operations,
                report.seconds,
                report.operations as f64 / report.seconds
            );
            // A few cases need not meet everything.
            assert!(campaign.cases < CASES || report.idle.is_empty(), "idle: {:?}", report.idle);
        }
        Err(found) => panic!("{}", found.render()),
    }
}
