//! Goal: the soak runs as documented, and its checks can fail. Method: a few seconds of it with the
//! real programs, and its own samples once unchanged and once with an added growth. Only `make
//! soak` can show whether anything grows over hours.

use std::time::Duration;

use sexton_tests::soak::sample::Sample;
use sexton_tests::soak::{self, Options, Outcome};

async fn a_few_seconds() -> Outcome {
    let servers = sexton_servers::shared().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("soak.jsonl");
    let options = Options {
        length: Duration::from_secs(6),
        every: Duration::from_millis(250),
        keep: Duration::from_secs(1),
        backlog: 40,
        most_jobs: 20,
        log: Some(log.clone()),
    };
    let outcome = soak::run(&servers.database_url, &servers.amqp_url, &options).await.unwrap();
    let lines = std::fs::read_to_string(log).unwrap();
    let logged: Vec<Sample> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert!(logged == outcome.samples, "the log holds other samples than the outcome");
    outcome
}

/// The samples with an added growth.
fn growing(samples: &[Sample], add: impl Fn(&mut Sample, f64)) -> Vec<Sample> {
    let mut samples = samples.to_vec();
    for sample in &mut samples {
        add(sample, sample.at_s);
    }
    samples
}

fn unbounded(samples: &[Sample]) -> Vec<String> {
    let judged = soak::judge(samples, 20.0).into_iter();
    judged.filter(|growth| !growth.is_bounded()).map(|growth| growth.name).collect()
}

#[tokio::test]
async fn a_short_soak_drains_its_load_and_names_what_would_grow() {
    let outcome = a_few_seconds().await;
    assert!(outcome.drained_per_s > 0.0 && outcome.executions >= 20, "{outcome:?}");
    assert!(outcome.removed > 0 && outcome.requeued > 0 && outcome.discarded > 0, "{outcome:?}");
    let actions = outcome.requeued + outcome.discarded + outcome.cancelled;
    assert_eq!(outcome.audited, actions, "{outcome:?}");
    let last = outcome.samples.last().unwrap();
    assert_eq!(last.processes.len(), 4);
    for table in ["jobs", "executions", "attempts", "operator_actions"] {
        assert!(last.tables.contains_key(table), "{table} was not looked at: {last:?}");
    }
    assert_eq!(last.queues.keys().collect::<Vec<_>>(), ["delay", "failed", "main"]);

    let leaking = growing(&outcome.samples, |sample, at_s| {
        let worker = sample.processes.get_mut("worker-2").unwrap();
        worker.rss_kib += (at_s * 100_000.0) as u64;
    });
    assert!(unbounded(&leaking).contains(&"worker-2: RSS, KiB".to_owned()));
    let filling = growing(&outcome.samples, |sample, at_s| {
        *sample.queues.get_mut("main").unwrap() += (at_s * 1_000.0) as u64;
    });
    assert!(unbounded(&filling).contains(&"main: queue, messages".to_owned()));
}
