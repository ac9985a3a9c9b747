//! See `sexton_hostile`: `tests/hostile/src/cron_jobs.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| (sexton_hostile::target("cron_jobs").run)(input));
