//! The result of a handler that succeeded.

use serde::Serialize;
use serde_json::Value;
use sexton_model::result::{ResultError, check};
use sexton_store::task::TaskTransaction;

use super::error::{HandlerError, Reason};
use super::transaction::Transaction;

/// A success whose effects are in a transaction, made by [`Ctx::complete_in`](super::Ctx::complete_in).
///
/// The handler returns it: the attempt's success is recorded in the transaction, and then both are committed
/// together. If the handler drops it instead, all is rolled back.
#[derive(Debug)]
#[must_use = "a completion counts when the handler returns it"]
pub struct Completion<R = ()> {
    transaction: Option<Transaction>,
    result: R,
}

impl Completion {
    pub(super) fn in_transaction(transaction: Transaction) -> Self {
        Self { transaction: Some(transaction), result: () }
    }
}

impl<R> Completion<R> {
    /// Adds a result: `Ok(ctx.complete_in(tx).with(receipt))`.
    pub fn with<S: Serialize>(self, result: S) -> Completion<S> {
        Completion { transaction: self.transaction, result }
    }
}

/// A type that a handler may return: anything that serde can write, or a [`Completion`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a handler",
    note = "a handler hands back what implements serde's Serialize, or a Completion of that"
)]
pub trait IntoCompletion {
    /// The type of the result.
    type Result: Serialize;

    /// Converts the value into a success, with its transaction if it has one.
    fn into_completion(self) -> Completion<Self::Result>;
}

impl<R: Serialize> IntoCompletion for R {
    type Result = R;

    fn into_completion(self) -> Completion<R> {
        Completion { transaction: None, result: self }
    }
}

impl<R: Serialize> IntoCompletion for Completion<R> {
    type Result = R;

    fn into_completion(self) -> Self {
        self
    }
}

/// A success whose result is serialised.
#[derive(Debug)]
pub(super) struct HandlerSuccess {
    pub(super) transaction: Option<TaskTransaction>,
    pub(super) result: Option<Value>,
}

impl<R: Serialize> Completion<R> {
    /// Serialises the result.
    ///
    /// # Errors
    ///
    /// A permanent failure, as for the result of a command: another try would produce the same.
    pub(super) fn into_success(self) -> Result<HandlerSuccess, HandlerError> {
        let refused = |class: &str, problem: String| {
            let reason = Reason::new(format!("the handler's result {problem}")).class(class);
            HandlerError::Permanent(reason)
        };
        let result = serde_json::to_value(&self.result)
            .map_err(|error| refused("result_invalid", format!("cannot be written: {error}")))?;
        check(&result).map_err(|error| match error {
            ResultError::Large(_) => refused("result_too_large", error.to_string()),
            ResultError::Deep | ResultError::Nul | ResultError::Reserved => {
                refused("result_invalid", error.to_string())
            }
        })?;
        Ok(HandlerSuccess {
            transaction: self.transaction.map(Transaction::into_inner),
            result: Some(result).filter(|result| !result.is_null()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn written(result: impl Serialize) -> Result<Option<Value>, HandlerError> {
        result.into_completion().into_success().map(|into_success| into_success.result)
    }

    fn class(refused: Result<Option<Value>, HandlerError>) -> Reason {
        match refused {
            Err(HandlerError::Permanent(reason)) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_result_is_what_serde_writes_and_nothing_is_none() {
        assert_eq!(written(()), Ok(None));
        assert_eq!(written(None::<u8>), Ok(None));
        assert_eq!(written(json!({"records": 3})), Ok(Some(json!({"records": 3}))));
    }

    #[test]
    fn a_result_that_cannot_be_kept_is_permanent_as_with_commands() {
        let refused = class(written("x".repeat(65 * 1024)));
        assert!(refused.message().contains("more than 65536"), "{refused}");
        let odd = BTreeMap::from([(vec![1], 2)]);
        assert!(class(written(odd)).message().contains("cannot be written"));
        assert!(class(written("a\0b")).message().contains("U+0000"));
    }
}
