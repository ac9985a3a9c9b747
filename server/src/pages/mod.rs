//! The console: web pages in which people find, understand and requeue what failed.
//!
//! Every page is rendered here, of the documents that `operations` returns, and every state of one is in its address. Reading and acting
//! need no script; the one script there is replaces what has changed while a page is open. A handler reaches the database only by a
//! `Visit`, which names the role that it needs.
//!
//! A folder for each part of the console; `shell` is what they have in common, and depends on none of them.

#![expect(clippy::unused_self, reason = "a template calls methods of its page and its frame")]

mod approvals;
mod audit;
mod bulks;
mod channels;
mod executions;
mod failed;
mod firings;
mod flows;
mod incidents;
mod jobs;
mod locks;
mod log_in;
mod me;
mod monitors;
mod not_found;
mod overview;
mod search;
mod settings;
mod shell;
mod workers;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;

pub use self::shell::guard::CONTENT_SECURITY_POLICY;
use self::shell::visit::Site;
use self::shell::{assets, events, guard, shared};
use crate::access::Backend;
use crate::api::examination::Examiner;
use crate::events::Hub;

/// Returns the pages, ready to serve; the overview shows what `examiner` finds. What is no page and no route of other routers is not found.
pub fn routes(backend: Backend, hub: Hub, examiner: Examiner) -> Router {
    let site = Site::new(backend, hub);
    Router::new()
        .merge(overview::routes(examiner))
        .merge(failed::routes())
        .merge(executions::routes())
        .merge(search::routes())
        .merge(incidents::routes())
        .merge(monitors::routes())
        .merge(channels::routes())
        .merge(workers::routes())
        .merge(locks::routes())
        .merge(bulks::routes())
        .merge(approvals::routes())
        .merge(flows::routes())
        .merge(audit::routes())
        .merge(me::routes())
        .merge(settings::routes())
        .merge(firings::routes())
        .merge(jobs::routes())
        .route("/events", get(events::follow))
        .route("/assets/{name}", get(assets::serve))
        .layer(from_fn(guard::in_turn))
        .layer(from_fn_with_state(site.clone(), shared::share))
        .merge(log_in::routes())
        .fallback(not_found::show)
        .layer(from_fn_with_state(site.clone(), guard::guarded))
        .with_state(site)
}
