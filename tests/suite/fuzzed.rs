//! The corpora of the fuzzing targets, run through them once.

use std::fs;
use std::path::Path;

use hostel_tests::fuzz::TARGETS;

#[test]
fn every_input_that_was_kept_is_handled() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("fuzz/corpus");
    for (name, target) in TARGETS {
        let mut inputs = 0;
        for entry in fs::read_dir(corpora.join(name)).unwrap_or_else(|error| panic!("{name}: {error}")) {
            target(&fs::read(entry.unwrap().path()).unwrap());
            inputs += 1;
        }
        assert!(inputs > 0, "{name}");
    }
}
