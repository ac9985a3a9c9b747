//! See `sexton_hostile`: `tests/hostile/src/jobs_file.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| (sexton_hostile::target("jobs_file").run)(input));
