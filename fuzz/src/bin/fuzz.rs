//! The fuzzer of the target that `PENTAGLOT_FUZZ` names; `list` prints the names of all targets.
#![no_main]

use std::sync::OnceLock;

use pentaglot_fuzz::Target;

static TARGET: OnceLock<Target> = OnceLock::new();

/// Runs before the first input.
fn choose() {
    let name = std::env::var("PENTAGLOT_FUZZ").expect("PENTAGLOT_FUZZ names a target");
    if name == "list" {
        Target::names().iter().for_each(|name| println!("{name}"));
        std::process::exit(0);
    }
    // Panics of decoders that the library catches are errors of the file.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !pentaglot::panic_is_guarded() {
            hook(panic);
        }
    }));
    TARGET.get_or_init(|| Target::parse(&name).expect("a target that `list` prints"));
}

libfuzzer_sys::fuzz_target!(init: choose(), |data: &[u8]| {
    if let Some(target) = TARGET.get() {
        target.run(data);
    }
});
