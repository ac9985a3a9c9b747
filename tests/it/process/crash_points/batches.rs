//! The scheduler's sweep, struck in the middle of a queue of several batches.

use super::Scene;
use crate::bad_input::wire::Message;

/// More than one batch, of 64, and less than two.
const PARKED: usize = 100;
/// Of which a copy may be left over.
const BATCH: u32 = 64;

/// Each message is there twice, and each time the sweep dies another way: the original of a batch before its copy,
/// both, or neither are in the queue. It never has lost one, and has doubled no more than a batch.
#[tokio::test]
async fn a_sweep_killed_in_a_later_batch_loses_no_message() {
    let scene = Scene::plain().await;
    scene.parked(PARKED).await;
    for point in ["taken:3", "copied:2", "kept:2", "removed:2"] {
        scene.put_copies().await;
        scene.scheduler_dies_after(&format!("scheduler.sweep_{point}")).await;
        let back = async || {
            let found = scene.wire.look(scene.wire.failed()).await;
            let mut ids: Vec<_> = found.iter().filter_map(|it| it.id.clone()).collect();
            let most = 2 * PARKED + BATCH as usize;
            assert!(ids.len() <= most, "{point}: {} messages", ids.len());
            ids.sort();
            ids.dedup();
            (ids.len() == PARKED).then_some(())
        };
        scene.platform.eventually("every message is there", super::FINAL_TIMEOUT, back).await;
        scene.is_swept().await;
        scene.holds("state = 'failed' AND ticket_published_at IS NOT NULL", PARKED as i64).await;
        scene.nothing_is_left_over().await;
    }
}

impl Scene {
    /// Starts a scheduler that dies at so many passes of a point: `name:count`.
    async fn scheduler_dies_after(&self, point: &str) {
        let env = [("FAULT_POINT", point)];
        let name = point.split(':').next().unwrap();
        super::died(&mut self.platform.start_scheduler("s1", &env).unwrap(), name).await;
    }

    /// Puts a second copy of every message into the failed queue, as a tool would.
    async fn put_copies(&self) {
        let found = self.wire.look(self.wire.failed()).await;
        let copies = found.len() as u32;
        let second: Vec<_> = found
            .into_iter()
            .map(|it| {
                let attempt = it.attempt.unwrap();
                Message::new(it.body).id(it.id.unwrap()).header("sexton-attempt", attempt)
            })
            .collect();
        self.wire.send_to(self.wire.failed(), &second).await;
        self.waits(self.wire.failed(), 2 * copies).await;
    }
}
