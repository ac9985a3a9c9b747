//! `/failed/groups`: all groups of failures.

use askama::Template;
use axum::response::Response;
use serde::Deserialize;
use sexton_model::failures::GroupState;
use sexton_operations::groups::{self, GroupWithTrend};
use sexton_operations::paging::Page;
use sexton_store::failures::{Group, GroupFilter, GroupOrder};

use super::list;
use crate::access::Viewer;
use crate::api::PageSize;
use crate::pages::shell::chart::Sparkline;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::query::{PageQuery, Pages};
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// Which groups to list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct GroupsQuery {
    state: Option<GroupState>,
    all: bool,
    sort: GroupOrder,
    limit: PageSize,
    cursor: Option<String>,
}

#[derive(Debug, Template)]
#[template(path = "failed/groups.html")]
struct GroupsPage {
    frame: Frame,
    groups: Page<GroupWithTrend>,
    pages: Pages,
    state: Option<GroupState>,
    sort: GroupOrder,
    all: bool,
}

const ORDERS: [(&str, &str); 3] = [
    ("count", "most failed first"),
    ("last", "last failure first"),
    ("first", "newest group first"),
];

impl GroupsPage {
    fn orders(&self) -> [(&'static str, &'static str); 3] {
        ORDERS
    }

    fn is_order(&self, word: &str) -> bool {
        let order = match self.sort {
            GroupOrder::Count => "count",
            GroupOrder::Last => "last",
            GroupOrder::First => "first",
        };
        order == word
    }

    fn states(&self) -> impl Iterator<Item = &'static str> {
        let all = [GroupState::Open, GroupState::Reopened, GroupState::Muted, GroupState::Resolved];
        all.into_iter().map(GroupState::as_str)
    }

    fn is_state(&self, word: &str) -> bool {
        self.state.is_some_and(|state| state.as_str() == word)
    }

    fn name_of<'a>(&self, group: &'a Group) -> &'a str {
        list::name_of(group)
    }

    fn trend<'a>(&self, row: &'a GroupWithTrend) -> Sparkline<'a> {
        list::trend(row)
    }
}

pub(super) async fn show(
    visit: Visit<Viewer>,
    query: PageQuery<GroupsQuery>,
) -> Result<Response, Refusal> {
    let frame = visit.frame(Section::Failed).await?;
    let GroupsQuery { state, all, sort, limit, ref cursor } = query.values;
    let filter = GroupFilter { job: None, state, fingerprint: None, empty: all };
    let cursor = cursor.as_deref();
    let listed = groups::list(visit.reads(), &filter, sort, cursor, limit.get(), None).await;
    let groups = listed.map_err(|error| visit.refuse(error))?;
    let pages = query.pages(groups.next_cursor.as_ref());
    Ok(html(&GroupsPage { frame, groups, pages, state, sort, all }))
}
