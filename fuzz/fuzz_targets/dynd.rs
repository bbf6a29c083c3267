#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| pentaglot_fuzz::read("dynd", data));
