#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostel_tests::fuzz::config(data));
