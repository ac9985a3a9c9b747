//! The page: advisory locks and lock rows, with their holders and those that wait.

use askama::Template;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use sexton_operations::locks::{self, LockList, describe_jobs, describe_session, describe_since};
use sexton_store::locks::{AdvisoryLock, LockAttempt, LockFilter, LockJobs, LockRow, RowState};

use crate::access::Viewer;
use crate::pages::shell::copy;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::instant::in_address;
use crate::pages::shell::query::PageQuery;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::segment::segment;
use crate::pages::shell::visit::Visit;

/// Locks of each kind that the page shows.
const MAX_SHOWN: i64 = 200;

/// Which locks to show.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LocksQuery {
    /// Only locks of jobs, sessions, rows and holders whose name begins with this.
    service: Option<String>,
    /// Only advisory locks that a session waits for, with their holders.
    waiting: bool,
    /// Also the locks of Sexton itself, and rows that are free.
    all: bool,
}

#[derive(Debug, Template)]
#[template(path = "locks/list.html")]
struct LocksPage {
    frame: Frame,
    query: LocksQuery,
    found: LockList,
}

impl LocksPage {
    fn is_filtered(&self) -> bool {
        self.query.service.is_some() || self.query.waiting
    }

    fn state(&self, lock: &AdvisoryLock) -> &'static str {
        match (lock.is_held, lock.is_shared) {
            (true, false) => "held",
            (true, true) => "shared",
            (false, _) => "waits",
        }
    }

    fn holder(&self, lock: &AdvisoryLock) -> String {
        self.frame.cell(&describe_session(lock.session.as_ref()))
    }

    fn since(&self, lock: &AdvisoryLock) -> String {
        describe_since(lock.since, self.frame.now)
    }

    /// What the session does, and what a lock of Sexton itself is for.
    fn activity(&self, lock: &AdvisoryLock) -> String {
        let session = lock.session.as_ref();
        let state = session.map(|session| session.state.as_deref().unwrap_or("hidden").to_owned());
        let query = session.and_then(|session| session.query.clone());
        let purpose = lock.purpose.map(|purpose| format!("for {purpose}"));
        let parts = [purpose, state, query.filter(|query| !query.is_empty())];
        let text = parts.into_iter().flatten().collect::<Vec<_>>().join("; ");
        self.frame.cell(&text)
    }

    fn job(&self, jobs: &LockJobs, attempt: Option<&LockAttempt>) -> String {
        let job = attempt.map(|attempt| attempt.job.clone());
        self.frame.cell(&job.or_else(|| describe_jobs(jobs)).unwrap_or_default())
    }

    fn row_state(&self, row: &LockRow) -> &'static str {
        match row.state {
            RowState::Held => "held",
            RowState::AtLeast => "at least",
            RowState::Free => "free",
        }
    }

    fn break_command(&self, row: &LockRow) -> String {
        let at = in_address(row.locked_at);
        let reason = copy::REASON;
        // A name that begins with a dash is an option, unless two dashes have ended the options.
        copy::command(&["locks", "break", "--as-of", &at, "--reason", reason, "--", &row.name])
    }

    /// As the command: only the lock that the page shows, not one that was taken since.
    fn break_request(&self, row: &LockRow) -> String {
        let body = json!({"as_of": in_address(row.locked_at), "reason": copy::REASON});
        copy::request("POST", &format!("/locks/{}/break", segment(&row.name)), &body)
    }
}

pub(super) async fn list(
    visit: Visit<Viewer>,
    query: PageQuery<LocksQuery>,
) -> Result<Response, Refusal> {
    let frame = visit.frame(Section::Other).await?;
    let query = query.values;
    let filter = LockFilter {
        all: query.all,
        service: query.service.clone(),
        waiting: query.waiting,
        ..LockFilter::default()
    };
    let found = locks::list(visit.reads(), &filter, MAX_SHOWN).await;
    let found = found.map_err(|error| visit.refuse(error))?;
    Ok(html(&LocksPage { frame, query, found }))
}
