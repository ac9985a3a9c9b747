//! Pages of executions, by a filter.

use chrono::{DateTime, Utc};
use sexton_model::state::State;
use sexton_store::Store;
use sexton_store::executions::{self, Execution, ExecutionFilter, ParamMatch};

use crate::error::{InvalidRequest, OperationError};
use crate::secrets::mask_executions;
use crate::{execution_ids, instants, job_names};

/// Maximum number of conditions on params.
const MAX_CONDITIONS: usize = 20;

/// A filter for executions, in texts; an execution must meet every condition that is set.
#[derive(Clone, Copy, Default, Debug)]
pub struct ExecutionRequest<'a> {
    /// Of this job, even a deleted one.
    pub job: Option<&'a str>,
    /// In one of these states; empty: in any.
    pub states: &'a [State],
    /// With a nominal time at or after this; see [`crate::instants::parse`].
    pub since: Option<&'a str>,
    /// With a nominal time before this.
    pub until: Option<&'a str>,
    /// With these in their params, at most 20.
    pub params: &'a [ParamMatch],
    /// With an attempt by this worker: the instance's name or the process's id.
    pub worker: Option<&'a str>,
    /// Only older ones than the execution whose id begins with this.
    pub before: Option<&'a str>,
}

impl ExecutionRequest<'_> {
    /// Parses the request; `now` is the database's clock.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest`] for an instant or an id that cannot be read, [`crate::error::NotFound`] for a job or an
    /// execution that does not exist.
    pub async fn read(
        self,
        store: &Store,
        now: DateTime<Utc>,
    ) -> Result<ExecutionFilter, OperationError> {
        let instant = |field, text: Option<&str>| {
            text.map(|text| instants::parse(text, now))
                .transpose()
                .map_err(|error| InvalidRequest::field(field, error.to_string()))
        };
        Ok(ExecutionFilter {
            states: self.states.iter().map(|state| state.as_str().to_owned()).collect(),
            since: instant("since", self.since)?,
            until: instant("until", self.until)?,
            params: self.params.to_vec(),
            worker: self.worker.map(str::to_owned),
            before: match self.before {
                Some(text) => Some(execution_ids::resolve(store, text).await?),
                None => None,
            },
            job: job_names::find_optional_id(store, self.job).await?,
        })
    }
}

/// Lists at most `limit` executions, the newest first, with their params masked.
///
/// # Errors
///
/// Those of the database.
pub async fn list(
    store: &Store,
    filter: &ExecutionFilter,
    limit: i64,
) -> Result<Vec<Execution>, OperationError> {
    let mut found = executions::list(store, filter, limit).await?;
    mask_executions(&mut found);
    Ok(found)
}

/// Parses conditions on params, each as in `a.b=value`.
///
/// # Errors
///
/// [`InvalidRequest`] for an invalid one, and for more than 20.
pub fn read_conditions(texts: &[String]) -> Result<Vec<ParamMatch>, InvalidRequest> {
    let params = texts.iter().map(|text| condition(text)).collect::<Result<Vec<_>, _>>()?;
    if params.len() > MAX_CONDITIONS {
        let text = format!("more than {MAX_CONDITIONS} conditions on params");
        return Err(InvalidRequest::Other(text));
    }
    Ok(params)
}

/// Parses one condition, as in `a.b=value`.
fn condition(text: &str) -> Result<ParamMatch, InvalidRequest> {
    match text.split_once('=') {
        Some((path, value)) if !path.is_empty() && path.split('.').all(|step| !step.is_empty()) => {
            let path = path.split('.').map(str::to_owned).collect();
            Ok(ParamMatch { path, value: value.to_owned() })
        }
        _ => Err(InvalidRequest::field(
            "params",
            format!("{text:?} is no condition; write it as in customer=4891 or order.id=7"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_a_path_and_a_text() {
        let read = condition("order.id=a=b").unwrap();
        assert_eq!(
            read,
            ParamMatch { path: vec!["order".into(), "id".into()], value: "a=b".into() }
        );
        assert_eq!(condition("a=").unwrap().value, "");
        for text in ["", "a", "=1", "a..b=1", ".a=1"] {
            assert!(matches!(condition(text), Err(InvalidRequest::Field { .. })), "{text}");
        }
    }
}
