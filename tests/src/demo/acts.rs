//! The acts of the demo, in order. Each waits for rows that say what it wants to show.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use sexton_model::cron::{Dialect, Dst, Expression};
use sexton_model::zone::Zone;
use uuid::Uuid;

use super::ledger::{Balance, Goal};
use super::rows;
use super::stage::example;
use super::story::Story;
use super::voice::Tone;
use crate::platform::CommandOutput;

/// How long the task runs before its worker is killed: long enough to be in the middle of it.
const INTO_THE_TASK: Duration = Duration::from_millis(1_500);

/// How many firings the surviving scheduler has to claim.
const FIRINGS_AFTER_KILL: usize = 3;

/// More firings than a job has in the demo.
const MAX_FIRINGS: usize = 10_000;

/// All acts.
pub(super) async fn play(story: &mut Story<'_>) -> Result<()> {
    fires_and_fails(story).await?;
    let parked = graveyard(story).await?;
    operator(story, parked).await?;
    kills(story).await?;
    curtain(story).await
}

async fn fires_and_fails(story: &mut Story<'_>) -> Result<()> {
    story.voice.head("1  Jobs fire. Tasks run; one fails and is retried, one fails for good.");
    let path = example("demo/jobs.toml").canonicalize().context("find examples/demo/jobs.toml")?;
    story.stage.platform.apply_file(&path).await?;
    let text = "examples/demo/jobs.toml, by `sexton jobs apply`: each job is told in full once, \
                then in one line";
    story.voice.say("applied", Tone::Operator, text);
    let has_succeeded = |story: &Story<'_>, job: &str, attempts: usize| {
        story.of(job).any(|e| e.state == "succeeded" && e.attempts.len() == attempts)
    };
    story
        .until("a task had succeeded and another one at its second attempt", |story| {
            let done = has_succeeded(story, "demo.tick", 1) && has_succeeded(story, "demo.mail", 2);
            done.then_some(())
        })
        .await
}

async fn graveyard(story: &mut Story<'_>) -> Result<Uuid> {
    let parked =
        |story: &Story<'_>| story.of("demo.print").find(|e| e.state == "failed").map(|e| e.id);
    story.until("a task was parked", parked).await
}

async fn operator(story: &mut Story<'_>, parked: Uuid) -> Result<()> {
    story
        .voice
        .head("2  An operator looks into the failed queue, mends the cause, and puts it back.");
    let id = parked.to_string();
    let subject = ("demo.print", parked);
    let shown = sexton(story, &["failed", "show", &id]).await?;
    ensure!(shown.stdout.contains(&id), "sexton failed show does not show {id}: {shown}");
    let now = story.voice.elapsed();
    story.voice.tell(now, "shown", Tone::Operator, subject, "by `sexton failed show`:");
    story.voice.quote(&shown.stdout);
    story.ledger.observe(Goal::Shown, Some(parked));

    let paper = story.stage.platform.folder().join("paper");
    std::fs::write(&paper, "").with_context(|| format!("create {}", paper.display()))?;
    story.voice.say("mended", Tone::Operator, "there is paper in the printer now");
    // On a slow machine the next firing may have failed meanwhile, too.
    story.look().await?;
    let parked_ids = story.seen.values().filter(|e| e.state == "failed").map(|e| e.id.to_string());
    let ids: Vec<_> = parked_ids.collect();
    let command = ["failed", "requeue", "--yes", "--reason", "the printer has paper again"];
    let command: Vec<_> = command.into_iter().chain(ids.iter().map(String::as_str)).collect();
    sexton(story, &command).await?;
    let ended = |story: &Story<'_>| {
        let execution = story.seen.get(&parked)?;
        (!execution.requeued_at.is_empty() && execution.state == "succeeded").then_some(())
    };
    story.until("the requeued task had succeeded", ended).await
}

async fn kills(story: &mut Story<'_>) -> Result<()> {
    story.voice.head("3  A worker is killed in the middle of a task, and a scheduler with it.");
    sexton(story, &["jobs", "trigger", "demo.report"]).await?;
    let running = |story: &Story<'_>| {
        let execution = story.of("demo.report").find(|e| e.state == "running")?;
        Some((execution.id, execution.attempts.last()?.worker.clone()))
    };
    let (report, worker) = story.until("the report was running", running).await?;
    let killing_time = tokio::time::Instant::now() + INTO_THE_TASK;
    let is_time = |_: &Story<'_>| (tokio::time::Instant::now() >= killing_time).then_some(());
    story.until("the report was in its middle", is_time).await?;

    let (scheduler, claimed) = last_claim(story).context("no scheduler has claimed anything")?;
    for (name, goal, id) in
        [(&worker, Goal::WorkerKilled, report), (&scheduler, Goal::SchedulerKilled, claimed)]
    {
        let pid = story.kill(name).with_context(|| format!("there is no {name}"))?;
        story.ledger.observe(goal, Some(id));
        let text = match goal {
            Goal::WorkerKilled => format!("{name} (process {pid}), SIGKILL, in the middle of this"),
            _ => format!("{name} (process {pid}), SIGKILL; it had claimed this last"),
        };
        let job = story.seen.get(&id).map_or("", |e| e.job.as_str());
        story.voice.tell(story.voice.elapsed(), "killed", Tone::Bad, (job, id), &text);
    }
    let fired_before = scheduled(story);
    let recovered = |story: &Story<'_>| {
        let is_done = story.seen.get(&report).is_some_and(|e| e.state == "succeeded");
        (is_done && scheduled(story) >= fired_before + FIRINGS_AFTER_KILL).then_some(())
    };
    story.until("the report had succeeded on the other worker", recovered).await
}

/// The scheduler that has claimed the latest firing, and that firing's execution.
fn last_claim(story: &Story<'_>) -> Option<(String, Uuid)> {
    let scheduled = story.seen.values().filter(|e| e.is_scheduled);
    let last = scheduled.max_by_key(|e| (e.claimed_at, e.id))?;
    Some((last.claimer().to_owned(), last.id))
}

fn scheduled(story: &Story<'_>) -> usize {
    story.seen.values().filter(|e| e.is_scheduled).count()
}

async fn curtain(story: &mut Story<'_>) -> Result<()> {
    story.voice.head("4  The jobs are paused, what is under way comes to its end.");
    let jobs = rows::cron_jobs(story.stage.platform.store().pool()).await?;
    let jobs: Vec<_> = jobs.into_iter().map(|job| job.name).collect();
    for job in &jobs {
        sexton(story, &["jobs", "pause", job, "--reason", "the demo ends"]).await?;
    }
    let text = format!("{}, by `sexton jobs pause`", jobs.join(", "));
    story.voice.say("paused", Tone::Operator, &text);
    let ended = |story: &Story<'_>| {
        let under_way = |state: &str| matches!(state, "pending" | "running" | "retrying");
        story.seen.values().all(|e| !under_way(&e.state)).then_some(())
    };
    story.until("every execution had ended", ended).await
}

/// The numbers of the whole run. Counts every firing of every cron job from the first one that was
/// claimed until it was paused.
pub(super) async fn balance(story: &mut Story<'_>) -> Result<Balance> {
    story.look().await?;
    let pool = story.stage.platform.store().pool().clone();
    let (mut due, mut missed, mut example) = (0, 0, None);
    for job in rows::cron_jobs(&pool).await? {
        let expression = Expression::parse(&job.expression, Dialect::Any, &job.name)?;
        let Some(first) = story.of(&job.name).min_by_key(|e| e.scheduled_for) else { continue };
        example = example.or(Some(first.id));
        due += 1;
        let firings =
            expression.iter_after(first.scheduled_for, Zone::UTC, Dst::default()).take(MAX_FIRINGS);
        for firing in firings.take_while(|firing| *firing <= job.fired_until) {
            let is_there = story.of(&job.name).any(|e| e.scheduled_for == firing);
            due += 1;
            missed += u64::from(!is_there);
        }
    }
    if missed == 0 && due > 0 {
        story.ledger.count(Goal::Complete, due, example);
    }
    Ok(Balance { totals: rows::totals(&pool).await?, missed })
}

/// Runs `sexton`, which must succeed.
async fn sexton(story: &Story<'_>, args: &[&str]) -> Result<CommandOutput> {
    let running = story.stage.platform.try_sexton(args);
    let output = tokio::time::timeout_at(story.deadline(), running).await;
    let output = output.with_context(|| format!("sexton {args:?} did not end"))??;
    ensure!(output.status.success(), "sexton {args:?} failed: {output}");
    Ok(output)
}
