//! The worker on its own: commands, and handlers under test.

mod command;
mod handler_testing;
