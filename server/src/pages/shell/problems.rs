//! What is wrong with a form: each problem with the field that has it.

use sexton_operations::error::{OperationError, join_field};

use crate::problem::Problem;

/// The field of JSON in which people write params.
pub(in crate::pages) const PARAMS: &str = "params";

/// A problem, as a sentence that names its field or its place in the field's JSON.
#[derive(Clone, PartialEq, Eq, Debug)]
struct FormProblem {
    /// `None`: it is of no single field.
    field: Option<String>,
    text: String,
}

/// Everything that is wrong with a form.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(in crate::pages) struct Problems(Vec<FormProblem>);

impl Problems {
    pub(in crate::pages) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a problem of no single field.
    pub(in crate::pages) fn push(&mut self, text: impl Into<String>) {
        self.0.push(FormProblem { field: None, text: text.into() });
    }

    /// Adds a problem of a field.
    pub(in crate::pages) fn push_of(&mut self, field: &str, text: impl Into<String>) {
        self.0.push(FormProblem { field: Some(field.to_owned()), text: text.into() });
    }

    /// Returns all problems, for the list above the form.
    pub(in crate::pages) fn all(&self) -> Vec<&str> {
        self.0.iter().map(|problem| problem.text.as_str()).collect()
    }

    /// Returns whether a field has problems.
    pub(in crate::pages) fn has(&self, field: impl AsRef<str>) -> bool {
        !self.of(field).is_empty()
    }

    /// Returns the problems of a field, for the place beside it.
    pub(in crate::pages) fn of(&self, field: impl AsRef<str>) -> Vec<&str> {
        let of_field = |problem: &&FormProblem| problem.field.as_deref() == Some(field.as_ref());
        self.0.iter().filter(of_field).map(|problem| problem.text.as_str()).collect()
    }
}

impl From<OperationError> for Problems {
    fn from(error: OperationError) -> Self {
        let problem = Problem::from(error);
        let mut problems = Self::default();
        for place in problem.errors {
            let pointer = place.pointer.as_deref().unwrap_or_default();
            // A pointer leads into the request's body: `/params/order/id`.
            let first = pointer.split('/').nth(1);
            match (place.parameter, first) {
                (Some(name), _) => problems.push_of(&name, join_field(&name, &place.detail)),
                (None, Some(name)) => problems.push_of(name, place.detail.clone()),
                (None, None) => problems.push(place.detail),
            }
        }
        if problems.is_empty() {
            problems.push(problem.detail);
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use sexton_operations::error::InvalidRequest;
    use sexton_operations::schema_mismatch::SchemaMismatch;

    use super::*;

    #[test]
    fn each_problem_has_its_field_and_its_place_in_the_json() {
        let mismatch = |at: &str, what: &str| SchemaMismatch {
            at: at.to_owned(),
            what: what.to_owned(),
            workers: Vec::new(),
        };
        let mismatches = vec![mismatch("/", "misses a field"), mismatch("/order/id", "is a text")];
        let params = InvalidRequest::Params { task_type: "work".to_owned(), mismatches };
        let several = vec![params.into(), InvalidRequest::field("rate", "is odd").into()];
        let problems = Problems::from(OperationError::from(InvalidRequest::Several(several)));
        assert_eq!(problems.of(PARAMS), ["/: misses a field", "/order/id: is a text"]);
        assert_eq!(problems.of("rate"), ["rate is odd"]);
        assert_eq!(problems.all().len(), 3);
        assert!(!problems.has("since"));
    }
}
