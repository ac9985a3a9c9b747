//! Lists of operations, drawn from a seed.

mod bulks;

use super::op::{Cut, End, Op, Queue};

/// SplitMix64: a few lines, and the same numbers on every machine and in every year.
#[derive(Clone, Debug)]
pub(super) struct Generator {
    state: u64,
    /// Whether there are to be few executions, so that more befalls each.
    has_few_executions: bool,
    /// Whether there are to be bulks above all.
    bulks: bool,
}

impl Generator {
    /// The numbers of a seed.
    pub(super) const fn new(seed: u64) -> Self {
        Self { state: seed, has_few_executions: false, bulks: false }
    }

    /// The next number.
    pub(super) const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `limit`, which is not 0.
    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// An index; operations take it modulo what is there.
    fn index(&mut self) -> u8 {
        self.below(24) as u8
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// One call in eight is cut, at either side.
    fn cut(&mut self) -> Cut {
        match self.below(16) {
            0 => Cut::Before,
            1 => Cut::After,
            _ => Cut::No,
        }
    }

    fn queue(&mut self) -> Queue {
        self.one_of(&[Queue::Main, Queue::Main, Queue::DelayQueues, Queue::Failed])
    }

    /// Mostly less than a lease; sometimes past what retries, patience or retention wait for.
    fn wait(&mut self) -> Op {
        let s = 1_000;
        Op::Wait {
            ms: match self.below(20) {
                0..8 => self.one_of(&[s / 2, s, 2 * s, 3 * s]),
                8..14 => self.one_of(&[5 * s, 6 * s, 10 * s]),
                14..17 => self.one_of(&[25 * s, 60 * s]),
                17..19 => self.one_of(&[310 * s, 610 * s]),
                _ => self.one_of(&[3_700 * s, 3_700 * s, 3_700 * s, 31 * 86_400 * s]),
            },
        }
    }

    fn end(&mut self) -> End {
        use End::{
            Crashes, Fails, FailsForGood, FailsHopelessly, IsInterrupted, Snoozes, Succeeds,
            TimesOut,
        };
        let bad = [Fails, Fails, Fails, TimesOut, TimesOut, Crashes];
        match self.below(2) {
            0 => self.one_of(&[
                Succeeds,
                FailsForGood,
                FailsHopelessly,
                IsInterrupted,
                Snoozes,
                Snoozes,
            ]),
            _ => self.one_of(&bad),
        }
    }

    /// What a scheduler does.
    fn scheduler(&mut self) -> Op {
        match self.below(40) {
            36..40 => self.of_bulk(),
            0..5 => Op::Plan { cut: self.cut() },
            5 => Op::SetBack { job: self.index(), firings: self.index() },
            6..11 => Op::Relay { limit: self.one_of(&[1, 2, 100]), cut: self.cut() },
            11..17 => Op::Publish { ticket: self.index(), cut: self.cut() },
            17..20 => Op::Mark { cut: self.cut() },
            20 => Op::SchedulerDies,
            21..23 => Op::FindLost,
            23..25 => Op::EndLost { cut: self.cut() },
            25 => Op::Reconcile { wrong: self.below(4) == 0, cut: self.cut() },
            26..31 => Op::Sweep { cut: self.cut() },
            31 => {
                let (back, discard, cut) = (self.below(2) == 0, self.below(2) == 0, self.cut());
                let release = Op::Release { discard, cut };
                let dies = Op::SweepDies;
                self.one_of(&[dies, dies, dies, dies, dies, Op::Prune, Op::Jump { back }, release])
            }
            _ => Op::Admit { cut: self.cut() },
        }
    }

    /// What a worker does.
    fn worker(&mut self) -> Op {
        match self.below(51) {
            48..50 => Op::Answer { slot: self.index(), reply: self.reply() },
            0..9 => Op::Deliver { slot: self.index(), message: self.index() },
            9..17 => Op::Ask { worker: self.index(), cut: self.cut() },
            17..21 => Op::Renew { worker: self.index(), cut: self.cut() },
            21..26 => Op::End { slot: self.index(), end: self.end() },
            26..31 => Op::Settle { worker: self.index(), cut: self.cut() },
            31..35 => Op::Send { slot: self.index(), cut: self.cut() },
            35..37 => Op::MarkSent { worker: self.index(), cut: self.cut() },
            37..40 => Op::Acknowledge { slot: self.index() },
            40..42 => Op::LetGo { slot: self.index() },
            42..45 => Op::GiveBack { slot: self.index() },
            45 => Op::Disconnect { worker: self.index() },
            46..48 => Op::Write { worker: self.index(), cut: self.cut() },
            _ => {
                let worker = self.index();
                self.one_of(&[Op::WorkerDies { worker }, Op::AcquireInstanceLock { worker }])
            }
        }
    }

    /// Mostly a policy that lets the job's executions run one at a time.
    fn overlap(&mut self) -> Op {
        Op::Overlap { job: self.below(3) as u8, policy: self.one_of(&[0, 1, 2, 2, 2, 3, 3, 3]) }
    }

    /// What the broker does to messages.
    fn adversary(&mut self) -> Op {
        let (queue, message) = (self.queue(), self.index());
        match self.below(16) {
            0..5 => Op::Copy { queue, message },
            5..7 => Op::Lose { queue, message },
            7 => Op::Wipe,
            8..11 => Op::Early { message },
            11..14 => Op::Park { message },
            _ => Op::Strip { queue, message },
        }
    }

    /// What people and other programs do.
    fn person(&mut self) -> Op {
        let (row, message, key) = (self.index(), self.index(), self.below(3) as u8);
        match self.below(24) {
            20..22 => self.bulk(),
            22..24 => self.steer(),
            19 => self.overlap(),
            17..19 => Op::Backfill { job: self.index(), firings: self.index(), cut: self.cut() },
            0..3 => Op::Trigger { key, cut: self.cut() },
            3..5 => Op::Foreign { key },
            5..8 => Op::Requeue { row, stale: self.below(4) == 0 },
            8 => Op::Discard { row },
            9 => Op::Restore { row },
            10..12 => Op::Cancel { row },
            12..14 => Op::MoveBack { message },
            14 => Op::CopyBack { message },
            _ => Op::MoveAway { message },
        }
    }

    fn op(&mut self) -> Op {
        loop {
            let op = self.any_op();
            let claims = matches!(
                op,
                Op::Plan { .. } | Op::Trigger { .. } | Op::Backfill { .. } | Op::Foreign { .. }
            );
            if !(self.has_few_executions && claims && self.below(8) > 0) {
                return op;
            }
        }
    }

    fn any_op(&mut self) -> Op {
        match self.below(32) {
            0..11 => self.scheduler(),
            11..25 => self.worker(),
            25..28 => self.wait(),
            28..30 => self.adversary(),
            _ => self.person(),
        }
    }

    /// What usually follows one on the other, and the pauses in it that fences are made for: single
    /// operations alone would seldom bring a ticket from its claim to its end.
    fn habit(&mut self) -> Vec<Op> {
        if self.below(if self.bulks { 2 } else { 16 }) == 0 {
            return self.bulk_habit();
        }
        let cut = Cut::No;
        let (slot, message, worker, end) = (self.index(), self.index(), self.index(), self.end());
        let publish = Op::Publish { ticket: 0, cut };
        let relay = [Op::Relay { limit: 100, cut }, publish, publish, publish, Op::Mark { cut }];
        let both = |op: fn(u8) -> Op| [op(0), op(1)];
        let ask = both(|worker| Op::Ask { worker, cut: Cut::No });
        let open = [Op::Deliver { slot, message }, ask[0], ask[1]];
        let settle = both(|worker| Op::Settle { worker, cut: Cut::No });
        let write = both(|worker| Op::Write { worker, cut: Cut::No });
        let long = Op::Wait { ms: 25_000 };
        let look = Op::FindLost;
        let rescue = [look, long, look, Op::EndLost { cut }];
        let step = Op::SetClock { ms: self.one_of(&[30_000, 60_000, 3_600_000]) };
        let end = Op::End { slot, end };
        let late = [Op::End { slot, end: End::TimesOut }];
        let sent = [
            Op::Send { slot, cut },
            both(|worker| Op::MarkSent { worker, cut: Cut::No })[usize::from(worker) % 2],
            Op::Acknowledge { slot },
        ];
        let ask = Op::Ask { worker, cut: Cut::After };
        let again = [Op::Ask { worker, cut }, Op::Renew { worker, cut }];
        let successor =
            [Op::WorkerDies { worker }, look, long, look, Op::AcquireInstanceLock { worker }];
        let (minute, firings) = (Op::Wait { ms: 60_000 }, self.index());
        let given_up = Op::End { slot, end: End::FailsForGood };
        let lose = Op::Lose { queue: Queue::Failed, message };
        let (row, stale) = (self.index(), self.below(3) == 0);
        let strip = Op::Strip { queue: Queue::Main, message };
        let overdue = Op::Reconcile { wrong: false, cut };
        let backfill = Op::Backfill { job: worker, firings, cut };
        let plan = Op::Plan { cut };
        let admit = [Op::Admit { cut }, publish, Op::Mark { cut }];
        let alone = [Op::Overlap { job: 0, policy: self.one_of(&[2, 3]) }];
        let well = Op::End { slot, end: End::Succeeds };
        let back = self.one_of(&[Op::MoveBack { message }, Op::CopyBack { message }]);
        let jump = Op::Jump { back: self.below(2) == 0 };
        let release = Op::Release { discard: self.below(3) == 0, cut: Cut::No };
        let pieces: &[&[Op]] = match self.below(30) {
            0 => &[&relay],
            1 => &[&open],
            2 => &[&open, &write, &[end], &settle, &sent],
            3 => &[&rescue, &relay, &open],
            4 => &[&[Op::Wait { ms: 6_000 }], &both(|worker| Op::Renew { worker, cut: Cut::No })],
            // A retry that comes too early.
            5 => &[&[end], &settle, &sent, &[Op::Early { message }], &open],
            // An answer that comes after the lease.
            6 => &[&open[..1], &[ask], &rescue[..3], &again, &rescue[3..]],
            7 => &[&open[..1], &[ask], &rescue[..2], &again[..1], &rescue[2..], &relay, &open],
            // An end that is recorded after the lease.
            8 => &[&open, &write, &[end], &rescue, &write, &relay, &open, &open, &settle],
            // A rescue that acts on what it found long ago.
            9 => &[&open, &successor, &relay, &open, &open, &rescue[..2], &rescue[3..]],
            10 => &[&open, &[Op::Cancel { row }, end], &settle, &sent],
            11 => &[&open, &[given_up], &settle, &sent, &[Op::Requeue { row, stale }]],
            // A parked message that is lost.
            12 => &[&open, &[given_up], &settle, &sent, &[lose]],
            13 => &[&[end], &settle, &sent, &rescue, &relay, &open, &[given_up], &settle],
            // The same firings planned once more.
            14 => &[&[minute, Op::Plan { cut }, Op::SetBack { job: 0, firings }, Op::Plan { cut }]],
            15 => {
                &[&open, &[given_up], &settle, &sent, &[Op::Discard { row }, Op::Restore { row }]]
            }
            // Tickets that the broker lost.
            16 => &[&relay, &[Op::Wipe, Op::Wait { ms: 610_000 }, overdue], &relay, &open],
            17 => &[&[Op::Wait { ms: 31 * 86_400_000 }, Op::Prune]],
            // A person or a tool puts a parked message back, and drops what it does not know.
            18 => &[&open, &[given_up], &settle, &sent, &[back, strip], &open],
            // Catch-up that is held, and some of it before that is noticed.
            26 => &[&[
                jump,
                minute,
                minute,
                minute,
                Op::Plan { cut },
                minute,
                Op::Plan { cut },
                release,
            ]],
            // A task that takes too long, over and over.
            19 => &[&open, &late, &settle, &sent, &[minute], &open, &late, &settle],
            // The same firings by a backfill and by the schedulers, also after retention.
            20 => &[&[minute, backfill, Op::Plan { cut }, backfill], &relay, &open],
            21 => &[&[Op::Wait { ms: 31 * 86_400_000 }, Op::Prune, backfill, Op::Plan { cut }]],
            // A firing that comes while the one before it runs.
            22 => &[&alone, &[minute, plan], &relay, &open, &[minute, plan, well], &settle, &admit],
            23 => &[&alone, &[minute, plan], &relay, &open, &[minute, plan], &rescue, &admit],
            24 => &[&[Op::Cancel { row }, well], &settle, &admit, &relay, &open, &[well], &settle],
            // Somebody asks for an execution of a job whose executions run one at a time.
            25 => &[&alone, &open, &[given_up], &settle, &[Op::Requeue { row, stale }], &admit],
            // The database's clock is set ahead under a running task.
            27 => &[&open, &[look, step, look, Op::EndLost { cut }], &relay, &open, &again],
            _ => &[&[Op::Sweep { cut }; 7]],
        };
        pieces.concat()
    }

    /// A list of `length` operations.
    pub(super) fn ops(&mut self, length: usize) -> Vec<Op> {
        let mut ops = Vec::with_capacity(length);
        self.bulks = self.below(3) == 0;
        self.has_few_executions = self.bulks || self.below(3) > 0;
        if self.below(2) > 0 {
            ops.push(self.overlap());
        }
        if self.bulks {
            ops.extend(Self::failures());
        } else if self.has_few_executions {
            let cut = Cut::No;
            ops.push(Op::Trigger { key: self.below(3) as u8, cut });
            ops.push(self.one_of(&[Op::Foreign { key: 0 }, Op::Wait { ms: 60_000 }]));
            ops.extend([Op::Plan { cut }, Op::Relay { limit: 100, cut }]);
        }
        while ops.len() < length {
            if self.below(2) > 0 {
                ops.push(self.op());
                continue;
            }
            for op in self.habit() {
                // In the middle of it something else may happen, or nothing any more.
                match self.below(if self.bulks { 96 } else { 32 }) {
                    0 => break,
                    1..4 => ops.push(self.op()),
                    _ => ops.push(op),
                }
            }
        }
        ops.truncate(length);
        ops
    }
}
