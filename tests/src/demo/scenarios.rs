//! The scenarios of the demo, in order. Each waits for the rows that it wants to show.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use sexton_model::cron::{Dialect, Dst, Expression};
use sexton_model::zone::Zone;
use uuid::Uuid;

use super::cluster::example;
use super::ledger::{Balance, Goal};
use super::observer::Observer;
use super::output::Tone;
use super::rows;
use crate::platform::CommandOutput;

/// How long the task runs before its worker is killed: long enough to be in the middle of it.
const KILL_DELAY: Duration = Duration::from_millis(1_500);

/// How many firings the surviving scheduler must claim.
const MIN_FIRINGS_AFTER_KILL: usize = 3;

/// More firings than a job has in the demo.
const MAX_FIRINGS: usize = 10_000;

/// Runs all scenarios.
pub(super) async fn run_all(observer: &mut Observer<'_>) -> Result<()> {
    fire_and_fail(observer).await?;
    let parked = park(observer).await?;
    requeue(observer, parked).await?;
    kill_programs(observer).await?;
    pause_jobs(observer).await
}

async fn fire_and_fail(observer: &mut Observer<'_>) -> Result<()> {
    observer.output.head("1  Jobs fire. Tasks run; one fails and is retried, one fails for good.");
    let path = example("demo/jobs.toml").canonicalize().context("find examples/demo/jobs.toml")?;
    observer.cluster.platform.apply_file(&path).await?;
    let text = "examples/demo/jobs.toml, by `sexton jobs apply`: each job is shown in full once, \
                then in one line";
    observer.output.say("applied", Tone::Operator, text);
    let has_succeeded = |observer: &Observer<'_>, job: &str, attempts: usize| {
        observer.of(job).any(|e| e.state == "succeeded" && e.attempts.len() == attempts)
    };
    observer
        .until("a task had succeeded and another one at its second attempt", |observer| {
            let done =
                has_succeeded(observer, "demo.tick", 1) && has_succeeded(observer, "demo.mail", 2);
            done.then_some(())
        })
        .await
}

async fn park(observer: &mut Observer<'_>) -> Result<Uuid> {
    let parked = |observer: &Observer<'_>| {
        observer.of("demo.print").find(|e| e.state == "failed").map(|e| e.id)
    };
    observer.until("a task was parked", parked).await
}

async fn requeue(observer: &mut Observer<'_>, parked: Uuid) -> Result<()> {
    observer
        .output
        .head("2  An operator looks into the failed queue, mends the cause, and puts it back.");
    let id = parked.to_string();
    let subject = ("demo.print", parked);
    let shown = sexton(observer, &["failed", "show", &id]).await?;
    ensure!(shown.stdout.contains(&id), "sexton failed show does not show {id}: {shown}");
    let now = observer.output.elapsed();
    observer.output.print_event(now, "shown", Tone::Operator, subject, "by `sexton failed show`:");
    observer.output.quote(&shown.stdout);
    observer.ledger.observe(Goal::Shown, Some(parked));

    let paper = observer.cluster.platform.folder().join("paper");
    std::fs::write(&paper, "").with_context(|| format!("create {}", paper.display()))?;
    observer.output.say("mended", Tone::Operator, "there is paper in the printer now");
    // On a slow machine the next firing may have failed meanwhile, too.
    observer.look().await?;
    let parked_ids =
        observer.seen.values().filter(|e| e.state == "failed").map(|e| e.id.to_string());
    let ids: Vec<_> = parked_ids.collect();
    let command = ["failed", "requeue", "--yes", "--reason", "the printer has paper again"];
    let command: Vec<_> = command.into_iter().chain(ids.iter().map(String::as_str)).collect();
    sexton(observer, &command).await?;
    let ended = |observer: &Observer<'_>| {
        let execution = observer.seen.get(&parked)?;
        (!execution.requeued_at.is_empty() && execution.state == "succeeded").then_some(())
    };
    observer.until("the requeued task had succeeded", ended).await
}

async fn kill_programs(observer: &mut Observer<'_>) -> Result<()> {
    observer.output.head("3  A worker is killed in the middle of a task, and a scheduler with it.");
    sexton(observer, &["jobs", "trigger", "demo.report"]).await?;
    let running = |observer: &Observer<'_>| {
        let execution = observer.of("demo.report").find(|e| e.state == "running")?;
        Some((execution.id, execution.attempts.last()?.worker.clone()))
    };
    let (report, worker) = observer.until("the report was running", running).await?;
    let killing_time = tokio::time::Instant::now() + KILL_DELAY;
    let is_time = |_: &Observer<'_>| (tokio::time::Instant::now() >= killing_time).then_some(());
    observer.until("the report was in its middle", is_time).await?;

    let (scheduler, claimed) = last_claim(observer).context("no scheduler has claimed anything")?;
    for (name, goal, id) in
        [(&worker, Goal::WorkerKilled, report), (&scheduler, Goal::SchedulerKilled, claimed)]
    {
        let pid = observer.kill(name).with_context(|| format!("there is no {name}"))?;
        observer.ledger.observe(goal, Some(id));
        let text = match goal {
            Goal::WorkerKilled => format!("{name} (process {pid}), SIGKILL, in the middle of this"),
            _ => format!("{name} (process {pid}), SIGKILL; it had claimed this last"),
        };
        let job = observer.seen.get(&id).map_or("", |e| e.job.as_str());
        observer.output.print_event(
            observer.output.elapsed(),
            "killed",
            Tone::Bad,
            (job, id),
            &text,
        );
    }
    let fired_before = scheduled(observer);
    let recovered = |observer: &Observer<'_>| {
        let is_done = observer.seen.get(&report).is_some_and(|e| e.state == "succeeded");
        (is_done && scheduled(observer) >= fired_before + MIN_FIRINGS_AFTER_KILL).then_some(())
    };
    observer.until("the report had succeeded on the other worker", recovered).await
}

/// The scheduler that has claimed the latest firing, and that firing's execution.
fn last_claim(observer: &Observer<'_>) -> Option<(String, Uuid)> {
    let scheduled = observer.seen.values().filter(|e| e.is_scheduled);
    let last = scheduled.max_by_key(|e| (e.claimed_at, e.id))?;
    Some((last.claimer().to_owned(), last.id))
}

fn scheduled(observer: &Observer<'_>) -> usize {
    observer.seen.values().filter(|e| e.is_scheduled).count()
}

async fn pause_jobs(observer: &mut Observer<'_>) -> Result<()> {
    observer.output.head("4  The jobs are paused, what is under way comes to its end.");
    let jobs = rows::cron_jobs(observer.cluster.platform.store().pool()).await?;
    let jobs: Vec<_> = jobs.into_iter().map(|job| job.name).collect();
    for job in &jobs {
        sexton(observer, &["jobs", "pause", job, "--reason", "the demo ends"]).await?;
    }
    let text = format!("{}, by `sexton jobs pause`", jobs.join(", "));
    observer.output.say("paused", Tone::Operator, &text);
    let ended = |observer: &Observer<'_>| {
        let under_way = |state: &str| matches!(state, "pending" | "running" | "retrying");
        observer.seen.values().all(|e| !under_way(&e.state)).then_some(())
    };
    observer.until("every execution had ended", ended).await
}

/// The numbers of the whole run. Counts every firing of every cron job from the first claimed one
/// until the pause.
pub(super) async fn balance(observer: &mut Observer<'_>) -> Result<Balance> {
    observer.look().await?;
    let pool = observer.cluster.platform.store().pool().clone();
    let (mut due, mut missed, mut example) = (0, 0, None);
    for job in rows::cron_jobs(&pool).await? {
        let expression = Expression::parse(&job.expression, Dialect::Any, &job.name)?;
        let Some(first) = observer.of(&job.name).min_by_key(|e| e.scheduled_for) else { continue };
        example = example.or(Some(first.id));
        due += 1;
        let firings =
            expression.iter_after(first.scheduled_for, Zone::UTC, Dst::default()).take(MAX_FIRINGS);
        for firing in firings.take_while(|firing| *firing <= job.fired_until) {
            let is_there = observer.of(&job.name).any(|e| e.scheduled_for == firing);
            due += 1;
            missed += u64::from(!is_there);
        }
    }
    if missed == 0 && due > 0 {
        observer.ledger.count(Goal::Complete, due, example);
    }
    Ok(Balance { totals: rows::totals(&pool).await?, missed })
}

/// Runs `sexton`, which must succeed.
pub(super) async fn sexton(observer: &Observer<'_>, args: &[&str]) -> Result<CommandOutput> {
    let running = observer.cluster.platform.try_sexton(args);
    let output = tokio::time::timeout_at(observer.deadline(), running).await;
    let output = output.with_context(|| format!("sexton {args:?} did not end"))??;
    ensure!(output.status.success(), "sexton {args:?} failed: {output}");
    Ok(output)
}
