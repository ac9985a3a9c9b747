//! See `sexton_hostile`: `tests/hostile/src/crontab.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| (sexton_hostile::target("crontab").run)(input));
