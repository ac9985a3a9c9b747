//! See `sexton_hostile`: `tests/hostile/src/json_lines.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| (sexton_hostile::target("json_lines").run)(input));
