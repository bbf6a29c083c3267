//! The fuzzer of the target that `PENTAGLOT_FUZZ` names.
#![no_main]

use std::sync::LazyLock;

use pentaglot_fuzz::Target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("PENTAGLOT_FUZZ").expect("PENTAGLOT_FUZZ names a target");
    Target::parse(&name).expect("a target that `targets` prints")
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET.run(data));
