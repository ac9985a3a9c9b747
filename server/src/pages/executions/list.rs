//! `/executions`: executions in any state, by a filter.

use askama::Template;
use axum::response::Response;
use sexton_model::access::Role;
use sexton_model::bulk::BulkKind;
use sexton_model::state::State;
use sexton_operations::error::OperationError;
use sexton_operations::executions::list;
use sexton_store::executions::MAX_BRIEFLY_WALKED_EXECUTIONS;

use crate::access::Viewer;
use crate::api::{PageSize, filtered_query};
use crate::pages::shell::executions::{ExecutionRow, rows};
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::query::{PageQuery, Pages, bulk_address};
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

filtered_query! {
    /// Which executions to list.
    pub(super) ExecutionsQuery {
        /// Only in this state. May be repeated.
        #[param(explode)]
        state: Vec<State>,
        /// Executions of a page.
        #[param(inline)]
        limit: PageSize,
        /// `next_cursor` of the page before.
        cursor: Option<String>,
    }
}

#[derive(Debug, Template)]
#[template(path = "executions/list.html")]
struct ExecutionsPage {
    frame: Frame,
    query: ExecutionsQuery,
    is_filtered: bool,
    rows: Vec<ExecutionRow>,
    rows_label: &'static str,
    shows_job: bool,
    pages: Pages,
    /// The address at which all that match can be cancelled; `None`: no execution in these states can be.
    cancel_all: Option<String>,
    role: Role,
    /// The page looked at as many executions as it may, and may miss some that the next one finds.
    is_cut_short: bool,
}

impl ExecutionsPage {
    fn states(&self) -> [(State, bool); State::ALL.len()] {
        State::ALL.map(|state| (state, self.query.state.contains(&state)))
    }

    fn param(&self) -> &str {
        self.query.param.first().map_or("", String::as_str)
    }

    fn label(&self) -> &str {
        self.query.label.first().map_or("", String::as_str)
    }

    /// The conditions that have no field of the form.
    fn hidden(&self) -> Vec<(&'static str, &str)> {
        let ExecutionsQuery { group, job_prefix, task_type, worker, error_class, .. } = &self.query;
        let conditions = [
            ("group", group),
            ("job_prefix", job_prefix),
            ("task_type", task_type),
            ("worker", worker),
            ("error_class", error_class),
        ];
        conditions
            .into_iter()
            .filter_map(|(name, value)| value.as_deref().map(|value| (name, value)))
            .chain(self.query.param.iter().skip(1).map(|value| ("param", value.as_str())))
            .chain(self.query.label.iter().skip(1).map(|value| ("label", value.as_str())))
            .collect()
    }
}

/// Returns the address of the preview that cancels all that match the query of an address.
fn cancel_all(states: &[State], query: &str) -> Option<String> {
    let acts_on = |state: &State| BulkKind::Cancel.acts_on(*state);
    if !states.is_empty() && !states.iter().any(acts_on) {
        return None;
    }
    let is_kept = |name: &str, value: &str| match name {
        "state" => State::parse(value).is_some_and(|state| acts_on(&state)),
        name => !matches!(name, "cursor" | "limit"),
    };
    Some(bulk_address("/executions/bulk", "cancel", query, is_kept))
}

pub(super) async fn list(
    visit: Visit<Viewer>,
    query: PageQuery<ExecutionsQuery>,
) -> Result<Response, Refusal> {
    let frame = visit.frame(Section::Executions).await?;
    let store = visit.reads();
    let refuse = |error: OperationError| visit.refuse(error);
    let ExecutionsQuery { state, limit, cursor, .. } = &query.values;
    let request = query.values.filter();
    let filter = request.read_executions(store, state, frame.now).await.map_err(refuse)?;
    let after = list::read_cursor(cursor.as_deref()).map_err(|error| visit.refuse(error))?;
    let found = list::list(store, &filter, after, limit.get(), MAX_BRIEFLY_WALKED_EXECUTIONS)
        .await
        .map_err(refuse)?;
    let is_filtered = !request.is_empty() || !state.is_empty();
    let pages = query.pages(found.page.next_cursor.as_ref());
    let rows = rows(store, found.page.items, frame.now).await.map_err(refuse)?;
    let cancel_all = cancel_all(&query.values.state, query.text());
    let (query, is_cut_short) = (query.values, found.is_cut_short);
    let (rows_label, shows_job) = ("Table of executions", true);
    Ok(html(&ExecutionsPage {
        frame,
        query,
        is_filtered,
        rows,
        rows_label,
        shows_job,
        pages,
        cancel_all,
        role: Role::Operator,
        is_cut_short,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancel_of_all_that_match_keeps_the_filter_and_leaves_out_what_has_ended() {
        let query = "job=a&state=failed&state=running&cursor=x&limit=5&label=team%3Db";
        assert_eq!(
            cancel_all(&[State::Failed, State::Running], query).as_deref(),
            Some("/executions/bulk?kind=cancel&job=a&state=running&label=team%3Db")
        );
        let escaped = "%6Cimit=5&state=%72unning&st%61te=%66ailed&text=a%26b";
        assert_eq!(
            cancel_all(&[State::Running, State::Failed], escaped).as_deref(),
            Some("/executions/bulk?kind=cancel&state=running&text=a%26b")
        );
        assert_eq!(cancel_all(&[], "").as_deref(), Some("/executions/bulk?kind=cancel"));
        assert_eq!(cancel_all(&[State::Failed], "state=failed"), None);
    }
}
