use super::*;
use crate::testing::arbitrary::Random;
use crate::testing::conformance::Suite;

#[test]
fn it_passes_the_conformance_suite() {
    let done = Suite::new(&Parquet).keeping_metadata().run(0..250);
    assert!(done > 150, "{done}");
}

#[test]
fn bad_input_never_panics() {
    for seed in 0..6 {
        let mut random = Random::new(2000 + seed);
        let suite = Suite::new(&Parquet).option("compression", ["none", "zstd", "lz4"][seed as usize % 3]);
        let schema = random.schema_of(|field| {
            Parquet.plan(&Schema::new(vec![field.clone()]), &WriteOptions::default()).verdict()
                < Verdict::Lossy
        });
        let batch = random.batch(&schema, 5);
        let Some((_, bytes)) = suite.encode(&schema, std::slice::from_ref(&batch)) else { continue };
        suite.bad_input(&bytes, 13);
    }
}
