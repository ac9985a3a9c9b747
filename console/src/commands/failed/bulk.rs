//! Asking for a bulk: the preview, the question, and then watching.
//!
//! The program that asks does nothing itself. It may be killed at any time: before the bulk is written
//! nothing was asked for, afterwards the schedulers carry it out.

use clap::Args;
use serde_json::{Value, json};
use sexton_model::bulk::BulkKind;
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::rate::Rate;
use sexton_service::fault;
use sexton_store::bulk::{self, BulkSelector, NewBulk, Preview};
use sexton_store::operator::AuditContext;
use sexton_store::{Store, failures};

use super::selector::{Selection, current_attempts};
use super::verify_items::Verification;
use super::{muted, verify_items, watch};
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::session::Session;
use crate::show::{Facts, ago, line};

/// Jobs and pools that a preview names.
const MAX_NAMED: usize = 10;

/// How it is asked for.
#[derive(Debug, Args, Default)]
pub struct BulkOptions {
    /// Only show what would be done
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// How fast, as in 50/s, 10/m or 1000/h; default: as fast as the tickets are published
    #[arg(long)]
    pub rate: Option<Rate>,
    /// Do not wait until it is done
    #[arg(long)]
    pub detach: bool,
}

/// Who says whether an effect has happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verifier<'a> {
    /// The verify tasks of the jobs that have one.
    Tasks,
    /// Nobody, though jobs may have one.
    Nobody,
    /// This command, on this machine.
    Command(&'a str),
}

impl Verifier<'_> {
    /// As the store has it, where `any` job has a verify task: a bulk may mean more than its preview has seen.
    pub(super) const fn to_store(self, any: bool) -> Option<&'static str> {
        match self {
            Self::Command(_) => Some("command"),
            Self::Tasks if any => Some("task"),
            Self::Nobody if any => Some("none"),
            Self::Tasks | Self::Nobody => None,
        }
    }
}

/// What is done, beside to which.
#[derive(Clone, Copy, Debug)]
pub(super) struct BulkAction<'a> {
    /// The kind.
    pub kind: BulkKind,
    /// So many first.
    pub canary: Option<u32>,
    /// The pool they are sent to.
    pub pool: Option<&'a str>,
    /// Who is asked of each first.
    pub verify: Verifier<'a>,
    /// Why, for the audit.
    pub reason: Option<&'a str>,
}

impl<'a> BulkAction<'a> {
    /// Without any terms.
    pub(super) const fn new(kind: BulkKind, reason: Option<&'a str>) -> Self {
        Self { kind, canary: None, pool: None, verify: Verifier::Nobody, reason }
    }
}

/// Previews, asks, writes the bulk, and watches it.
///
/// # Errors
///
/// [`Failure`]; [`Failure::Unconfirmed`] when nobody said yes, and nothing was asked for.
pub(super) async fn request_bulk(
    store: &Store,
    selection: &Selection,
    action: BulkAction<'_>,
    options: &BulkOptions,
    session: &Session,
) -> Result<(), Failure> {
    if matches!(selection, Selection::Filter(_)) && !failures::is_backfilled(store).await? {
        let text = "what failed before the migration is not all in the register yet, so a filter would miss \
                    some; the schedulers bring it in, try again in a while, or name the ids";
        return Err(Failure::Failed(text.to_owned()));
    }
    let (preview, ids) = match selection {
        Selection::Filter(filter) => (bulk::preview(store, filter, None).await?, Vec::new()),
        Selection::Ids(ids) => {
            let raw: Vec<_> = ids.iter().map(|id| id.get()).collect();
            (bulk::preview_ids(store, &raw).await?, current_attempts(store, ids).await?)
        }
    };
    if options.dry_run {
        if session.out.is_json() {
            return session.out.document(&json!({"preview": preview, "bulk": null}));
        }
        return render_preview(&preview, action, session)
            .and_then(|()| session.out.print("Nothing was done."));
    }
    if preview.count == 0 {
        let none = "there are no such executions; nothing was done".to_owned();
        let beside = muted::describe(&preview.muted).map(|text| format!("{none}. {text}"));
        return Err(Failure::NothingDone(beside.unwrap_or(none)));
    }
    if !options.yes && !session.out.is_json() {
        render_preview(&preview, action, session)?;
    } else if let Some(text) = muted::describe(&preview.muted) {
        // Nobody sees a preview then.
        session.out.note(&text);
    }
    confirm(&format!("{} will be {}", describe_count(&preview), action.kind.done()), options.yes)?;
    let asked = match selection {
        Selection::Filter(filter) => &json!(filter),
        Selection::Ids(_) => &Value::Null,
    };
    let id = create_bulk(store, asked, &ids, action, options, &preview, session).await?;
    fault::point("console.bulk_asked");
    let mut detach = options.detach;
    if let Verifier::Command(command) = action.verify {
        let by = AuditContext { actor: &session.actor, reason: action.reason };
        detach |= verify_items::verify_all(store, Verification { id, command, by }).await?;
    }
    watch::follow(store, id, detach, session).await
}

async fn create_bulk(
    store: &Store,
    filter: &Value,
    ids: &[(ExecutionId, AttemptNumber)],
    action: BulkAction<'_>,
    options: &BulkOptions,
    preview: &Preview,
    session: &Session,
) -> Result<i64, Failure> {
    let any = bulk::any_job_has_verify_task(store).await?;
    let selector =
        if filter.is_null() { BulkSelector::Ids(ids) } else { BulkSelector::Filter(filter) };
    let new = NewBulk {
        kind: action.kind,
        selector,
        previewed_at: preview.previewed_at,
        rate: options.rate,
        canary: action.canary,
        pool: action.pool,
        verify: action.verify.to_store(any).filter(|_| action.kind == BulkKind::Requeue),
    };
    let by = AuditContext { actor: &session.actor, reason: action.reason };
    Ok(bulk::create(store, &new, by).await?)
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
    session: &Session,
) -> Result<(), Failure> {
    let kind = action.kind;
    let now = preview.previewed_at;
    let mut facts = Facts::default();
    facts.add("what", format!("{} will be {}", describe_count(preview), kind.done()));
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
        facts.add_optional("asked first", describe_verification(preview.verified, action.verify));
    }
    facts.add_optional("left out", muted::describe(&preview.muted));
    if preview.more {
        facts.add("looked at", format!("the first {} alone", bulk::MAX_PREVIEW_EXECUTIONS));
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
            Some(format!("nobody, though the jobs of {verified} have a verify task (--no-verify)"))
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
