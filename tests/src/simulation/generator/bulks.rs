//! What is drawn of bulks.

use super::super::op::{BulkAction, BulkMode, BulkTarget, Cut, End, Op, ScriptedAnswer};
use super::Generator;

impl Generator {
    /// What a scheduler does about them.
    pub(super) fn of_bulk(&mut self) -> Op {
        let (bulk, cut) = (self.index(), self.cut());
        self.one_of(&[
            Op::Prepare { bulk, cut },
            Op::Question { bulk, cut },
            Op::Carry { bulk, cut },
            Op::Carry { bulk, cut },
        ])
    }

    /// What a question says.
    pub(super) fn reply(&mut self) -> ScriptedAnswer {
        self.one_of(&[
            ScriptedAnswer::Yes,
            ScriptedAnswer::No,
            ScriptedAnswer::No,
            ScriptedAnswer::Neither,
        ])
    }

    /// What an operator wants of many.
    pub(super) fn bulk(&mut self) -> Op {
        let action = self.one_of(&[
            BulkAction::Requeue,
            BulkAction::Requeue,
            BulkAction::Requeue,
            BulkAction::Requeue,
            BulkAction::Discard,
            BulkAction::Restore,
        ]);
        let target = self.one_of(&[
            BulkTarget::All,
            BulkTarget::All,
            BulkTarget::Group,
            BulkTarget::Named,
            BulkTarget::Before,
        ]);
        Op::Bulk { action, target, mode: self.mode() }
    }

    fn mode(&mut self) -> BulkMode {
        use BulkMode::{Canary, Commanded, Paced, Plain, Verified, VerifiedSlowly};
        self.one_of(&[Plain, Paced, Canary, Verified, Verified, VerifiedSlowly, Commanded])
    }

    /// What an operator does about one that there is, or about what it means.
    pub(super) fn steer(&mut self) -> Op {
        let (bulk, row, item) = (self.index(), self.index(), self.index());
        let reply = self.reply();
        let (stop, resume) = (Op::StopBulk { bulk }, Op::ResumeBulk { bulk });
        let edit = Op::Edit { row, requeue: self.below(4) == 0 };
        let say = Op::Say { bulk, item, reply };
        self.one_of(&[stop, resume, resume, edit, edit, say, say])
    }

    /// Some executions that fail for good, so that there is something to requeue.
    pub(super) fn failures() -> Vec<Op> {
        let cut = Cut::No;
        let triggers = [0, 3, 1].map(|key| Op::Trigger { key, cut });
        [&triggers[..], &relay(), &open(), &fail()].concat()
    }

    /// What usually follows on the other where something failed and somebody wants all of it again.
    pub(super) fn bulk_habit(&mut self) -> Vec<Op> {
        let cut = Cut::No;
        // Mostly the latest one.
        let bulk = self.one_of(&[0, 0, 0, 1]);
        let reply = self.reply();
        let prepare = [Op::Prepare { bulk, cut }; 3];
        let (question, carry) = ([Op::Question { bulk, cut }], [Op::Carry { bulk, cut }]);
        let answer = [Op::Answer { slot: 0, reply }; 2];
        let answered = [&open()[..], &answer, &ended()].concat();
        let mode = self.one_of(&[BulkMode::Verified, BulkMode::Verified, BulkMode::VerifiedSlowly]);
        let requeue =
            |mode| Op::Bulk { action: BulkAction::Requeue, target: BulkTarget::All, mode };
        let ops = [&[requeue(mode)][..], &prepare, &question, &relay()].concat();
        let careful = [&[requeue(BulkMode::Canary)][..], &prepare, &carry, &relay()].concat();
        let commanded = [&[requeue(BulkMode::Commanded)][..], &prepare].concat();
        let say = [0, 1].map(|item| Op::Say { bulk: 0, item, reply });
        let plain = [&[self.bulk()][..], &prepare, &carry].concat();
        let again = [Op::Bulk {
            action: BulkAction::Discard,
            target: BulkTarget::Named,
            mode: BulkMode::Plain,
        }];
        let undo = [Op::Bulk {
            action: BulkAction::Restore,
            target: BulkTarget::Before,
            mode: BulkMode::Plain,
        }];
        let row = self.index();
        let other = self.one_of(&[
            Op::Edit { row, requeue: false },
            Op::Requeue { row, stale: false },
            Op::Discard { row },
            Op::StopBulk { bulk },
        ]);
        let (other, steer) = ([other], [self.steer()]);
        let (failures, open, fail, relay) = (Self::failures(), open(), fail(), relay());
        let wait = [Op::Wait { ms: self.one_of(&[1_000, 10_000]) }];
        let late = [Op::Wait { ms: 610_000 }];
        let gone = [Op::StopBulk { bulk }, Op::Wait { ms: 31 * 86_400_000 }, Op::Prune];
        let resume = [Op::ResumeBulk { bulk: 0 }];
        let pieces: &[&[Op]] = match self.below(12) {
            0 => &[&failures, &plain, &wait, &carry, &relay],
            1 => &[&plain, &other, &wait, &carry, &relay, &open, &fail],
            2 => &[&again, &carry, &undo, &prepare, &carry],
            3 => &[&commanded, &say, &other, &carry, &relay],
            4 | 5 => &[&careful, &open, &fail, &carry, &resume, &carry],
            6..9 => &[&ops, &answered, &question, &other, &carry, &relay, &open, &fail],
            9 => &[&ops, &other, &answered, &question, &carry, &wait, &carry, &steer],
            10 => &[&ops, &late, &question, &resume, &carry],
            _ => &[&ops, &gone],
        };
        pieces.concat()
    }
}

fn relay() -> Vec<Op> {
    let cut = Cut::No;
    let publish = Op::Publish { ticket: 0, cut };
    [&[Op::Relay { limit: 100, cut }][..], &[publish; 4], &[Op::Mark { cut }]].concat()
}

/// Every slot takes what is there.
fn open() -> Vec<Op> {
    let deliver = Op::Deliver { slot: 0, message: 0 };
    let ask = [0, 1].map(|worker| Op::Ask { worker, cut: Cut::No });
    [&[deliver; 4][..], &ask].concat()
}

/// What ended is recorded.
fn ended() -> Vec<Op> {
    let settle = [0, 1].map(|worker| Op::Settle { worker, cut: Cut::No });
    [&settle[..], &[Op::Acknowledge { slot: 0 }; 4]].concat()
}

/// What runs fails for good, and is parked.
fn fail() -> Vec<Op> {
    let cut = Cut::No;
    let end = Op::End { slot: 0, end: End::FailsForGood };
    let settle = [0, 1].map(|worker| Op::Settle { worker, cut });
    let marks = [0, 1].map(|worker| Op::MarkSent { worker, cut });
    let acknowledge = [Op::Acknowledge { slot: 0 }; 4];
    [&[end; 3][..], &settle, &[Op::Send { slot: 0, cut }; 3], &marks, &acknowledge].concat()
}
