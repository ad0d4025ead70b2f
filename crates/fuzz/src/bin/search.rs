//! Runs libFuzzer on the target that `WARREN_FUZZED` names. `cargo xtask fuzz` compiles and starts
//! it.
#![no_main]

use std::sync::OnceLock;

use fuzz::FuzzTarget;

static TARGET: OnceLock<&FuzzTarget> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let target = TARGET.get_or_init(|| {
        let name = std::env::var_os("WARREN_FUZZED").unwrap_or_default();
        let target = name.to_str().and_then(fuzz::target);
        target.expect("WARREN_FUZZED names a target")
    });
    (target.run)(bytes);
});
