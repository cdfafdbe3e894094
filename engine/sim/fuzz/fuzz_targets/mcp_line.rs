#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| waxlog_sim::fuzz::targets::mcp_line(bytes));
