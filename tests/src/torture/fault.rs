//! The kinds of faults.

use std::fmt;

use sexton_service::fault::POINTS;

/// The points at which no execution is under way, only unknown messages: a death there cannot run a
/// task twice, so only the tests of single points strike them.
const WITHOUT_EXECUTIONS: [&str; 6] = [
    "worker.set_aside",
    "scheduler.sweep_recorded",
    "scheduler.sweep_restored",
    "console.unknown_discarded",
    "console.unknown_restored",
    "console.fix_recorded",
];

fn is_struck(point: &str) -> bool {
    !WITHOUT_EXECUTIONS.contains(&point)
}

/// One kind of fault.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Fault {
    /// A process kills itself at a fault point.
    Point(&'static str),
    /// A server is killed while a process stops at a fault point.
    At(&'static str, Server),
    /// A process is killed or frozen from outside, while a task runs.
    Process(Program, ProcessFault),
    /// A server is killed, frozen or wiped, while an attempt is open.
    Server(Server, ServerFault),
    /// The traffic between a program and a server is lost, while the program works.
    Network(Program, Server, NetworkFault),
    /// A person does something that no part of the platform does.
    Manual(ManualAction),
}

/// A program of the platform.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Program {
    /// `scheduler`.
    Scheduler,
    /// `worker`.
    Worker,
}

/// What happens to a process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ProcessFault {
    /// SIGKILL.
    Killed,
    /// SIGSTOP for longer than a lease, then SIGCONT.
    Frozen,
}

/// A server.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Server {
    /// The broker.
    RabbitMq,
    /// The database.
    PostgreSql,
}

/// What happens to a server.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ServerFault {
    /// Every process of it receives SIGKILL, and it is started again.
    Killed,
    /// Every process of it is stopped for longer than a lease, then continues.
    Frozen,
    /// It is killed and comes back empty.
    Wiped,
}

/// A fault of the network.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum NetworkFault {
    /// Every connection is reset, and new ones for a second.
    Cut,
    /// Every piece arrives late.
    Late,
    /// Nothing arrives and nothing is closed, for longer than a lease.
    BlackHole,
    /// A request arrives, and its answer does not.
    Answer,
    /// An open arrives, and its answer does not.
    AnswerToOpen,
}

/// An action of a person.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ManualAction {
    /// A second copy of a ticket, while its attempt runs.
    TicketDoubled,
    /// A copy of a ticket that was opened long ago, when the execution has failed.
    TicketKept,
    /// A ticket long before it is due.
    TicketEarly,
    /// A parked message, moved to its main queue twice.
    ParkedMovedTwice,
    /// A parked message, moved to its main queue after a discard.
    DiscardedMoved,
    /// A cancel before the ticket arrives.
    CancelledFirst,
    /// The same trigger twice, with a key.
    TriggeredTwice,
    /// A schedule's cursor, set back.
    CursorSetBack,
    /// The lease of a running attempt, over by the database's clock as if that had been set ahead.
    ClockAhead,
    /// A bulk, and a worker that is killed while it runs one of the questions.
    BulkQuestioned,
    /// A bulk with a rate, and schedulers that are killed between its batches.
    BulkPaced,
    /// A bulk with a rate, an operator who is faster, and a scheduler that is killed.
    BulkRaced,
    /// A bulk whose canary fails again, and that an operator resumes; schedulers are killed meanwhile.
    BulkCanary,
}

impl ManualAction {
    /// Whether it requests a bulk.
    pub const fn is_of_bulk(self) -> bool {
        matches!(self, Self::BulkQuestioned | Self::BulkPaced | Self::BulkRaced | Self::BulkCanary)
    }
}

impl Fault {
    /// All kinds, in the order of the report.
    pub fn all() -> Vec<Self> {
        let points = POINTS.iter().filter(|point| is_struck(point.name));
        let points = points.map(|point| Self::Point(point.name));
        let programs = [Program::Scheduler, Program::Worker];
        let servers = [Server::RabbitMq, Server::PostgreSql];
        let processes = programs.into_iter().flat_map(|program| {
            [ProcessFault::Killed, ProcessFault::Frozen].map(|blow| Self::Process(program, blow))
        });
        let ruins = [
            (Server::RabbitMq, ServerFault::Killed),
            (Server::RabbitMq, ServerFault::Frozen),
            (Server::RabbitMq, ServerFault::Wiped),
            (Server::PostgreSql, ServerFault::Killed),
            (Server::PostgreSql, ServerFault::Frozen),
        ];
        let losses =
            [NetworkFault::Cut, NetworkFault::Late, NetworkFault::BlackHole, NetworkFault::Answer];
        let network = programs.into_iter().flat_map(move |program| {
            servers
                .into_iter()
                .flat_map(move |server| losses.map(|loss| Self::Network(program, server, loss)))
        });
        // A console command ends in a moment, and no successor waits for it.
        let standing = POINTS.iter().filter(|point| is_struck(point.name));
        let standing = standing.filter(|point| !point.name.starts_with("console."));
        let at = standing.flat_map(move |point| servers.map(|server| Self::At(point.name, server)));
        let open = Self::Network(Program::Worker, Server::PostgreSql, NetworkFault::AnswerToOpen);
        points
            .chain(processes)
            .chain(ruins.map(|(server, ruin)| Self::Server(server, ruin)))
            .chain(at)
            .chain(network)
            .chain([open])
            .chain(MANUAL_ACTIONS.map(Self::Manual))
            .collect()
    }

    /// The kind called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|fault| fault.to_string() == name)
    }

    /// Whether it affects every platform that shares a server.
    pub const fn is_of_server(self) -> bool {
        matches!(self, Self::Server(..) | Self::At(..))
    }

    /// How often it must be struck if other kinds must be struck `each` times: a point as often as
    /// any other kind, and again with each server.
    pub const fn least(self, each: usize) -> usize {
        match self {
            Self::At(..) => each.div_ceil(10),
            _ => each,
        }
    }

    /// Its heading in the report.
    pub const fn family(self) -> &'static str {
        match self {
            Self::Point(_) => "fault points",
            Self::At(..) => "servers, while a process stands at a fault point",
            Self::Process(..) => "processes",
            Self::Server(..) => "servers",
            Self::Network(..) => "network",
            Self::Manual(_) => "by hand",
        }
    }
}

const MANUAL_ACTIONS: [ManualAction; 13] = [
    ManualAction::TicketDoubled,
    ManualAction::TicketKept,
    ManualAction::TicketEarly,
    ManualAction::ParkedMovedTwice,
    ManualAction::DiscardedMoved,
    ManualAction::CancelledFirst,
    ManualAction::TriggeredTwice,
    ManualAction::CursorSetBack,
    ManualAction::ClockAhead,
    ManualAction::BulkQuestioned,
    ManualAction::BulkPaced,
    ManualAction::BulkRaced,
    ManualAction::BulkCanary,
];

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Point(name) => f.write_str(name),
            Self::At(name, server) => write!(f, "{server} killed at {name}"),
            Self::Process(program, blow) => write!(f, "{program} {blow}"),
            Self::Server(server, ruin) => write!(f, "{server} {ruin}"),
            Self::Network(program, server, loss) => write!(f, "{program} to {server}: {loss}"),
            Self::Manual(action) => write!(f, "{action}"),
        }
    }
}

/// The kinds' names in the report, which the progress file uses as well.
macro_rules! words {
    ($($kind:ident { $($case:ident: $word:literal),+ $(,)? })+) => {
        $(impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$case => $word),+ })
            }
        })+
    };
}

words! {
    Program { Scheduler: "scheduler", Worker: "worker" }
    ProcessFault { Killed: "killed", Frozen: "frozen" }
    Server { RabbitMq: "RabbitMQ", PostgreSql: "PostgreSQL" }
    ServerFault { Killed: "killed", Frozen: "frozen", Wiped: "wiped" }
    NetworkFault { Cut: "cut", Late: "late", BlackHole: "black hole", Answer: "answer lost", AnswerToOpen: "answer to an open lost" }
    ManualAction {
        TicketDoubled: "ticket doubled while it runs",
        TicketKept: "ticket of an earlier attempt, kept",
        TicketEarly: "ticket before it is due",
        ParkedMovedTwice: "parked message moved twice",
        DiscardedMoved: "parked message moved after a discard",
        CancelledFirst: "cancelled before it is opened",
        TriggeredTwice: "triggered twice with a key",
        CursorSetBack: "schedule set back",
        ClockAhead: "leases over by the database's clock alone",
        BulkQuestioned: "bulk, a worker killed in a question",
        BulkPaced: "bulk at a pace, schedulers killed",
        BulkRaced: "bulk beside an operator, a scheduler killed",
        BulkCanary: "bulk whose canary fails, schedulers killed",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_kind_has_a_name_of_its_own_and_is_found_by_it() {
        let all = Fault::all();
        let names: HashSet<_> = all.iter().map(ToString::to_string).collect();
        assert_eq!(names.len(), all.len());
        for fault in all {
            assert_eq!(Fault::named(&fault.to_string()), Some(fault));
        }
        assert_eq!(Fault::named("worker.opend"), None);
    }

    #[test]
    fn every_fault_point_with_an_active_execution_is_injected() {
        let all = Fault::all();
        for point in POINTS {
            let expected = is_struck(point.name);
            assert_eq!(all.contains(&Fault::Point(point.name)), expected, "{}", point.name);
        }
        for name in WITHOUT_EXECUTIONS {
            assert!(POINTS.iter().any(|point| point.name == name), "{name}");
        }
        assert!(POINTS.len() >= 15, "{}", POINTS.len());
    }
}
