//! See `sexton_hostile`: `tests/hostile/src/cron.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| (sexton_hostile::target("cron").run)(input));
