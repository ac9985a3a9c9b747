//! What is wrong with a form, in sentences.

use sexton_operations::error::{OperationError, join_field};

use crate::problem::Problem;

/// Returns each problem with the field that has it.
pub(super) fn problems_of(error: OperationError) -> Vec<String> {
    let places = Problem::from(error).errors.into_iter().map(|place| match place.parameter {
        Some(name) => join_field(&name, &place.detail),
        None => place.detail,
    });
    places.collect()
}
