//! Converts a file to a format and reads it back.

use pentaglot::job::{self, Conversion, ConvertOptions};
use pentaglot::{ErrorKind, Registry, Sink, Source};

/// The first two bytes choose the formats. The conversion verifies itself: other data than was written is a broken promise.
pub(crate) fn run(data: &[u8]) {
    let registry = Registry::default();
    let ids: Vec<&str> = registry.formats().map(|format| format.info().id).collect();
    let [from, to, data @ ..] = data else { return };
    let choose = |byte: &u8| ids[usize::from(*byte) % ids.len()];
    let mut options = ConvertOptions::default();
    options.open = crate::options(choose(from));
    options.verify = true;
    let source = Source::from_bytes("fuzz", data.to_vec());
    let Ok(opened) = job::open_source(&registry, source, None, &options.open) else { return };
    let Ok(target) = job::target(&registry, choose(to)) else { return };
    let Ok(conversion) = Conversion::plan_opened(opened, target, None, &options) else { return };
    if conversion.check().is_err() {
        return;
    }
    let (sink, _memory) = Sink::memory();
    match conversion.run_into(sink) {
        Err(error) if error.to_string().contains("what was written") && error.kind() != ErrorKind::Limit => {
            panic!("{} to {}: {error}", choose(from), choose(to))
        }
        _ => {}
    }
}
