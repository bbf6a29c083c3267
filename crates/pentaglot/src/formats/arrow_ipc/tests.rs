use super::*;
use crate::testing::arbitrary::Random;
use crate::testing::conformance::Suite;

#[test]
fn files_pass_the_conformance_suite() {
    let done = Suite::new(&ArrowFile).keeping_metadata().run(0..250);
    assert!(done > 150, "{done}");
}

#[test]
fn streams_pass_the_conformance_suite() {
    let done = Suite::new(&ArrowStream).keeping_metadata().run(0..250);
    assert!(done > 150, "{done}");
}

#[test]
fn bad_input_never_panics() {
    for seed in 0..12 {
        let mut random = Random::new(1000 + seed);
        let schema = random.schema();
        let batch = random.batch(&schema, 5);
        for format in [&ArrowFile as &dyn Format, &ArrowStream] {
            let suite = Suite::new(format);
            let Some((_, bytes)) = suite.encode(&schema, std::slice::from_ref(&batch)) else { continue };
            suite.bad_input(&bytes, 7);
        }
    }
}
