#![no_main]

use pentaglot::Limits;
use pentaglot::formats::dynd::{Type, deserialize, serialize};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    pentaglot_fuzz::read("dynd", data);
    // Whatever is accepted is the one serialization of its value.
    let any: Type = "array[Any]".parse().expect("a type");
    let mut limits = Limits::default();
    (limits.max_alloc, limits.max_free_rows) = (64 << 20, 1 << 16);
    if let Ok(value) = deserialize(data, &any, &limits) {
        assert_eq!(serialize(&any, &value).expect("a value that was read can be written"), data);
    }
});
