//! Sends a test to a channel.

use std::time::Duration;

use axum::extract::Path;
use axum::response::{IntoResponse as _, Redirect, Response};
use sexton_operations::channels;
use url::form_urlencoded::byte_serialize;

use crate::access::Operator;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// How long a browser waits for a scheduler to try it; a later try is on the page, too.
const TEST_PATIENCE: Duration = Duration::from_secs(10);

pub(super) async fn test(
    visit: Visit<Operator>,
    Path(name): Path<String>,
) -> Result<Response, Refusal> {
    let tested =
        channels::test_by_scheduler(&visit.writes(), &name, TEST_PATIENCE, visit.actor()).await;
    tested.map_err(|error| visit.refuse(error))?;
    // The page reads what became of it.
    let name: String = byte_serialize(name.as_bytes()).collect();
    Ok(Redirect::to(&visit.url(&format!("/channels?tested={name}"))).into_response())
}
