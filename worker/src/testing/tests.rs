use super::*;
use crate::handler::{Completion, Ctx, HandlerError, Reason};

fn at() -> DateTime<Utc> {
    "2026-02-28T23:59:50Z".parse().unwrap()
}

/// Checks every ten seconds whether it is March, and returns how often.
async fn until_march(ctx: Ctx, params: Value) -> Result<u32, HandlerError> {
    for checks in 1.. {
        if ctx.now() >= "2026-03-01T00:00:00Z".parse::<DateTime<Utc>>()? {
            ctx.log(format_args!("{} of {:?}", ctx.idempotency_key(), ctx.target()));
            ctx.progress(100.0, [("asked", checks)]);
            return Ok(checks);
        }
        if params["patient"] == false {
            return Err(HandlerError::Snooze(Duration::from_secs(10)));
        }
        sleep(Duration::from_secs(10)).await;
    }
    Err("never")?
}

#[tokio::test(start_paused = true)]
async fn the_clock_is_the_test_s() {
    let ran = run(until_march).at(at()).target("7").await;
    assert_eq!((ran.outcome, ran.result), (Outcome::Succeeded, Some(json!(2))));
    assert_eq!((ran.took.as_secs(), ran.lines), (10, vec!["test.job:test of Some(\"7\")".into()]));
    let progress = ran.progress.unwrap();
    assert_eq!((progress.percent, &progress.values["asked"]), (100.0, &json!(2)));
    assert_eq!(progress.at, at() + Duration::from_secs(10));
    let ran = run(until_march).at(at()).params(json!({"patient": false})).await;
    assert_eq!(ran.outcome, Outcome::Snoozed { after: Duration::from_secs(10) });
}

#[tokio::test(start_paused = true)]
async fn it_is_stopped_by_the_test_s_clock_too() {
    let early = at() - Duration::from_hours(24);
    let trial = || run(until_march).at(early).grace(Duration::from_secs(1));
    let ran = trial().timeout(Duration::from_mins(1)).await;
    assert_eq!((ran.outcome, ran.took.as_secs()), (Outcome::TimedOut, 61));
    for (cause, outcome, grace) in [
        (StopCause::TimedOut, Outcome::TimedOut, 1),
        (StopCause::Cancelled, Outcome::Cancelled, 1),
        (StopCause::Interrupted, Outcome::Interrupted, 1),
        (StopCause::LeaseLost, Outcome::LeaseLost, 0),
    ] {
        let ran = trial().stop_after(Duration::from_secs(9), cause).await;
        assert_eq!((ran.outcome, ran.took.as_secs()), (outcome, 9 + grace));
    }
}

#[tokio::test(start_paused = true)]
async fn an_end_is_what_a_worker_would_record() {
    async fn fails(ctx: Ctx, class: String) -> Result<(), HandlerError> {
        ctx.mask("s3cret");
        Err(Reason::new("no s3cret\0 for you").class(&class))?
    }
    async fn snoozes(_: Ctx, seconds: u64) -> Result<(), HandlerError> {
        Err(HandlerError::Snooze(Duration::from_secs(seconds)))
    }
    let ran = run(fails).params(json!("of_s3cret")).await;
    let (class, message) = ("of_***".to_owned(), "no ***\u{fffd} for you".to_owned());
    assert_eq!(ran.outcome, Outcome::Failed { class, message });
    for (seconds, after) in [(0, 1), (7, 7), (u64::MAX, 7 * 24 * 3600)] {
        let ran = run(snoozes).params(json!(seconds)).await;
        assert_eq!(ran.outcome, Outcome::Snoozed { after: Duration::from_secs(after) });
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_that_masking_makes_too_large_is_left_out_as_a_worker_would() {
    async fn counts(ctx: Ctx, number: u32) -> Result<Vec<u32>, HandlerError> {
        ctx.mask("1234");
        Ok(vec![number; 13_000])
    }
    let ran = run(counts).params(json!(1235)).await;
    assert!(ran.result.is_some(), "it fits: {:?}", ran.outcome);
    // As texts of three characters they need one byte more each.
    let ran = run(counts).params(json!(1234)).await;
    assert_eq!((ran.outcome, ran.result), (Outcome::Succeeded, None));
}

#[tokio::test(start_paused = true)]
async fn times_without_end_are_long_times() {
    let trial = run(until_march).at(at()).timeout(Duration::MAX).grace(Duration::MAX);
    let ran = trial.stop_after(Duration::MAX, StopCause::Cancelled).await;
    assert_eq!(ran.outcome, Outcome::Succeeded);
    let ran = run(until_march).at(DateTime::<Utc>::MAX_UTC).await;
    assert_eq!(ran.outcome, Outcome::Succeeded);
}

#[tokio::test]
async fn without_a_database_a_transaction_is_refused_in_words() {
    async fn begins(ctx: Ctx, _: Value) -> Result<Completion, HandlerError> {
        let tx = ctx.begin().await?;
        Ok(ctx.complete_in(tx))
    }
    let mut ran = run(begins).await;
    let names_database = |message: &str| message.contains("a test gives one with `database(url)`");
    assert!(matches!(&ran.outcome, Outcome::Permanent { message, .. } if names_database(message)));
    assert!(ran.transaction().is_none());
}
