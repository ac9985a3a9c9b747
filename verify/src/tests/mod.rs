//! The checks of the test build.

mod mutants;
mod open_finding;
mod parts;
mod reports;
mod second_opinion;
mod sound;
