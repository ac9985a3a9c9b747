//! Makes an answer once for all who have the same page open and fetch it again: five hundred pages cost the database what one costs.
//!
//! Their script takes the content of the page alone. It depends on the address, the role of its reader and the jobs to which that one is
//! restricted, and names no reader. So readers with the same role and jobs share it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Bytes, to_bytes};
use axum::extract::{FromRequestParts as _, Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use sexton_model::access::Role;
use sexton_model::job_scope::JobScope;
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep};

use super::refusal::Refusal;
use super::visit::Site;
use crate::access::{Allowed, Viewer};

/// The header of requests by the script of an open page.
pub(super) const REFRESH: HeaderName = HeaderName::from_static("sexton-refresh");
/// Age from which an answer is made anew, although nothing that pages follow has changed. One that is still being made is shared.
const MAX_AGE: Duration = Duration::from_secs(1);
/// The most answers that are shared at the same time. Others are made for each reader.
const MAX_ANSWERS: usize = 64;
/// Longest page; handlers answer from memory.
const MAX_PAGE_BYTES: usize = 8 * 1024 * 1024;

/// The answers that are made, or were made less than [`MAX_AGE`] ago. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(in crate::pages) struct SharedAnswers(Arc<Mutex<HashMap<Key, Arc<Shared>>>>);

/// What an answer depends on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Key {
    address: String,
    role: Role,
    /// The preview of a bulk counts what its reader may change.
    only_jobs: Option<JobScope>,
}

#[derive(Debug)]
struct Shared {
    /// The number of changes that the database was known to have when it was begun.
    changes: u64,
    begun: Instant,
    answer: OnceCell<(StatusCode, HeaderMap, Bytes)>,
}

impl SharedAnswers {
    /// Returns the answer that this request shares; `None`: there are too many.
    fn get(&self, key: &Key, changes: u64) -> Option<Arc<Shared>> {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answers.retain(|_, shared| !shared.is_over());
        let is_full = answers.len() >= MAX_ANSWERS;
        let fresh = || Arc::new(Shared { changes, begun: Instant::now(), answer: OnceCell::new() });
        match answers.entry(key.clone()) {
            Entry::Occupied(mut entry) => {
                let found = entry.get();
                // One that was begun before the change that its reader fetches might lack it.
                if found.changes != changes {
                    entry.insert(fresh());
                }
                Some(Arc::clone(entry.get()))
            }
            Entry::Vacant(_) if is_full => None,
            Entry::Vacant(entry) => Some(Arc::clone(entry.insert(fresh()))),
        }
    }

    /// Forgets what is over in a moment, so that no answer stays in memory when nobody fetches one any more.
    async fn forget(self) {
        sleep(MAX_AGE).await;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, shared| !shared.is_over());
    }
}

impl Shared {
    /// Whether it is too old, or all who waited for it have left before it was made. Only under the lock.
    fn is_over(self: &Arc<Self>) -> bool {
        if self.answer.initialized() {
            self.begun.elapsed() >= MAX_AGE
        } else {
            Arc::strong_count(self) == 1
        }
    }
}

/// Answers a request of an open page with what is made for another one at this moment.
pub(in crate::pages) async fn share(
    State(site): State<Site>,
    request: Request,
    next: Next,
) -> Response {
    if request.method() != Method::GET || !request.headers().contains_key(REFRESH) {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let allowed = Allowed::<Viewer>::from_request_parts(&mut parts, &site.backend).await;
    let caller = match allowed {
        Ok(allowed) => allowed.caller().clone(),
        Err(problem) => {
            let path = format!("{}{}", site.base, parts.uri);
            return Refusal::new(problem, &site, path).of_reading(true).into_response();
        }
    };
    let key =
        Key { address: parts.uri.to_string(), role: caller.role, only_jobs: caller.only_jobs };
    let request = Request::from_parts(parts, body);
    let Some(shared) = site.shared.get(&key, site.hub.changes()) else {
        return next.run(request).await;
    };
    // If the one who makes it leaves, the next one who waits makes it.
    let made = shared.answer.get_or_init(|| async {
        let answer = read(next.run(request).await).await;
        tokio::spawn(site.shared.clone().forget());
        answer
    });
    let (status, headers, body) = made.await.clone();
    (status, headers, body).into_response()
}

async fn read(response: Response) -> (StatusCode, HeaderMap, Bytes) {
    let (parts, body) = response.into_parts();
    match to_bytes(body, MAX_PAGE_BYTES).await {
        Ok(bytes) => (parts.status, parts.headers, bytes),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, HeaderMap::new(), Bytes::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_shared_until_something_changes_or_it_is_old() {
        let answers = SharedAnswers::default();
        let key = |path: &str, role| Key { address: path.to_owned(), role, only_jobs: None };
        let get = |key: &Key, changes| answers.get(key, changes).unwrap();
        let viewer = key("/failed", Role::Viewer);
        let first = get(&viewer, 1);
        assert!(Arc::ptr_eq(&first, &get(&viewer, 1)));
        assert!(!Arc::ptr_eq(&first, &get(&key("/failed", Role::Admin), 1)));
        assert!(!Arc::ptr_eq(&first, &get(&key("/failed?job=a", Role::Viewer), 1)));
        let restricted = Key { only_jobs: "a.*".parse().ok(), ..viewer.clone() };
        assert!(!Arc::ptr_eq(&first, &get(&restricted, 1)));
        let changed = get(&viewer, 2);
        assert!(!Arc::ptr_eq(&first, &changed));
        tokio::time::advance(MAX_AGE).await;
        assert!(Arc::ptr_eq(&changed, &get(&viewer, 2)), "it is still being made");
        changed.answer.set((StatusCode::OK, HeaderMap::new(), Bytes::new())).unwrap();
        assert!(!Arc::ptr_eq(&changed, &get(&viewer, 2)));
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_limited_and_those_that_nobody_waits_for_take_no_place() {
        let answers = SharedAnswers::default();
        let key = |number: usize| Key {
            address: number.to_string(),
            role: Role::Viewer,
            only_jobs: None,
        };
        let waiting: Vec<_> = (0..MAX_ANSWERS).map(|n| answers.get(&key(n), 1).unwrap()).collect();
        assert!(answers.get(&key(MAX_ANSWERS), 1).is_none());
        waiting[0].answer.set((StatusCode::OK, HeaderMap::new(), Bytes::new())).unwrap();
        // All have left; one answer was made, and is kept for a moment.
        drop(waiting);
        assert!(answers.get(&key(MAX_ANSWERS), 1).is_some());
        assert_eq!(answers.0.lock().unwrap().len(), 2);
        answers.clone().forget().await;
        assert_eq!(answers.0.lock().unwrap().len(), 0);
    }
}
