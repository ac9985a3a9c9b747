//! Valid names of jobs and task types.
//!
//! The alphabet needs no quoting in a shell, a URL, a log line, a header or a queue name, so that a name can be
//! copied from anywhere to anywhere.

use super::{FOREIGN_PREFIX, MAX_CLASS_BYTES, MAX_NAME_BYTES, MAX_TASK_TYPE_BYTES, is_reserved};
use crate::verify_task::VERIFY_PREFIX;

/// Why a name is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The name is empty.
    #[error("is empty")]
    Empty,
    /// The name is too long.
    #[error("has {bytes} bytes; {limit} at most")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The maximum length.
        limit: usize,
    },
    /// A character outside the alphabet.
    #[error("holds {0:?}; letters, digits, '.', '_' and '-' are allowed")]
    Character(char),
    /// Begins with [`FOREIGN_PREFIX`] or [`VERIFY_PREFIX`].
    #[error(
        "begins with \"{FOREIGN_PREFIX}\" or \"{VERIFY_PREFIX}\", which are kept for tasks that others publish \
         and for questions"
    )]
    Reserved,
    /// A class of attempts that ended without a report.
    #[error("says nothing of the task: nobody saw its end; write max_crashes = 1 instead")]
    Crash,
    /// A class of attempts that were cut short, which is no error.
    #[error("is no error: the attempt was cut short, and costs no retry")]
    CutShort,
}

/// Checks a job's name: `[A-Za-z0-9._-]`, at most [`MAX_NAME_BYTES`], not reserved.
///
/// # Errors
///
/// [`NameError`], a fragment that fits after "name".
pub fn check_name(name: &str) -> Result<(), NameError> {
    check(name, MAX_NAME_BYTES)?;
    if is_reserved(name) { Err(NameError::Reserved) } else { Ok(()) }
}

/// Checks a task type: `[A-Za-z0-9._-]`, at most [`MAX_TASK_TYPE_BYTES`].
///
/// # Errors
///
/// [`NameError`], a fragment that fits after "task".
pub fn check_task_type(task_type: &str) -> Result<(), NameError> {
    check(task_type, MAX_TASK_TYPE_BYTES)
}

/// Checks a class of error that is to be called permanent: `[A-Za-z0-9._-]`, at most
/// [`MAX_CLASS_BYTES`], and one of errors.
///
/// # Errors
///
/// [`NameError`], a fragment that fits after the class.
pub fn check_class(class: &str) -> Result<(), NameError> {
    check(class, MAX_CLASS_BYTES)?;
    match class {
        "lost" | "guard_lost" => Err(NameError::Crash),
        "interrupted" | "cancelled" | "lease_lost" => Err(NameError::CutShort),
        _ => Ok(()),
    }
}

fn check(name: &str, limit: usize) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.len() > limit {
        return Err(NameError::TooLong { bytes: name.len(), limit });
    }
    let allowed = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    match name.chars().find(|c| !allowed(c)) {
        Some(other) => Err(NameError::Character(other)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_need_no_quoting_anywhere_are_accepted() {
        for name in ["billing.monthlyInvoices", "a", "A_b-9", "foreign", &"x".repeat(200)] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn a_class_of_error_can_be_permanent_and_an_end_that_nobody_saw_cannot() {
        for class in ["exit_3", "http_404", "timeout", "out_of_memory", "could_not_start"] {
            assert_eq!(check_class(class), Ok(()), "{class}");
        }
        assert_eq!(check_class("lost"), Err(NameError::Crash));
        assert_eq!(check_class("interrupted"), Err(NameError::CutShort));
        assert_eq!(check_class("exit 3"), Err(NameError::Character(' ')));
        assert_eq!(check_class(""), Err(NameError::Empty));
    }

    #[test]
    fn other_names_are_refused_with_the_reason() {
        assert_eq!(check_name(""), Err(NameError::Empty));
        assert_eq!(check_name("a b"), Err(NameError::Character(' ')));
        assert_eq!(check_name("a\0"), Err(NameError::Character('\0')));
        assert_eq!(check_name("zahlläufe"), Err(NameError::Character('ä')));
        assert_eq!(check_name("foreign.report"), Err(NameError::Reserved));
        assert_eq!(check_name("verify.charged"), Err(NameError::Reserved));
        assert_eq!(
            check_name(&"x".repeat(201)),
            Err(NameError::TooLong { bytes: 201, limit: 200 })
        );
        assert_eq!(
            check_task_type(&"x".repeat(101)),
            Err(NameError::TooLong { bytes: 101, limit: 100 })
        );
    }
}
