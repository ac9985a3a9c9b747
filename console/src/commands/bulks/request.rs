//! Asking for a bulk: the preview, the question, and then watching.
//!
//! The command executes nothing itself. It may be killed at any time: before it has written the bulk, nothing
//! happens; afterwards the schedulers execute it.

use clap::Args;
use serde_json::json;
use sexton_model::bulk::BulkKind;
use sexton_model::rate::Rate;
use sexton_operations::approvals::gate::{ApprovalDemand, Outcome};
use sexton_operations::bulks::request::{BulkAction, BulkPreview, Verifier};
use sexton_operations::bulks::verify::{Verification, verify_all};
use sexton_service::fault;
use sexton_store::Store;
use sexton_store::bulk::{MAX_PREVIEW_EXECUTIONS, Preview};
use tokio::signal::unix::SignalKind;

use super::watch;
use crate::commands::approvals::report_waiting;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::muted::describe_muted;
use crate::session::Session;
use crate::show::{Facts, ago, line};

/// Jobs and pools that a preview names.
const MAX_NAMED: usize = 10;

/// Options of bulk operations.
#[derive(Debug, Args, Default)]
pub struct BulkOptions {
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    pub yes: bool,
    /// Maximum rate, such as 50/s, 10/m or 1000/h; default: as fast as the platform can
    #[arg(long)]
    pub rate: Option<Rate>,
    /// Do not wait for the end
    #[arg(long)]
    pub detach: bool,
}

/// Previews the bulk, asks for confirmation, writes the bulk, and watches it.
///
/// # Errors
///
/// [`Failure`]; [`Failure::Unconfirmed`] without confirmation; nothing was written.
pub(in crate::commands) async fn request_bulk(
    store: &Store,
    bulk: &BulkPreview,
    action: BulkAction<'_>,
    options: &BulkOptions,
    session: &Session,
) -> Result<(), Failure> {
    let counts = &bulk.counts;
    let demand = bulk.demand(store, action).await?;
    let demand = demand.as_ref();
    if options.dry_run {
        if session.out.is_json() {
            let document = json!({"preview": counts, "bulk": null, "approval": demand});
            return session.out.document(&document);
        }
        return render_preview(counts, action, demand, session)
            .and_then(|()| session.out.print("Nothing was done."));
    }
    bulk.check()?;
    if !options.yes && !session.out.is_json() {
        render_preview(counts, action, demand, session)?;
    } else if let Some(text) = describe_muted(&counts.muted) {
        // Nobody sees a preview then.
        session.out.note(&text);
    }
    confirm(&format!("{} will be {}", describe_count(counts), action.kind.done()), options.yes)?;
    let id = match bulk.create(store, action, &session.actor).await? {
        Outcome::Done(id) => id,
        Outcome::Waits(request) => return report_waiting(&request, session),
    };
    fault::point("console.bulk_created");
    let mut detach = options.detach;
    if let Verifier::Command(command) = action.verify {
        let by = session.actor.because(action.reason);
        detach |= verify_until_interrupted(store, Verification { id, command, by }).await?;
    }
    watch::follow(store, id, detach, session).await
}

/// Runs the verify command for each item, until none is left or the operator interrupts; returns whether he did. `bulks
/// verify` goes on with the others.
pub(super) async fn verify_until_interrupted(
    store: &Store,
    verification: Verification<'_>,
) -> Result<bool, Failure> {
    // The commands are process groups of their own, which no signal to this one's reaches: they end with the future.
    let mut signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()]
        .map(tokio::signal::unix::signal);
    let [interrupt, terminate, hangup] = &mut signals;
    let (Ok(interrupt), Ok(terminate), Ok(hangup)) = (interrupt, terminate, hangup) else {
        return Err(Failure::Failed("signals cannot be listened for".to_owned()));
    };
    tokio::select! {
        done = verify_all(store, verification) => Ok(done.map(|()| false)?),
        _ = interrupt.recv() => Ok(true),
        _ = terminate.recv() => Ok(true),
        _ = hangup.recv() => Ok(true),
    }
}

fn describe_count(preview: &Preview) -> String {
    let noun = if preview.count == 1 { "execution" } else { "executions" };
    if preview.more {
        format!("more than {} {noun}", preview.count)
    } else {
        format!("{} {noun}", preview.count)
    }
}

fn render_preview(
    preview: &Preview,
    action: BulkAction<'_>,
    demand: Option<&ApprovalDemand>,
    session: &Session,
) -> Result<(), Failure> {
    let kind = action.kind;
    let now = preview.previewed_at;
    let mut facts = Facts::default();
    facts.add("what", format!("{} will be {}", describe_count(preview), kind.done()));
    if kind == BulkKind::Cancel {
        let (running, waiting) = (preview.running, preview.count.saturating_sub(preview.running));
        facts.add(
            "of these",
            format!("{waiting} wait and end at once, {running} run and are ended by their workers"),
        );
    }
    facts.add_optional("first", preview.oldest.map(|at| ago(at, now)));
    facts.add_optional("last", preview.newest.map(|at| ago(at, now)));
    facts.add("jobs", join_counts(&preview.jobs));
    facts.add("pools", join_counts(&preview.pools));
    if preview.succeeded_later > 0 && kind == BulkKind::Requeue {
        facts.add(
            "have succeeded since",
            format!(
                "{} have a later execution with the same idempotency key that succeeded; their effect \
                 may have happened",
                preview.succeeded_later
            ),
        );
    }
    if preview.verified > 0 && kind == BulkKind::Requeue {
        facts.add_optional("verification", describe_verification(preview.verified, action.verify));
    }
    facts.add_optional("needs", demand.map(|demand| line(&demand.describe(), 500)));
    facts.add_optional("left out", describe_muted(&preview.muted));
    if preview.more {
        facts.add("looked at", format!("the first {MAX_PREVIEW_EXECUTIONS} alone"));
    }
    session.out.facts(facts)
}

fn describe_verification(verified: u64, verify: Verifier<'_>) -> Option<String> {
    match verify {
        Verifier::Tasks => Some(format!(
            "{verified}, by the verify task of their job; those whose effect has happened end well without \
             running"
        )),
        Verifier::Nobody => {
            Some(format!("none, though the jobs of {verified} have a verify task (--no-verify)"))
        }
        Verifier::Command(_) => None,
    }
}

fn join_counts(all: &[(String, u64)]) -> String {
    let mut parts: Vec<String> =
        all.iter().take(MAX_NAMED).map(|(name, n)| format!("{} {n}", line(name, 100))).collect();
    if all.len() > MAX_NAMED {
        parts.push(format!("and {} more", all.len() - MAX_NAMED));
    }
    parts.join(", ")
}
