//! One target, driven by libFuzzer. The variable `FUZZ_TARGET` names the target.
#![no_main]

use std::sync::LazyLock;

use fuzz::Target;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    fuzz::target(&name).unwrap_or_else(|| panic!("FUZZ_TARGET names none of {:?}", fuzz::TARGETS))
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (TARGET.run)(bytes));
