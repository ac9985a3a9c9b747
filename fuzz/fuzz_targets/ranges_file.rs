//! See `sexton_hostile`: `tests/hostile/src/ranges_file.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| (sexton_hostile::target("ranges_file").run)(input));
