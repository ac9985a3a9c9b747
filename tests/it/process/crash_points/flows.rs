//! The scheduler, with a job whose executions begin flows.

use sexton_tests::platform::Platform;

use super::{Scene, count, died};
use crate::bad_input::wire::Wire;
use crate::process::by_hand;
use crate::process::ledger::Ledger;

const MEMBERS: &str = "
[[flow]]
job = \"a.b\"
[[flow.member]]
name = \"then\"
job = \"a.c\"
after = [\"start\"]
";

/// A job with a flow of two members; both tasks write to the ledger.
async fn scene() -> Scene {
    let mut platform = Platform::new().await.unwrap();
    let ledger = Ledger::new(&platform, ":");
    platform.catalogue(&ledger.catalogue());
    let jobs = format!("{}{}{MEMBERS}", by_hand("a.b", "work", ""), by_hand("a.c", "work", ""));
    platform.apply(&jobs).await.unwrap();
    let wire = Wire::connect(&platform).await;
    Scene { platform, ledger, wire }
}

#[tokio::test]
async fn scheduler_flow_made() {
    let scene = scene().await;
    let env = [("FAULT_POINT", "scheduler.flow_made")];
    let mut doomed = scene.platform.start_scheduler("s1", &env).unwrap();
    doomed.ready().await;
    scene.trigger().await;
    died(&mut doomed, "scheduler.flow_made").await;
    let waiting = "sexton.flow_members m JOIN sexton.executions e ON e.id = m.execution_id
                   WHERE m.name = 'then' AND NOT m.decided AND e.state = 'pending'";
    assert_eq!(count(&scene.platform, waiting).await, 1);
    assert_eq!(count(&scene.platform, "sexton.flows WHERE members = 2 AND open = 2").await, 1);
    scene.time_passes().await;
    let done = "state = 'succeeded' AND attempt = 1";
    scene.ends(scene.successors(), "scheduler.flow_made", done, [1, 1]).await;
    assert_eq!(count(&scene.platform, "sexton.flows WHERE ended_at IS NOT NULL").await, 1);
    assert_eq!(count(&scene.platform, "sexton.executions").await, 2);
}
