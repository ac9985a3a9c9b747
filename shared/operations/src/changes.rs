//! Whether something that people look at has changed.

pub use sexton_store::changes::{Changes, read};
