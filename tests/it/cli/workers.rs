//! `sexton workers`: which workers there are, and what they run.

use std::time::Duration;

use chrono::TimeDelta;
use sexton_model::id::{AttemptNumber, ExecutionId, OpenToken, ProcessId};
use sexton_service::clock;
use sexton_store::instances::{InstanceRegistration, heartbeat, mark_stopped};
use sexton_store::open::{Offer, OpenRequest, open};
use uuid::Uuid;

use super::{Console, keys};

fn worker(name: &str, pools: &[(&str, i32)]) -> InstanceRegistration {
    InstanceRegistration {
        id: ProcessId::new(Uuid::new_v4()),
        kind: "worker",
        name: name.to_owned(),
        pid: 4123,
        version: "1.2.3",
        tz_version: None,
        pools: pools.iter().map(|(pool, _)| (*pool).to_owned()).collect(),
        slots: pools.iter().map(|(_, slots)| *slots as u32).sum(),
        pool_slots: Some(pools.iter().map(|(_, slots)| *slots).collect()),
        instance_lock: None,
        db_connections: 4,
    }
}

/// A worker at work, one that is silent, one that stopped, and a scheduler; returns the workers.
async fn workers(console: &Console) -> [InstanceRegistration; 3] {
    let store = console.store();
    let alive = worker("w1", &[("default", 3), ("mail", 1)]);
    let (silent, gone) = (worker("w2", &[("mail", 2)]), worker("w1", &[("default", 1)]));
    let earlier = |minutes| Some(clock::now() - TimeDelta::minutes(minutes));
    heartbeat(store, &gone, true, earlier(60)).await.unwrap();
    assert!(mark_stopped(store, gone.id, earlier(50)).await.unwrap());
    heartbeat(store, &silent, true, earlier(5)).await.unwrap();
    heartbeat(store, &alive, true, None).await.unwrap();
    let scheduler = InstanceRegistration { kind: "scheduler", ..worker("s1", &[]) };
    heartbeat(store, &scheduler, true, None).await.unwrap();
    let offered = [("work".to_owned(), None), ("report".to_owned(), None)];
    sexton_store::offers::publish(store, alive.id, &offered).await.unwrap();
    [alive, silent, gone]
}

async fn start(console: &Console, worker: &InstanceRegistration, id: ExecutionId) {
    let attempt = AttemptNumber::new(1).unwrap();
    let request = OpenRequest { execution_id: id, attempt, token: OpenToken::new(Uuid::new_v4()) };
    let (offers, lease) = ([Offer::new("work")], Duration::from_mins(1));
    let opening = async {
        // The ended command's transaction may still hold the row.
        while open(console.store(), worker.id, "w1:4123", &offers, &[request], lease, None)
            .await
            .unwrap()
            .opened
            .is_empty()
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(super::DEADLINE, opening).await.expect("the ticket should open");
}

#[tokio::test]
async fn workers_are_listed_as_alive_silent_and_gone() {
    let console = Console::with_jobs().await;
    let [alive, silent, gone] = workers(&console).await;
    let id = console.trigger("shop.charge").await;
    start(&console, &alive, id).await;
    let states = async |args: &[&str]| -> Vec<(String, String)> {
        let listed = console.json(&[&["workers", "list"], args].concat()).await;
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let listed = listed.as_array().unwrap().iter();
        listed.map(|one| (text(&one["id"]), text(&one["state"]))).collect()
    };
    let row = |worker: &InstanceRegistration, state: &str| {
        (worker.id.get().to_string(), state.to_owned())
    };
    assert_eq!(states(&[]).await, [row(&alive, "alive"), row(&silent, "silent")]);
    let all = [row(&alive, "alive"), row(&silent, "silent"), row(&gone, "gone")];
    assert_eq!(states(&["--all"]).await, all);
    assert_eq!(states(&["--pool", "default"]).await, [row(&alive, "alive")]);
    assert_eq!(states(&["--pool", "nowhere"]).await, []);
    assert_eq!(
        keys(&console.json(&["workers", "list"]).await[0]),
        [
            "heartbeat_at",
            "id",
            "name",
            "pid",
            "pool_slots",
            "pools",
            "ready",
            "running",
            "silent_ms",
            "slots",
            "started_at",
            "state",
            "stopped_at",
            "version",
        ]
    );
    let table = console.run(&["workers", "list"]).await.expect(0).stdout;
    let first: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
    let id = alive.id.get().to_string();
    assert_eq!(first[..6], [&id[..8], "w1", "alive", "1/4", "default:3,mail:1", "1.2.3"]);
}

#[tokio::test]
async fn a_worker_is_shown_by_name_or_id_with_what_it_runs() {
    let console = Console::with_jobs().await;
    let [alive, silent, gone] = workers(&console).await;
    let running = console.trigger("shop.charge").await;
    start(&console, &alive, running).await;
    let shown = console.json(&["workers", "show", "w1"]).await;
    let id = alive.id.get().to_string();
    assert_eq!((&shown["id"], &shown["state"]), (&id.as_str().into(), &"alive".into()));
    assert_eq!(shown["task_types"], serde_json::json!(["report", "work"]));
    let execution = &shown["executions"][0];
    assert_eq!(execution["id"], running.get().to_string());
    assert_eq!((&execution["job_name"], &execution["attempt"]), (&"shop.charge".into(), &1.into()));
    assert!(execution["started_at"].is_string() && execution["lease_until"].is_string());
    // A name is the newest process; the one that stopped has only its id.
    for (text, id) in [(&id[..8], &alive), (&silent.id.get().to_string(), &silent)] {
        assert_eq!(console.json(&["workers", "show", text]).await["id"], id.id.get().to_string());
    }
    let text = console.run(&["workers", "show", &gone.id.get().to_string()]).await.expect(0).stdout;
    assert!(text.contains("gone") && text.contains("All its slots are free."), "{text}");
    let text = console.run(&["workers", "show", "w1"]).await.expect(0).stdout;
    assert!(text.contains("1 of 4 busy") && text.contains("shop.charge"), "{text}");
    console.run(&["executions", "cancel", &running.to_string()]).await.expect(0);
    let text = console.run(&["workers", "show", "w1"]).await.expect(0).stdout;
    assert!(text.contains("cancel requested"), "{text}");
    let none = console.run(&["workers", "show", "w9"]).await.expect(3);
    assert!(none.stderr.contains("there is no worker \"w9\""), "{}", none.stderr);
}
