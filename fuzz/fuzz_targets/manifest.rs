//! See `sexton_hostile`: `tests/hostile/src/manifest.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| (sexton_hostile::target("manifest").run)(input));
