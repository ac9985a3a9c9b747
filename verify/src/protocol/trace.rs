//! Histories in words: one line for each action.
//!
//! The model knows only whether a number is the row's own. A history can count: the row's number begins with 1, and
//! grows whenever an attempt ends without a final state.

use sexton_model::open::OpenDecision;
use sexton_model::state::State;

use crate::explorer::History;
use crate::protocol::Protocol;
use crate::protocol::action::{
    Action, Clock, Fault, OperatorAction, SchedulerStep, SweepStep, WorkerStep,
};
use crate::protocol::world::{
    HeldMessage, Number, Parked, Scheduler, Step, Sweep, SweepOutcome, World,
};

/// One line for each action.
pub(crate) fn render(protocol: &Protocol, history: &History<Protocol>) -> Vec<String> {
    let mut before = history.start;
    let mut number = 1;
    let mut lines = Vec::with_capacity(history.steps.len());
    for (action, after) in &history.steps {
        lines.push(Line { protocol, before, after: *after, number }.of(*action));
        let ended = before.row.state == State::Running
            && matches!(after.row.state, State::Retrying | State::Failed);
        number += u32::from(ended);
        before = *after;
    }
    lines
}

struct Line<'a> {
    protocol: &'a Protocol,
    before: World,
    after: World,
    /// The row's attempt number before the action.
    number: u32,
}

impl Line<'_> {
    fn of(&self, action: Action) -> String {
        match action {
            Action::Scheduler(who, step) => self.scheduler(who, step),
            Action::Deliver(who, number) => {
                format!("the broker hands {} to worker {}", self.ticket(number), worker(who))
            }
            Action::Worker(who, step) => self.worker(who, step),
            Action::Rescue => {
                format!("the rescuer ends attempt {} as lost{}", self.number, self.became())
            }
            Action::AcquireInstanceLock => format!(
                "the dead worker, started again, ends attempt {} as lost{}",
                self.number,
                self.became()
            ),
            Action::Reconcile => {
                "the reconciler finds the ticket lost; the row's ticket is unpublished again".into()
            }
            Action::Sweep(step) => self.sweep(step),
            Action::Clock(clock) => match clock {
                Clock::Due => format!("attempt {} is due", self.number),
                Clock::LongDue => format!("attempt {} has been due for an hour", self.number),
                Clock::HoldOver => "the relay may take the unpublished ticket".into(),
                Clock::LeaseOver => format!("the lease of attempt {} is over", self.number),
                Clock::Stale => "the firing is too old to be begun".into(),
            },
            Action::Release(number) => {
                format!("the delay queue returns {} to the main queue", self.ticket(number))
            }
            Action::Fault(fault) => self.fault(fault),
            Action::Person(operator_action) => self.operator_action(operator_action),
        }
    }

    fn scheduler(&self, who: u8, step: SchedulerStep) -> String {
        let name = format!("scheduler {}", who + 1);
        match step {
            SchedulerStep::Claim if !self.before.row.claimed => {
                format!("{name} claims the firing: a pending row, ticket 1 unpublished")
            }
            SchedulerStep::Claim if self.after.second_row => {
                format!("{name} claims the same firing: a second row")
            }
            SchedulerStep::Claim => format!("{name} finds the firing claimed"),
            SchedulerStep::Take => {
                format!("{name}'s relay takes the unpublished ticket {}", self.number)
            }
            SchedulerStep::Publish => match self.before.schedulers[usize::from(who)] {
                Scheduler::Holding(unpublished) => format!(
                    "{name} publishes {} to the {}",
                    self.ticket(unpublished.number),
                    unpublished.to.title()
                ),
                _ => format!("{name} publishes"),
            },
            SchedulerStep::Mark => format!("{name} marks{}", self.marked()),
        }
    }

    fn marked(&self) -> &'static str {
        if self.before.row.unpublished && !self.after.row.unpublished {
            " the row's ticket as published"
        } else {
            " nothing: the row has moved on"
        }
    }

    fn worker(&self, who: u8, step: WorkerStep) -> String {
        let name = format!("worker {}", worker(who));
        let n = self.number;
        let me = self.before.workers[usize::from(who)];
        match step {
            WorkerStep::Adopt if self.after.second_row => {
                format!("{name} claims the foreign task: a second row")
            }
            WorkerStep::Adopt => {
                format!("{name} claims the foreign task: a row, pending, at attempt 1")
            }
            WorkerStep::Ask => self.describe_open(who),
            WorkerStep::Start if self.after.workers[usize::from(who)].step == Step::Acking => {
                format!("{name} may not renew it, and does not start the task")
            }
            WorkerStep::Start => {
                format!("{name} renews the lease and starts the task of attempt {n}")
            }
            WorkerStep::GiveUp => {
                format!("{name} waits no longer for the answer and gives the ticket back")
            }
            WorkerStep::End(ending) => {
                format!("the task on worker {} {}", worker(who), ending.sentence_end())
            }
            WorkerStep::FenceItself => {
                format!("{name} kills its task by its own clock, before the lease is over")
            }
            WorkerStep::Reconnect => format!("{name} reaches the database again"),
            WorkerStep::RenewLate => format!("{name} renews the lease"),
            WorkerStep::HearOfFence => format!("{name}'s renewal is refused; it kills its task"),
            WorkerStep::AckEarly => {
                format!("{name} acknowledges the ticket while the task runs on")
            }
            WorkerStep::Settle if self.before.row.state == self.after.row.state => {
                format!("{name}'s settlement is refused: the attempt was ended by somebody else")
            }
            WorkerStep::Settle => format!("{name} records the end of attempt {n}{}", self.became()),
            WorkerStep::Publish => match me.step {
                Step::Settled(unpublished) => format!(
                    "{name} publishes {} to the {}",
                    self.ticket(unpublished.number),
                    unpublished.to.title()
                ),
                _ => format!("{name} publishes"),
            },
            WorkerStep::Mark => format!("{name} marks{}", self.marked()),
            WorkerStep::MoveOn => match me.step {
                Step::Moving(to) => {
                    format!("{name} copies {} to the {}", self.ticket(me.number), to.title())
                }
                _ => format!("{name} copies its ticket"),
            },
            WorkerStep::Ack => format!("{name} acknowledges {}", self.ticket(me.number)),
        }
    }

    fn describe_open(&self, who: u8) -> String {
        let name = format!("worker {}", worker(who));
        let index = usize::from(who);
        let ticket = self.ticket(self.before.workers[index].number);
        if self.skips() {
            return format!("{name} asks to open {ticket}, which comes too late: skipped");
        }
        let opens = self.after.workers[index].step == Step::Running { cut: false };
        if opens && self.before.row.state != State::Running {
            return format!(
                "{name} opens attempt {} with {ticket} and starts the task",
                self.number
            );
        }
        let offered = self.protocol.bounds.offers[index];
        let answer = self.before.answer(index, offered, self.protocol.fences);
        let reply = match answer {
            OpenDecision::Run if opens => "it is its own, so it starts the task".into(),
            OpenDecision::Run => "it opened the attempt before".into(),
            OpenDecision::AlreadyOpened => "the ticket is spent".into(),
            OpenDecision::Stale => "the ticket is stale".into(),
            OpenDecision::Wait(_) if offered => "wait, it is early".into(),
            OpenDecision::Wait(_) => "wait, the worker lacks the task type".into(),
            OpenDecision::Unoffered => {
                format!("nobody had the task type for an hour{}", self.became())
            }
            OpenDecision::Repark => "park it again, the worker lacks the task type".into(),
            other => format!("{other:?}"),
        };
        if opens && answer != OpenDecision::Run {
            return format!(
                "{name} opens attempt {} again with {ticket} and starts the task",
                self.number
            );
        }
        format!("{name} asks to open {ticket}; the answer: {reply}")
    }

    fn sweep(&self, step: SweepStep) -> String {
        let hand = match self.before.sweep {
            Sweep::Pass { hand, .. } => hand,
            Sweep::Idle => HeldMessage::Empty,
        };
        match step {
            SweepStep::Begin => {
                format!("the sweep begins: {} in the failed queue", self.before.failed.len())
            }
            SweepStep::Get(kind) => format!("the sweep takes {}", self.parked(kind)),
            SweepStep::Judge => match self.after.sweep {
                Sweep::Pass { hand: HeldMessage::Judged(_, fate), .. } => format!(
                    "the sweep reads the row, {}, and judges: {}",
                    self.before.row.state.as_str(),
                    match fate {
                        SweepOutcome::Keep => "keep",
                        SweepOutcome::Remove => "remove",
                        SweepOutcome::Fail => "fail the execution",
                    }
                ),
                _ => "the sweep judges".into(),
            },
            SweepStep::Fail if self.before.row.state == self.after.row.state => {
                "the sweep fails nothing: the row has moved on".into()
            }
            SweepStep::Fail => format!("the sweep fails the execution{}", self.became()),
            SweepStep::Copy => "the sweep puts a clean copy at the tail".into(),
            SweepStep::Ack if matches!(hand, HeldMessage::Copied(_)) => {
                "the sweep acknowledges the original".into()
            }
            SweepStep::Ack => "the sweep removes the message".into(),
            SweepStep::Finish if self.after.row.unpublished && !self.before.row.unpublished => {
                "the sweep ends and has not seen the message; the row's ticket is unpublished again"
                    .into()
            }
            SweepStep::Finish => "the sweep ends".into(),
        }
    }

    fn fault(&self, fault: Fault) -> String {
        let name = |who: u8| format!("worker {}", worker(who));
        match fault {
            Fault::WorkerDies(who) => format!(
                "{} is killed{}{}",
                name(who),
                if matches!(self.before.workers[usize::from(who)].step, Step::Running { .. }) {
                    ", its task with it"
                } else {
                    ""
                },
                self.returns(who)
            ),
            Fault::SchedulerDies(who) => format!("scheduler {} is killed", who + 1),
            Fault::SweepDies => "the sweeping scheduler is killed; its message returns".into(),
            Fault::ConnectionLost(who) => {
                format!("{} loses its connection to the broker{}", name(who), self.returns(who))
            }
            Fault::OpenUnanswered(who) if self.skips() => {
                format!("{} skips the execution, but the answer is lost", name(who))
            }
            Fault::OpenUnanswered(who) => {
                format!("{} opens attempt {}, but the answer is lost", name(who), self.number)
            }
            Fault::StartUnanswered(who) => {
                format!("{} gets no answer to its renewal and does not start the task", name(who))
            }
            Fault::SettleUnanswered(who) => format!(
                "{} records the end of attempt {}{}; the answer is lost",
                name(who),
                self.number,
                self.became()
            ),
            Fault::ConfirmLost(who) => {
                format!("{} publishes a copy; the confirm is lost", name(who))
            }
            Fault::PublishFails(who) => format!("{} cannot publish its next ticket", name(who)),
            Fault::CutOff(who) => {
                format!("{} is cut off from the database, its task runs", name(who))
            }
            Fault::Stop(who) => format!("{} receives a signal to stop", name(who)),
            Fault::ReleasedEarly => {
                format!(
                    "the delay queue returns ticket {} to the main queue too early",
                    self.number
                )
            }
            Fault::ParkedByBroker(number) => {
                format!(
                    "the broker moves {} to the failed queue: delivery limit",
                    self.ticket(number)
                )
            }
            Fault::Doubled(number) => {
                format!("{} is doubled in the main queue", self.ticket(number))
            }
            Fault::Wiped => "the broker loses its data".into(),
            Fault::ClockAhead => format!(
                "the database's clock is set ahead: by it, the lease of attempt {} is over",
                self.number
            ),
            Fault::Refused(who) => {
                let name = format!("worker {}", worker(who));
                if self.after.row.unpublished && !self.before.row.unpublished {
                    format!(
                        "the queue refuses the ticket; {name} hands it back to the row, which marks it unpublished"
                    )
                } else {
                    format!("the queue refuses the ticket; {name} hands it back to the row")
                }
            }
            Fault::WrongGuess => {
                "the reconciler takes the ticket for lost; the row's ticket is unpublished again"
                    .into()
            }
        }
    }

    fn returns(&self, who: u8) -> String {
        let me = self.before.workers[usize::from(who)];
        if me.delivery {
            format!("; {} returns to the main queue", self.ticket(me.number))
        } else {
            String::new()
        }
    }

    fn operator_action(&self, operator_action: OperatorAction) -> String {
        match operator_action {
            OperatorAction::Requeue => "an operator requeues the execution: pending".into(),
            OperatorAction::Discard => "an operator discards the execution".into(),
            OperatorAction::Restore => "an operator restores the execution: failed".into(),
            OperatorAction::Cancel if self.before.row.state == State::Running => {
                "an operator asks to cancel the execution".into()
            }
            OperatorAction::Cancel => "an operator cancels the execution".into(),
            OperatorAction::MoveBack(kind) => {
                format!("somebody moves {} back to the main queue", self.parked(kind))
            }
            OperatorAction::CopyBack(kind) => {
                format!("somebody copies {} to the main queue", self.parked(kind))
            }
            OperatorAction::MoveAway(number) => {
                format!("somebody moves {} to the failed queue", self.ticket(number))
            }
        }
    }

    fn skips(&self) -> bool {
        self.after.row.state == State::Skipped && self.before.row.state != State::Skipped
    }

    fn became(&self) -> String {
        let row = &self.after.row;
        let next = self.number + u32::from(self.before.row.state == State::Running);
        match row.state {
            State::Retrying => {
                format!(": retrying, attempt {next}{}", if row.due { "" } else { ", not due yet" })
            }
            State::Failed => format!(": failed, attempt {next}"),
            state => format!(": {}", state.as_str()),
        }
    }

    fn ticket(&self, number: Number) -> String {
        match (number, self.number) {
            (Number::Current, n) => format!("ticket {n}"),
            (Number::Overtaken, 2) => "ticket 1".into(),
            (Number::Overtaken, _) => "an older ticket".into(),
        }
    }

    fn parked(&self, kind: Parked) -> String {
        let note = if kind == Parked::Noted { " with the broker's note" } else { "" };
        format!("parked {}{note}", self.ticket(kind.number()))
    }
}

const fn worker(who: u8) -> char {
    if who == 0 { 'A' } else { 'B' }
}
