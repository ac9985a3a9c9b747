//! A short torture on the servers that all tests share: `make torture` on a small scale.

use std::path::Path;
use std::time::Duration;

use sexton_tests::torture::Timeouts;
use sexton_tests::torture::fault::{Fault, ManualAction, NetworkFault, Program, Server};
use sexton_tests::torture::plan::Amount;
use sexton_tests::torture::progress::{Line, Progress, counts, list_strikes};
use sexton_tests::torture::run::{Ended, Ending, Options, ServerSets, run};
use sexton_tests::torture::test_servers::TestServers;
use sexton_tests::torture::verdict::Verdict;

/// Short kinds of faults that leave the servers alone.
const KINDS: [Fault; 17] = [
    Fault::Point("scheduler.claimed"),
    Fault::Point("scheduler.published"),
    Fault::Point("scheduler.relayed"),
    Fault::Point("worker.received"),
    Fault::Point("worker.opened"),
    Fault::Point("worker.ran"),
    Fault::Point("worker.settled"),
    Fault::Point("worker.adopted"),
    Fault::Network(Program::Worker, Server::RabbitMq, NetworkFault::Cut),
    Fault::Network(Program::Worker, Server::PostgreSql, NetworkFault::BlackHole),
    Fault::Network(Program::Scheduler, Server::PostgreSql, NetworkFault::Cut),
    Fault::Manual(ManualAction::TicketDoubled),
    Fault::Manual(ManualAction::ParkedMovedTwice),
    Fault::Manual(ManualAction::TicketKept),
    Fault::Manual(ManualAction::BulkQuestioned),
    Fault::Point("scheduler.bulk_executed"),
    Fault::Point("console.bulk_created"),
];

const AMOUNT: Amount = Amount { total: 20, each: 1 };

async fn torture(folder: &Path) -> Ended {
    let servers = sexton_servers::shared().await.unwrap();
    let calm = TestServers::shared(&servers.database_url, &servers.amqp_url);
    let options = Options {
        seed: 20_261_120,
        amount: AMOUNT,
        kinds: KINDS.to_vec(),
        first: Vec::new(),
        limit: Duration::from_mins(16),
        folder: folder.to_owned(),
        calm: 3,
        stormy: 0,
        // Other tests use the processors as well: a lease must outlast that.
        timeouts: Timeouts {
            lease: Duration::from_secs(8),
            recovery: Duration::from_mins(4),
            strike: Duration::from_mins(2),
        },
    };
    let sites = ServerSets { calm: calm.into(), stormy: Vec::new() };
    run(options, &sites, Ending::default()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dozens_of_faults_under_load_cause_no_violation_and_a_second_run_has_none_left() {
    let folder = tempfile::tempdir().unwrap();
    let ended = torture(folder.path()).await;
    assert_eq!(ended.verdict, Verdict::Kept);
    assert_eq!(list_strikes(&ended.lines).len(), AMOUNT.total);
    let (counts, _) = counts(&ended.lines);
    assert!(counts.executions >= AMOUNT.total as u64, "{counts:?}");
    assert!(counts.attempts > counts.executions, "nothing was tried again: {counts:?}");

    let again = torture(folder.path()).await;
    assert_eq!(again.verdict, Verdict::Kept);
    assert_eq!(list_strikes(&again.lines).len(), AMOUNT.total);

    // A violation stays recorded, whatever is struck afterwards.
    let (progress, _) = Progress::open(folder.path()).unwrap();
    let (kind, what) = ("lost".to_owned(), "lost: one".to_owned());
    progress.append(&Line::Broken { kind, what: what.clone() }).unwrap();
    let red = torture(folder.path()).await;
    assert_eq!((red.verdict.status(), red.verdict), (3, Verdict::Broken(vec![what])));
}
