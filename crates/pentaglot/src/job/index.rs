//! `index`: side indexes of the formats that have them.

use super::names;
use super::names::split_member;
use super::open::{OpenOptions, packing_of, target};
use super::options::{check, of_side};
use crate::error::{Context, Error, Result};
use crate::formats::{ReadOptions, Side};
use crate::registry::Registry;

/// The bytes of `FILE.idx` for a file of any format that has side indexes.
pub fn index(registry: &Registry, name: &str, options: &OpenOptions) -> Result<Vec<u8>> {
    if name == "-" {
        return Err(Error::usage("an index is beside its file, and standard input is none"));
    }
    if let (_, Some(member)) = split_member(name) {
        return Err(Error::usage(format!("an index is of a whole file, not of its member {member:?}")));
    }
    let source = names::source(registry, name)?;
    let named = options.from.as_deref().map(|text| target(registry, text)).transpose()?;
    if let Some(packing) = packing_of(&source, named.as_ref())? {
        let name = packing.name();
        return Err(Error::unsupported(format!("an index of a {name} file (unpack it first)")));
    }
    let (format, dialect) = match named {
        Some(named) => (named.format, named.dialect),
        None => (registry.detect(&source)?, None),
    };
    let info = format.info();
    let Some(build) = info.index else {
        let others: Vec<_> =
            registry.formats().map(|format| format.info()).filter(|info| info.index.is_some()).collect();
        let others: Vec<_> = others.iter().map(|info| info.id).collect();
        return Err(Error::unsupported(format!("an index for {} ({} have one)", info.id, others.join(", "))));
    };
    check(&options.options, &[info], None)?;
    source.attach(&options.control);
    source.set_budget(&options.budget);
    let mut read = ReadOptions::default();
    read.dialect = dialect.map(str::to_owned);
    read.type_text = options.type_text.clone();
    read.options = of_side(&options.options, Side::Read, info);
    read.budget = options.budget.clone();
    read.control = options.control.clone();
    build(&source, &read).in_format(info.id)
}
