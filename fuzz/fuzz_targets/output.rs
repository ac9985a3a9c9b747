//! See `sexton_hostile`: `tests/hostile/src/output.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| (sexton_hostile::target("output").run)(input));
