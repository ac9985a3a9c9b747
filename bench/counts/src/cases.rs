//! What is counted: the pure functions on the way of an execution, with values as they are in use.

mod firing;
mod output;
mod settlement;
mod ticket;

use std::hint::black_box;

use chrono::{DateTime, Utc};

/// One call of what is counted; what was prepared for it belongs to it.
pub type Call = Box<dyn FnMut()>;

/// One function with its values.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its name in the baseline, on the page and in criterion's folder: never changed without need.
    pub name: &'static str,
    /// When it is done, for people.
    pub when: &'static str,
    /// Prepares the values, which is not counted.
    pub prepare: fn() -> Call,
}

/// All cases, in the order of an execution's life.
pub fn all() -> Vec<Case> {
    [firing::CASES, ticket::CASES, output::CASES, settlement::CASES].concat()
}

/// The case with this name.
pub fn find(name: &str) -> Option<Case> {
    all().into_iter().find(|case| case.name == name)
}

/// Nothing of the result may be left out by the compiler.
fn call<T: 'static>(mut function: impl FnMut() -> T + 'static) -> Call {
    Box::new(move || {
        black_box(function());
    })
}

fn at(text: &str) -> DateTime<Utc> {
    text.parse().expect("an instant")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_case_has_a_name_of_its_own_and_can_be_called_again_and_again() {
        let names: BTreeSet<_> = all().iter().map(|case| case.name).collect();
        assert_eq!(names.len(), all().len());
        for case in all() {
            let mut call = (case.prepare)();
            (0..3).for_each(|_| call());
        }
    }
}
