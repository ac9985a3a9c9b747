//! Makes a failing list of operations short: leaves out whatever is not needed, then makes what is
//! left simple.

use super::op::{BulkMode, BulkTarget, Cut, Op};

/// The most runs that are spent on it.
const MAX_SHRINK_RUNS: usize = 3_000;

/// The shortest list that `fails` says still fails, as far as was looked.
pub(super) async fn shrink(ops: Vec<Op>, mut fails: impl AsyncFnMut(&[Op]) -> bool) -> Vec<Op> {
    let mut runs = 0;
    let mut ops = ops;
    loop {
        let before = ops.clone();
        leave_out(&mut ops, &mut runs, &mut fails).await;
        simplify(&mut ops, &mut runs, &mut fails).await;
        if ops == before || runs >= MAX_SHRINK_RUNS {
            return ops;
        }
    }
}

/// Pieces of half the list, then of a quarter, and at last one by one.
async fn leave_out(
    ops: &mut Vec<Op>,
    runs: &mut usize,
    fails: &mut impl AsyncFnMut(&[Op]) -> bool,
) {
    let mut piece = ops.len().div_ceil(2);
    while piece > 0 && *runs < MAX_SHRINK_RUNS {
        let mut from = 0;
        while from < ops.len() {
            let shorter: Vec<Op> =
                ops[..from].iter().chain(ops.iter().skip(from + piece)).copied().collect();
            *runs += 1;
            if fails(&shorter).await {
                *ops = shorter;
            } else {
                from += piece;
            }
        }
        piece /= 2;
    }
}

async fn simplify(ops: &mut [Op], runs: &mut usize, fails: &mut impl AsyncFnMut(&[Op]) -> bool) {
    for index in 0..ops.len() {
        for simple in simpler(ops[index]) {
            let was = std::mem::replace(&mut ops[index], simple);
            *runs += 1;
            if was != simple && fails(ops).await {
                break;
            }
            ops[index] = was;
        }
    }
}

/// The same with the first of what is there, and without a cut; or with a shorter wait.
fn simpler(op: Op) -> Vec<Op> {
    let cut = Cut::No;
    let waits = [1_000, 10_000, 25_000, 60_000, 310_000, 3_700_000];
    match op {
        Op::Wait { ms } => {
            waits.into_iter().filter(|shorter| *shorter < ms).map(|ms| Op::Wait { ms }).collect()
        }
        Op::Plan { .. } => vec![Op::Plan { cut }],
        Op::Admit { .. } => vec![Op::Admit { cut }],
        Op::Overlap { policy, .. } => vec![Op::Overlap { job: 0, policy }],
        Op::SetBack { .. } => vec![Op::SetBack { job: 0, firings: 0 }],
        Op::Relay { .. } => vec![Op::Relay { limit: 100, cut }],
        Op::Publish { ticket, .. } => {
            vec![Op::Publish { ticket: 0, cut }, Op::Publish { ticket, cut }]
        }
        Op::Mark { .. } => vec![Op::Mark { cut }],
        Op::EndLost { .. } => vec![Op::EndLost { cut }],
        Op::Reconcile { wrong, .. } => {
            vec![Op::Reconcile { wrong: false, cut }, Op::Reconcile { wrong, cut }]
        }
        Op::Sweep { .. } => vec![Op::Sweep { cut }],
        Op::Deliver { message, .. } => {
            vec![Op::Deliver { slot: 0, message: 0 }, Op::Deliver { slot: 0, message }]
        }
        Op::Ask { worker, .. } => vec![Op::Ask { worker: 0, cut }, Op::Ask { worker, cut }],
        Op::Renew { worker, .. } => vec![Op::Renew { worker: 0, cut }, Op::Renew { worker, cut }],
        Op::Write { worker, .. } => vec![Op::Write { worker: 0, cut }, Op::Write { worker, cut }],
        Op::End { end, .. } => vec![Op::End { slot: 0, end }],
        Op::Settle { worker, .. } => {
            vec![Op::Settle { worker: 0, cut }, Op::Settle { worker, cut }]
        }
        Op::Answer { reply, .. } => vec![Op::Answer { slot: 0, reply }],
        Op::Prepare { bulk, .. } => {
            vec![Op::Prepare { bulk: 0, cut }, Op::Prepare { bulk, cut }]
        }
        Op::Question { bulk, .. } => {
            vec![Op::Question { bulk: 0, cut }, Op::Question { bulk, cut }]
        }
        Op::Carry { bulk, .. } => vec![Op::Carry { bulk: 0, cut }, Op::Carry { bulk, cut }],
        Op::StopBulk { .. } => vec![Op::StopBulk { bulk: 0 }],
        Op::ResumeBulk { .. } => vec![Op::ResumeBulk { bulk: 0 }],
        Op::Say { reply, .. } => vec![Op::Say { bulk: 0, item: 0, reply }],
        Op::Edit { requeue, .. } => vec![Op::Edit { row: 0, requeue }],
        Op::Bulk { action, target, mode } => vec![
            Op::Bulk { action, target: BulkTarget::All, mode: BulkMode::Plain },
            Op::Bulk { action, target: BulkTarget::All, mode },
            Op::Bulk { action, target, mode: BulkMode::Plain },
        ],
        Op::Send { slot, .. } => vec![Op::Send { slot: 0, cut }, Op::Send { slot, cut }],
        Op::MarkSent { worker, .. } => {
            vec![Op::MarkSent { worker: 0, cut }, Op::MarkSent { worker, cut }]
        }
        Op::Acknowledge { .. } => vec![Op::Acknowledge { slot: 0 }],
        Op::LetGo { .. } => vec![Op::LetGo { slot: 0 }],
        Op::GiveBack { .. } => vec![Op::GiveBack { slot: 0 }],
        Op::Disconnect { .. } => vec![Op::Disconnect { worker: 0 }],
        Op::WorkerDies { .. } => vec![Op::WorkerDies { worker: 0 }],
        Op::AcquireInstanceLock { .. } => vec![Op::AcquireInstanceLock { worker: 0 }],
        Op::Copy { queue, .. } => vec![Op::Copy { queue, message: 0 }],
        Op::Lose { queue, .. } => vec![Op::Lose { queue, message: 0 }],
        Op::Early { .. } => vec![Op::Early { message: 0 }],
        Op::Park { .. } => vec![Op::Park { message: 0 }],
        Op::Strip { queue, .. } => vec![Op::Strip { queue, message: 0 }],
        Op::Trigger { key, .. } => vec![Op::Trigger { key: 0, cut }, Op::Trigger { key, cut }],
        Op::Backfill { job, firings, .. } => {
            vec![Op::Backfill { job, firings: 0, cut }, Op::Backfill { job, firings, cut }]
        }
        Op::Foreign { .. } => vec![Op::Foreign { key: 0 }],
        Op::Requeue { stale, .. } => vec![Op::Requeue { row: 0, stale }],
        Op::Discard { .. } => vec![Op::Discard { row: 0 }],
        Op::Restore { .. } => vec![Op::Restore { row: 0 }],
        Op::Cancel { .. } => vec![Op::Cancel { row: 0 }],
        Op::MoveBack { .. } => vec![Op::MoveBack { message: 0 }],
        Op::CopyBack { .. } => vec![Op::CopyBack { message: 0 }],
        Op::MoveAway { .. } => vec![Op::MoveAway { message: 0 }],
        Op::SetClock { ms } => vec![Op::SetClock { ms: ms.min(60_000) }],
        Op::Jump { .. } => vec![Op::Jump { back: false }],
        Op::Release { discard, .. } => {
            vec![Op::Release { discard: false, cut }, Op::Release { discard, cut }]
        }
        Op::SchedulerDies | Op::FindLost | Op::SweepDies | Op::Prune | Op::Wipe => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn shrinking_drops_needless_operations_and_simplifies_the_others() {
        let noise = |n| (0..n).map(|slot| Op::Acknowledge { slot });
        let mut ops: Vec<Op> = noise(40).collect();
        ops.push(Op::Deliver { slot: 7, message: 3 });
        ops.extend(noise(23));
        ops.push(Op::Ask { worker: 5, cut: Cut::After });
        ops.extend(noise(9));
        let fails = async |ops: &[Op]| {
            let deliver = ops.iter().position(|op| matches!(op, Op::Deliver { message: 3, .. }));
            let ask = ops.iter().position(|op| matches!(op, Op::Ask { cut: Cut::After, .. }));
            deliver.zip(ask).is_some_and(|(deliver, ask)| deliver < ask)
        };
        let shortest = shrink(ops, fails).await;
        let necessary =
            [Op::Deliver { slot: 0, message: 3 }, Op::Ask { worker: 5, cut: Cut::After }];
        assert_eq!(shortest, necessary);
    }
}
