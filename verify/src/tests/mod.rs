//! The checks of the test build.

mod hold;
mod mutants;
mod overlap;
mod parts;
mod reports;
mod requeue_stands;
mod second_opinion;
mod sound;
