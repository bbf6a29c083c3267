//! What the fuzz targets do with their bytes. Errors are fine; panics, hangs and broken promises are not.

mod back;
#[path = "../../crates/pentaglot/src/testing/exceptions.rs"]
mod exceptions;
mod read;
mod types;

use pentaglot::Registry;
use pentaglot::job::OpenOptions;

/// What is done with the bytes.
#[derive(Debug, PartialEq)]
pub enum Target {
    /// Opens them as a format, reads, outlines and validates them; reading and validating must agree.
    Read(String),
    /// Converts a file to a format and reads it back: the same data, unless the plan said otherwise.
    Back,
    /// Parses them as a type, or as a condition.
    Types,
}

impl Target {
    /// The names of all targets.
    pub fn names() -> Vec<String> {
        let registry = Registry::default();
        let formats = registry.formats().map(|format| format.info().id.to_owned());
        formats.chain(["back".to_owned(), "types".to_owned()]).collect()
    }

    /// The target of this name.
    pub fn parse(name: &str) -> Option<Self> {
        if !Target::names().iter().any(|known| known == name) {
            return None;
        }
        Some(match name {
            "back" => Target::Back,
            "types" => Target::Types,
            format => Target::Read(format.to_owned()),
        })
    }

    /// Runs it.
    pub fn run(&self, data: &[u8]) {
        match self {
            Target::Read(format) => read::run(format, data),
            Target::Back => back::run(data),
            Target::Types => types::run(data),
        }
    }
}

/// Opens files as `format`, with little memory.
fn options(format: &str) -> OpenOptions {
    let mut options = OpenOptions::default();
    options.from = Some(format.to_owned());
    let mut limits = pentaglot::Limits::default();
    limits.max_alloc = 64 << 20;
    limits.max_free_rows = 1 << 12;
    options.budget = limits.budget();
    options.control = pentaglot::Control::new(1);
    options
}
