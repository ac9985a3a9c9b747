//! `/failed`: groups of failures first, then the failures, by a filter.

use askama::Template;
use axum::response::Response;
use sexton_model::access::Role;
use sexton_model::failures::Order;
use sexton_operations::failed::list::{self, LeftOut};
use sexton_operations::filter::FailureScope;
use sexton_operations::groups::{self, GroupWithTrend};
use sexton_operations::paging::Page;
use sexton_store::failures::{FailedExecution, Group, GroupFilter, GroupOrder};

use crate::access::Viewer;
use crate::api::{PageSize, filtered_query};
use crate::pages::shell::chart::Sparkline;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::query::{PageQuery, Pages, bulk_address};
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// Groups above the list.
const GROUPS_SHOWN: i64 = 10;

filtered_query! {
    /// Which failures to list.
    pub(super) FailuresQuery {
        /// Discarded executions instead of failed ones.
        discarded: bool,
        /// Also those of muted groups.
        muted: bool,
        /// Their order.
        #[param(inline)]
        sort: Order,
        /// Failures of a page.
        #[param(inline)]
        limit: PageSize,
        /// `next_cursor` of the page before.
        cursor: Option<String>,
    }
}

#[derive(Debug, Template)]
#[template(path = "failed/list.html")]
struct FailedPage {
    frame: Frame,
    query: FailuresQuery,
    is_filtered: bool,
    /// `None`: a filter or a later page is shown.
    groups: Option<Page<GroupWithTrend>>,
    page: Page<FailedExecution>,
    pages: Pages,
    left_out: Option<String>,
    role: Role,
    /// The filter, as in the address.
    filter_text: String,
}

impl FailedPage {
    fn name_of<'a>(&self, group: &'a Group) -> &'a str {
        name_of(group)
    }

    fn trend<'a>(&self, row: &'a GroupWithTrend) -> Sparkline<'a> {
        trend(row)
    }

    fn is_newest(&self) -> bool {
        self.query.sort == Order::Newest
    }

    /// What can be done with all that match.
    fn bulks(&self) -> &'static [(&'static str, &'static str)] {
        if self.query.discarded {
            &[("restore", "Restore all …")]
        } else {
            &[("requeue", "Requeue all …"), ("discard", "Discard all …")]
        }
    }

    fn bulk(&self, kind: &str) -> String {
        let is_kept =
            |name: &str, _: &str| !matches!(name, "cursor" | "limit" | "sort" | "discarded");
        self.frame.url(bulk_address("/failed/bulk", kind, &self.filter_text, is_kept))
    }

    fn param(&self) -> &str {
        self.query.param.first().map_or("", String::as_str)
    }

    fn label(&self) -> &str {
        self.query.label.first().map_or("", String::as_str)
    }

    /// The conditions that have no field of the form.
    fn hidden(&self) -> Vec<(&'static str, &str)> {
        let FailuresQuery { group, job_prefix, pool, task_type, worker, .. } = &self.query;
        let conditions = [
            ("group", group),
            ("job_prefix", job_prefix),
            ("pool", pool),
            ("task_type", task_type),
            ("worker", worker),
        ];
        conditions
            .into_iter()
            .filter_map(|(name, value)| value.as_deref().map(|value| (name, value)))
            .chain(self.query.param.iter().skip(1).map(|value| ("param", value.as_str())))
            .chain(self.query.label.iter().skip(1).map(|value| ("label", value.as_str())))
            .collect()
    }
}

/// Returns what a group is called: its class.
pub(super) fn name_of(group: &Group) -> &str {
    if group.error_class.is_empty() { "failed" } else { &group.error_class }
}

/// Draws how many failed in each of the last 24 hours.
pub(super) fn trend(row: &GroupWithTrend) -> Sparkline<'_> {
    let sum: u64 = row.trend.iter().sum();
    Sparkline { values: &row.trend, label: format!("{sum} in the last 24 hours") }
}

pub(super) async fn list(
    visit: Visit<Viewer>,
    query: PageQuery<FailuresQuery>,
) -> Result<Response, Refusal> {
    let frame = visit.frame(Section::Failed).await?;
    let store = visit.reads();
    let refuse = |error: sexton_operations::error::OperationError| visit.refuse(error);
    let FailuresQuery { discarded, muted, sort, limit, cursor, .. } = &query.values;
    let request = query.values.filter();
    let scope = FailureScope { discarded: *discarded, muted: *muted };
    let filter = request.read_failures(store, scope, frame.now).await.map_err(refuse)?;
    let after = list::read_cursor(cursor.as_deref(), *sort).map_err(|error| visit.refuse(error))?;
    let page = list::page(store, &filter, *sort, after, limit.get()).await.map_err(refuse)?;
    let is_filtered = !request.is_empty();
    let groups = if is_filtered || *discarded || cursor.is_some() {
        None
    } else {
        let (all, order) = (GroupFilter::default(), GroupOrder::Count);
        Some(groups::list(store, &all, order, None, GROUPS_SHOWN, None).await.map_err(refuse)?)
    };
    let left_out = left_out(list::left_out(store, &filter).await.map_err(refuse)?);
    let pages = query.pages(page.next_cursor.as_ref());
    let filter_text = query.text().to_owned();
    let (query, role) = (query.values, Role::Operator);
    Ok(html(&FailedPage {
        frame,
        query,
        is_filtered,
        groups,
        page,
        pages,
        left_out,
        role,
        filter_text,
    }))
}

fn left_out(left_out: LeftOut) -> Option<String> {
    match left_out {
        LeftOut::Counted(matches) if matches.count == 0 => None,
        LeftOut::Counted(matches) => {
            let at_least = if matches.more { "At least " } else { "" };
            Some(format!("{at_least}{} of muted groups left out.", matches.count))
        }
        LeftOut::Uncounted => Some("Executions of muted groups are left out.".to_owned()),
    }
}
