//! Whether params fit what the catalogues of the workers say of their task type.

use serde_json::Value;
use sexton_model::params_schema::violations;
use sexton_store::{Store, offers};

use crate::failure::Failure;
use crate::session::Session;
use crate::show::line;

/// Violations that are told.
const TOLD: usize = 50;

/// Checks params against every schema that workers at work have for `task_type`. What could not be checked is
/// said, and holds nothing up.
///
/// # Errors
///
/// [`Failure::Usage`] with every place at which they do not fit.
pub(super) async fn check(
    store: &Store,
    task_type: &str,
    params: &Value,
    session: &Session,
) -> Result<(), Failure> {
    let in_use = offers::in_use(store, task_type, None).await?;
    let schemas: Vec<_> = in_use.iter().filter(|it| it.schema.is_some()).collect();
    if schemas.is_empty() {
        let why = if in_use.is_empty() {
            "no worker at work offers"
        } else {
            "no catalogue has a params_schema for"
        };
        return note(session, &format!("The params were not validated: {why} {task_type}."));
    }
    let several = in_use.len() > 1;
    if several {
        let text =
            "Workers disagree about what these params must hold; they are validated against each.";
        note(session, text)?;
    }
    let mut told = Vec::new();
    for one in schemas {
        let Some(schema) = &one.schema else { continue };
        let by = if several { format!(" (by {})", one.workers.join(", ")) } else { String::new() };
        match violations(schema, params) {
            Ok(found) => told.extend(found.into_iter().map(|it| {
                let place = if it.at.is_empty() { "/" } else { &it.at };
                line(&format!("{place}: {}{by}", it.what), 400)
            })),
            Err(_) => note(
                session,
                &format!(
                    "The schema of {} is of a version that this one cannot read.",
                    one.workers.join(", ")
                ),
            )?,
        }
    }
    if told.is_empty() {
        return Ok(());
    }
    let more = told.len().saturating_sub(TOLD);
    told.truncate(TOLD);
    if more > 0 {
        told.push(format!("and {more} more"));
    }
    Err(Failure::Usage(format!(
        "the params do not fit what a worker's catalogue says of {task_type}; nothing was done:\n  {}",
        told.join("\n  ")
    )))
}

/// For people; a program reads the one document.
fn note(session: &Session, text: &str) -> Result<(), Failure> {
    if session.out.is_json() {
        return Ok(());
    }
    session.out.say(line(text, 500))
}
