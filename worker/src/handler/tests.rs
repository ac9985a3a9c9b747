use std::time::Duration;

use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::*;
use crate::executor::{
    Executor, HostInstant, Outcome, StopReason, TaskEnd, TaskRun, TaskSupervisor,
};
use crate::output::Stream;

const HOUR: Duration = Duration::from_hours(1);

fn task(params: Value) -> TaskRun {
    TaskRun {
        execution_id: uuid::Uuid::from_u128(7),
        attempt: 2,
        job: "a.b".to_owned(),
        target: None,
        execution_key: "k".to_owned(),
        scheduled_for: chrono::DateTime::UNIX_EPOCH,
        deadline: chrono::DateTime::UNIX_EPOCH + HOUR,
        idempotency_key: "a.b:k".to_owned(),
        params,
        timeout: HOUR,
        trace: None,
    }
}

fn executor<P, H>(handler: H) -> HandlerExecutor
where
    P: DeserializeOwned + Send + 'static,
    H: Handler<P>,
{
    let clock = Arc::new(sexton_service::clock::now);
    let host = HandlerHost { runtime: Handle::current(), database: None, clock };
    HandlerExecutor::new(Arc::new(host), AnyHandler::new(handler), GRACE_DEFAULT)
}

/// Runs the handler; `stop` has the supervisor meanwhile.
async fn run<P, H>(params: Value, handler: H, stop: impl AsyncFnOnce(&TaskSupervisor)) -> TaskEnd
where
    P: DeserializeOwned + Send + 'static,
    H: Handler<P>,
{
    let (supervisor, control) = TaskSupervisor::new(HostInstant::now() + HOUR * 24);
    let (executor, task) = (executor(handler), task(params));
    let stopping = async {
        stop(&supervisor).await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        end = executor.run(&task, control) => end,
        () = stopping => unreachable!(),
    }
}

async fn unstopped(_: &TaskSupervisor) {}

fn class_and_message(outcome: &Outcome) -> (&str, &str) {
    match outcome {
        Outcome::Failed { class, message } | Outcome::Permanent { class, message } => {
            (class, message)
        }
        other => panic!("{other:?}"),
    }
}

#[derive(Deserialize)]
struct Transfer {
    to: Account,
    cents: u32,
}

#[derive(Deserialize)]
struct Account {
    id: u32,
}

#[derive(Serialize)]
struct Receipt {
    total: u32,
}

async fn transfer(_: Ctx, transfer: Transfer) -> Result<Receipt, HandlerError> {
    Ok(Receipt { total: transfer.to.id + transfer.cents })
}

#[tokio::test]
async fn params_come_typed_and_the_result_is_kept() {
    let end = run(json!({"to": {"id": 40}, "cents": 2, "more": 1}), transfer, unstopped).await;
    assert_eq!((end.outcome, end.result), (Outcome::Succeeded, Some(json!({"total": 42}))));
}

#[tokio::test]
async fn params_that_do_not_fit_are_permanent_and_named_by_their_place() {
    let end = run(json!({"to": {"id": "x"}, "cents": 2}), transfer, unstopped).await;
    assert!(matches!(end.outcome, Outcome::Permanent { .. }));
    let (class, message) = class_and_message(&end.outcome);
    assert_eq!(class, INVALID_PARAMS);
    assert!(message.starts_with("to.id: invalid type: string"), "{message}");
    let end = run(json!({"cents": 2}), transfer, unstopped).await;
    assert!(class_and_message(&end.outcome).1.starts_with("the params: missing field `to`"));
}

/// A handler with a field.
struct Greeter {
    word: &'static str,
}

impl Handler<Value> for Greeter {
    type Output = String;
    type Error = std::io::Error;

    async fn call(&self, ctx: Ctx, _: Value) -> Result<String, std::io::Error> {
        tokio::task::yield_now().await;
        Ok(format!("{} {} {}", self.word, ctx.job(), ctx.attempt()))
    }
}

#[tokio::test]
async fn a_type_of_one_s_own_and_a_closure_are_handlers_too() {
    let end = run(json!({}), Greeter { word: "hello" }, unstopped).await;
    assert_eq!(end.result, Some(json!("hello a.b 2")));
    let word = Arc::new("bye".to_owned());
    let closure = move |_: Ctx, _: Value| {
        let word = Arc::clone(&word);
        async move { Ok::<_, HandlerError>(word.len()) }
    };
    assert_eq!(run(json!({}), closure, unstopped).await.result, Some(json!(3)));
}

#[tokio::test]
async fn a_panic_is_an_error_with_its_place() {
    async fn index(_: Ctx, params: Vec<u32>) -> Result<u32, HandlerError> {
        Ok(params[3])
    }
    let end = run(json!([1]), index, unstopped).await;
    assert!(matches!(end.outcome, Outcome::Failed { .. }));
    let (class, message) = class_and_message(&end.outcome);
    assert_eq!(class, PANIC);
    let place = "the handler panicked at worker/src/handler/tests.rs:";
    assert!(message.starts_with(place) && message.contains("out of bounds"), "{message}");
    let line = &end.output.lines[0];
    assert_eq!((line.stream, line.text.as_str()), (Stream::Stderr, message));
}

/// A panic's payload, which reports the thread on which it is dropped, and then panics.
struct Payload(std::sync::mpsc::Sender<Option<String>>);

impl Drop for Payload {
    fn drop(&mut self) {
        let _ = self.0.send(std::thread::current().name().map(str::to_owned));
        panic!("and once more");
    }
}

#[test]
fn what_a_panic_bears_is_dropped_on_the_handlers_threads() {
    fn unwind(payload: Payload) -> Result<(), HandlerError> {
        std::panic::resume_unwind(Box::new(payload))
    }
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    let threads = threads.worker_threads(1).thread_name("of-handlers").build().unwrap();
    let mut worker_runtime = tokio::runtime::Builder::new_current_thread();
    let worker_runtime = worker_runtime.enable_time().build().unwrap();
    let (sender, dropped) = std::sync::mpsc::channel();
    let handler = move |_: Ctx, _: Value| {
        let payload = Payload(sender.clone());
        async move { unwind(payload) }
    };
    let clock = Arc::new(sexton_service::clock::now);
    let host = HandlerHost { runtime: threads.handle().clone(), database: None, clock };
    let executor = HandlerExecutor::new(Arc::new(host), AnyHandler::new(handler), GRACE_DEFAULT);
    let (_supervisor, control) = TaskSupervisor::new(HostInstant::now() + HOUR);
    let end = worker_runtime.block_on(executor.run(&task(json!({})), control));
    assert_eq!(class_and_message(&end.outcome).0, PANIC);
    let thread = dropped.recv_timeout(Duration::from_mins(1)).unwrap();
    assert_eq!(thread.as_deref(), Some("of-handlers"));
}

#[tokio::test]
async fn what_a_handler_says_is_output_and_masked() {
    async fn talk(ctx: Ctx, _: Value) -> Result<(), HandlerError> {
        ctx.mask("s3cret");
        ctx.log("the key is s3cret");
        ctx.percent(10.0);
        ctx.progress(40.0, [("records", 1200)]);
        Err("no s3cret for you")?
    }
    let end = run(json!({}), talk, unstopped).await;
    let text: Vec<_> = end.output.lines.iter().map(|line| line.text.clone()).collect();
    assert_eq!(text, ["the key is ***"]);
    assert_eq!(class_and_message(&end.outcome), ("error", "no s3cret for you"));
}

/// Records that it was dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns a handler that ignores the stop, and whether it was dropped.
fn deaf() -> (impl Handler<Value>, Arc<AtomicBool>) {
    let was_dropped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&was_dropped);
    let handler = move |_: Ctx, _: Value| {
        let dropped = Dropped(Arc::clone(&flag));
        async move {
            let _dropped = dropped;
            std::future::pending::<Result<(), HandlerError>>().await
        }
    };
    (handler, was_dropped)
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_ignores_its_timeout_is_dropped_after_the_grace() {
    let (handler, was_dropped) = deaf();
    let started = Instant::now();
    let end = run(json!({}), handler, unstopped).await;
    assert_eq!(end.outcome, Outcome::TimedOut);
    assert_eq!(started.elapsed().as_secs(), (HOUR + GRACE_DEFAULT).as_secs());
    assert!(was_dropped.load(Ordering::Relaxed));
}

#[tokio::test(start_paused = true)]
async fn each_stop_reason_has_its_outcome_and_a_stop_at_once_has_no_grace() {
    for (reason, outcome) in [
        (StopReason::Cancelled, Outcome::Cancelled),
        (StopReason::Interrupted, Outcome::Interrupted),
        (StopReason::LeaseLost, Outcome::LeaseLost),
    ] {
        for at_once in [false, true] {
            let (handler, was_dropped) = deaf();
            let started = Instant::now();
            let stop = async |supervisor: &TaskSupervisor| {
                tokio::task::yield_now().await;
                supervisor.stop(reason);
                if at_once {
                    supervisor.stop_at_once(reason);
                }
            };
            let end = run(json!({}), handler, stop).await;
            assert_eq!(end.outcome, outcome);
            let grace = !at_once && reason != StopReason::LeaseLost;
            assert_eq!(started.elapsed() >= GRACE_DEFAULT, grace, "{reason:?}, {at_once}");
            assert!(was_dropped.load(Ordering::Relaxed));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_is_dropped_with_its_executor_is_gone() {
    let (handler, was_dropped) = deaf();
    let (_supervisor, control) = TaskSupervisor::new(HostInstant::now() + HOUR);
    let (executor, task) = (executor(handler), task(json!({})));
    let running = tokio::time::timeout(Duration::from_secs(1), executor.run(&task, control));
    assert!(running.await.is_err());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(was_dropped.load(Ordering::Relaxed));
}

#[tokio::test(start_paused = true)]
async fn within_its_grace_a_handler_may_still_succeed_and_of_all_else_the_cause_counts() {
    async fn obedient(ctx: Ctx, well: bool) -> Result<String, HandlerError> {
        assert_eq!(ctx.remaining(), HOUR);
        let token = ctx.cancellation();
        let cause = ctx.stopped().await;
        assert!(token.is_cancelled() && ctx.stop_cause() == Some(cause));
        if well { Ok(cause.to_string()) } else { Err("stopped in the middle")? }
    }
    let cancel = async |supervisor: &TaskSupervisor| {
        tokio::time::sleep(Duration::from_secs(1)).await;
        supervisor.stop(StopReason::Cancelled);
    };
    let end = run(json!(true), obedient, cancel).await;
    let result = Some(json!("the execution was cancelled"));
    assert_eq!((end.outcome, end.result), (Outcome::Succeeded, result));
    let end = run(json!(false), obedient, cancel).await;
    assert_eq!(end.outcome, Outcome::Cancelled);
    let end = run(json!(true), obedient, unstopped).await;
    assert_eq!(end.outcome, Outcome::Succeeded);
    let end = run(json!(false), obedient, unstopped).await;
    assert_eq!(end.outcome, Outcome::TimedOut);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_blocks_its_thread_keeps_its_attempt_until_it_waits() {
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = std::sync::Mutex::new(blocked);
    let (started, mut has_started) = tokio::sync::mpsc::channel(1);
    let handler = move |_: Ctx, _: Value| {
        let _ = started.try_send(());
        let _ = blocked.lock().unwrap().recv();
        std::future::pending::<Result<(), HandlerError>>()
    };
    let (supervisor, control) = TaskSupervisor::new(HostInstant::now() + HOUR);
    let (executor, task) = (executor(handler), task(json!({})));
    let running = tokio::spawn(async move { executor.run(&task, control).await });
    has_started.recv().await.unwrap();
    supervisor.stop_at_once(StopReason::Cancelled);
    // The future must not complete before its end.
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!running.is_finished());
    release.send(()).unwrap();
    assert_eq!(running.await.unwrap().outcome, Outcome::Cancelled);
}

#[tokio::test]
async fn without_a_database_there_is_no_transaction() {
    async fn begins(ctx: Ctx, _: Value) -> Result<Completion, HandlerError> {
        let tx = ctx.begin().await?;
        Ok(ctx.complete_in(tx))
    }
    let end = run(json!({}), begins, unstopped).await;
    assert!(class_and_message(&end.outcome).1.contains("no database"));
}
