//! Heartbeats and the dead man's switch with real programs and a real watcher.

use sexton_peers::http::{Act, Request, Server};
use sexton_tests::platform::Platform;
use sexton_tests::proxy::Proxy;

use super::{FINAL_TIMEOUT, count, until};

/// A job that reports to a server of this test.
fn job(name: &str, server: &Server, fields: &str) -> String {
    let url = format!("http://{}/ping/{name}", server.address);
    let heartbeat = format!("heartbeat = {{ url = \"{url}\", allow_private = true }}");
    format!("[[job]]\nname = \"a.{name}\"\ntask = \"{name}\"\n{heartbeat}\n{fields}\n")
}

/// The path of a request, and its run.
fn path_and_run(request: &Request) -> (String, String) {
    let target = request.head.split(' ').nth(1).unwrap();
    let (path, query) = target.split_once('?').unwrap();
    (path.to_owned(), query.strip_prefix("rid=").unwrap().to_owned())
}

#[tokio::test]
async fn each_attempt_reports_its_start_and_the_execution_its_end_in_this_order() {
    let mut server = Server::answering("200 OK", "", "").await;
    let mut platform = Platform::new().await.unwrap();
    let repaired = platform.folder().join("repaired");
    let script = format!("test -e {} || {{ echo broken >&2; exit 7; }}", repaired.display());
    platform.catalogue(&format!("[tasks.flaky]\ncommand = [\"sh\", \"-c\", \"{script}\"]\n"));
    let retry = "retry = { max_retries = 1, delay = \"0s\" }";
    platform.apply(&job("flaky", &server, retry)).await.unwrap();
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let _worker = platform.start_worker("w1", &[]).unwrap();
    platform.sexton(&["jobs", "trigger", "a.flaky"]).await;
    let mut requests = Vec::new();
    for _ in 0..3 {
        requests.push(server.request().await);
    }
    // A person repairs the cause, and the same execution runs again.
    std::fs::write(&repaired, "").unwrap();
    let (_, run) = path_and_run(&requests[0]);
    let requeued = platform.sexton(&["failed", "requeue", &run, "--reason", "repaired"]).await;
    assert!(requeued.status.success(), "{requeued}");
    for _ in 0..2 {
        requests.push(server.request().await);
    }
    let found: Vec<(String, String)> = requests.iter().map(path_and_run).collect();
    let wanted = [
        "/ping/flaky/start",
        "/ping/flaky/start",
        "/ping/flaky/fail",
        "/ping/flaky/start",
        "/ping/flaky",
    ];
    let wanted: Vec<_> = wanted.map(|path| (path.to_owned(), run.clone())).into();
    assert_eq!(found, wanted);
    assert!(requests.iter().all(|request| request.head.starts_with("POST ")), "{requests:?}");
    let failure = &requests[2].body;
    for part in ["job: a.flaky\n", "attempt: 2\n", "outcome: failed\n", "error: exit_7: ", "broken"]
    {
        assert!(failure.contains(part), "{part} is missing in: {failure}");
    }
    until(&platform, "sexton.heartbeats WHERE state = 'sent'", 5).await;
    let shown = platform.sexton(&["jobs", "show", "a.flaky"]).await;
    assert!(shown.stdout.contains("on start, success, failure"), "{shown}");
    assert!(shown.stdout.contains("success of "), "{shown}");
}

#[tokio::test]
async fn a_watcher_that_hangs_delays_neither_its_job_nor_the_heartbeats_of_others() {
    let mut hangs = Server::start(vec![Act::Hang]).await;
    let mut works = Server::answering("200 OK", "", "").await;
    let mut platform = Platform::new().await.unwrap();
    platform
        .catalogue("[tasks.hangs]\ncommand = [\"true\"]\n[tasks.works]\ncommand = [\"true\"]\n");
    let jobs = job("hangs", &hangs, "") + &job("works", &works, "");
    platform.apply(&jobs).await.unwrap();
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let _worker = platform.start_worker("w1", &[]).unwrap();
    platform.sexton(&["jobs", "trigger", "a.hangs"]).await;
    hangs.request().await;
    // Its first heartbeat is under way and gets no answer.
    for _ in 0..5 {
        platform.sexton(&["jobs", "trigger", "a.hangs"]).await;
    }
    platform.sexton(&["jobs", "trigger", "a.works"]).await;
    assert_eq!(path_and_run(&works.request().await).0, "/ping/works/start");
    assert_eq!(path_and_run(&works.request().await).0, "/ping/works");
    until(&platform, "sexton.executions WHERE state = 'succeeded'", 7).await;
    let waiting = "sexton.heartbeats h JOIN sexton.jobs j ON j.id = h.job_id WHERE j.name = 'a.hangs' AND h.state = 'pending'";
    assert_eq!(count(&platform, waiting).await, 12, "a start and a success of each wait");
}

#[tokio::test]
async fn a_job_without_a_heartbeat_writes_none() {
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue("[tasks.work]\ncommand = [\"true\"]\n");
    platform.apply("[[job]]\nname = \"a.b\"\ntask = \"work\"\n").await.unwrap();
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let _worker = platform.start_worker("w1", &[]).unwrap();
    platform.sexton(&["jobs", "trigger", "a.b"]).await;
    until(&platform, "sexton.executions WHERE state = 'succeeded'", 1).await;
    assert_eq!(count(&platform, "sexton.heartbeats").await, 0);
    assert_eq!(count(&platform, "sexton.executions WHERE heartbeat").await, 0);
}

/// The environment of a scheduler that pings this server each second.
fn pings(url: &str) -> [(&str, &str); 2] {
    [("DEADMAN_URL", url), ("DEADMAN_PERIOD_MS", "1000")]
}

#[tokio::test]
async fn the_dead_mans_switch_pings_while_rabbitmq_is_there_and_only_then() {
    let mut server = Server::answering("200 OK", "", "").await;
    let url = format!("http://{}/dead-man", server.address);
    let platform = Platform::new().await.unwrap();
    let proxy = Proxy::before(platform.amqp_url()).await.unwrap();
    let amqp_url = proxy.url(platform.amqp_url());
    let env = [&pings(&url)[..], &[("AMQP_URL", amqp_url.as_str())]].concat();
    let _scheduler = platform.start_scheduler("s1", &env).unwrap();
    for _ in 0..2 {
        assert!(server.request().await.head.starts_with("POST /dead-man "));
    }
    proxy.cut();
    let problem = async || {
        let query = "SELECT problem FROM sexton.dead_man WHERE problem LIKE '%RabbitMQ%'";
        let found: Option<String> =
            sqlx::query_scalar(query).fetch_optional(platform.store().pool()).await.unwrap();
        found
    };
    platform.eventually("the switch notices it", FINAL_TIMEOUT, problem).await;
    while !server.saw_nothing_more() {}
    // It judges again and again meanwhile, and stays silent.
    for _ in 0..3 {
        let last: chrono::DateTime<chrono::Utc> =
            sqlx::query_scalar("SELECT tried_at FROM sexton.dead_man")
                .fetch_one(platform.store().pool())
                .await
                .unwrap();
        let judged = async || {
            let later = "SELECT count(*) FROM sexton.dead_man WHERE tried_at > $1";
            let found: i64 = sqlx::query_scalar(later)
                .bind(last)
                .fetch_one(platform.store().pool())
                .await
                .unwrap();
            (found > 0).then_some(())
        };
        platform.eventually("it judges again", FINAL_TIMEOUT, judged).await;
    }
    assert!(server.saw_nothing_more(), "a ping without RabbitMQ");
    proxy.pass();
    server.request().await;
    let well = async || problem().await.is_none().then_some(());
    platform.eventually("the row says so", FINAL_TIMEOUT, well).await;
}

#[tokio::test]
async fn of_two_schedulers_one_pings_in_each_period_and_the_other_goes_on_after_its_death() {
    let mut server = Server::answering("200 OK", "", "").await;
    let url = format!("http://{}/dead-man", server.address);
    let platform = Platform::new().await.unwrap();
    let mut first = platform.start_scheduler("s1", &pings(&url)).unwrap();
    let mut second = platform.start_scheduler("s2", &pings(&url)).unwrap();
    first.ready().await;
    second.ready().await;
    server.request().await;
    let began = std::time::Instant::now();
    for _ in 0..5 {
        server.request().await;
    }
    // Nine tenths of a period lie between two pings at least; two schedulers that ping on their own would need half the time.
    let time = began.elapsed();
    assert!(time >= std::time::Duration::from_secs(4), "five pings in {time:?}");
    first.kill();
    for _ in 0..2 {
        server.request().await;
    }
}
