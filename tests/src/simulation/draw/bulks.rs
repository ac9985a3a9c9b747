//! What is drawn of bulks.

use super::super::op::{Cut, Deed, End, Meant, Op, Says, Terms};
use super::Draw;

impl Draw {
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
    pub(super) fn says(&mut self) -> Says {
        self.one_of(&[Says::Yes, Says::No, Says::No, Says::Neither])
    }

    /// What an operator wants of many.
    pub(super) fn bulk(&mut self) -> Op {
        let deed = self.one_of(&[
            Deed::Requeue,
            Deed::Requeue,
            Deed::Requeue,
            Deed::Requeue,
            Deed::Discard,
            Deed::Restore,
        ]);
        let meant =
            self.one_of(&[Meant::All, Meant::All, Meant::Group, Meant::Named, Meant::Before]);
        Op::Bulk { deed, meant, terms: self.terms() }
    }

    fn terms(&mut self) -> Terms {
        use Terms::{Asked, AskedSlowly, Canary, Commanded, Paced, Plain};
        self.one_of(&[Plain, Paced, Canary, Asked, Asked, AskedSlowly, Commanded])
    }

    /// What an operator does about one that there is, or about what it means.
    pub(super) fn steer(&mut self) -> Op {
        let (bulk, row, item) = (self.index(), self.index(), self.index());
        let says = self.says();
        let (stop, resume) = (Op::StopBulk { bulk }, Op::ResumeBulk { bulk });
        let edit = Op::Edit { row, requeue: self.below(4) == 0 };
        let say = Op::Say { bulk, item, says };
        self.one_of(&[stop, resume, resume, edit, edit, say, say])
    }

    /// Some executions that fail for good, so that there is something to put right.
    pub(super) fn failures() -> Vec<Op> {
        let cut = Cut::No;
        let triggers = [0, 3, 1].map(|key| Op::Trigger { key, cut });
        [&triggers[..], &relay(), &open(), &fail()].concat()
    }

    /// What usually follows on the other where something failed and somebody wants all of it again.
    pub(super) fn bulk_habit(&mut self) -> Vec<Op> {
        let cut = Cut::No;
        // Mostly the one that was asked for last.
        let bulk = self.one_of(&[0, 0, 0, 1]);
        let says = self.says();
        let prepare = [Op::Prepare { bulk, cut }; 3];
        let (question, carry) = ([Op::Question { bulk, cut }], [Op::Carry { bulk, cut }]);
        let answer = [Op::Answer { slot: 0, says }; 2];
        let answered = [&open()[..], &answer, &ended()].concat();
        let terms = self.one_of(&[Terms::Asked, Terms::Asked, Terms::AskedSlowly]);
        let requeue = |terms| Op::Bulk { deed: Deed::Requeue, meant: Meant::All, terms };
        let asked = [&[requeue(terms)][..], &prepare, &question, &relay()].concat();
        let careful = [&[requeue(Terms::Canary)][..], &prepare, &carry, &relay()].concat();
        let commanded = [&[requeue(Terms::Commanded)][..], &prepare].concat();
        let say = [0, 1].map(|item| Op::Say { bulk: 0, item, says });
        let plain = [&[self.bulk()][..], &prepare, &carry].concat();
        let again = [Op::Bulk { deed: Deed::Discard, meant: Meant::Named, terms: Terms::Plain }];
        let undo = [Op::Bulk { deed: Deed::Restore, meant: Meant::Before, terms: Terms::Plain }];
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
            6..9 => &[&asked, &answered, &question, &other, &carry, &relay, &open, &fail],
            9 => &[&asked, &other, &answered, &question, &carry, &wait, &carry, &steer],
            10 => &[&asked, &late, &question, &resume, &carry],
            _ => &[&asked, &gone],
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
