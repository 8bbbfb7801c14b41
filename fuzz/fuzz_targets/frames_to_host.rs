#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostel_tests::fuzz::frames_to_host(data));
