//! Checks of foreign jobs: judged with the clock stepped, and pinged over HTTP by real clients.

mod judging;
mod pinging;
mod trimming;
