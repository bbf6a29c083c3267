//! Detects the dialect of a file. All three have version 1; the exact length and the structure distinguish
//! them.

use crate::error::{Error, ErrorKind, Hint, Result};
use crate::limits::Budget;
use crate::source::Source;

use super::ID;
use super::layout::{DbdfLayout, Fault};
use super::meta::Meta;
use super::tiling;
use super::types::{DataType, Dialect, ValueType};

/// A file's layout and the reason for its dialect.
pub(super) struct Chosen {
    pub(super) layout: DbdfLayout,
    pub(super) reason: String,
    pub(super) also_fits: Vec<Dialect>,
    pub(super) note: Option<String>,
}

/// Detects the dialect of a file. If none fits, returns the error of the dialect in which most of the file is
/// valid.
pub(super) fn choose(
    source: &Source,
    forced: Option<Dialect>,
    meta: Option<&Meta>,
    (budget, damaged): (&Budget, bool),
) -> Result<Chosen> {
    if let Some(dialect) = forced {
        let layout = match DbdfLayout::read(source, dialect, budget) {
            Err(fault) if damaged => beginning(source, dialect, budget).ok_or(fault)?,
            layout => layout?,
        };
        return Ok(Chosen {
            layout,
            reason: "named by the user".to_owned(),
            also_fits: Vec::new(),
            note: None,
        });
    }
    let mut fitting: Vec<DbdfLayout> = Vec::new();
    let mut best: Option<Fault> = None;
    for dialect in Dialect::ALL {
        // Any bytes are valid padding in 0.1, so it is tried last. And if DAPHNE's single block has every cell, a block
        // of the document could only be followed by empty blocks.
        if fitting.iter().any(is_settled) || (dialect == Dialect::Daphne01 && !fitting.is_empty()) {
            break;
        }
        match DbdfLayout::walk(source, dialect, budget, false) {
            Ok(layout) => fitting.push(layout),
            Err(fault) if matches!(fault.error.kind(), ErrorKind::Io | ErrorKind::Usage) => {
                return Err(fault.error);
            }
            // The dialect in which most of the file is valid is the most likely one; at a tie, DAPHNE's.
            Err(fault)
                if best
                    .as_ref()
                    .is_none_or(|best| plausible_bytes(&fault, dialect, source) > best.valid_bytes) =>
            {
                best = Some(fault);
            }
            Err(_) => {}
        }
    }
    if let [daphne, spec] = fitting.as_slice() {
        let frame = daphne.header.data_type == DataType::Frame;
        if !is_tiled(spec) {
            fitting.truncate(1);
        } else if frame && spec.header.rows > 0 {
            // Valid block headers are stronger evidence than a length that fits by chance.
            fitting.remove(0);
        }
    }
    if damaged {
        fitting.retain(is_tiled);
    }
    let bytes = source.len().unwrap_or(0);
    let mut fitting = fitting.into_iter();
    let Some(first) = fitting.next() else {
        if damaged {
            return of_damaged(source, meta, budget, best.map(|best| best.error));
        }
        return Err(best.map_or_else(|| Error::malformed("a dbdf file", "something else"), |best| best.error));
    };
    let others: Vec<DbdfLayout> = fitting.collect();
    if others.is_empty() {
        let reason = format!("the structure takes exactly {bytes} bytes in no other dialect");
        return Ok(Chosen { layout: first, reason, also_fits: Vec::new(), note: None });
    }
    let all: Vec<DbdfLayout> = std::iter::once(first).chain(others).collect();
    let by_meta = meta.and_then(|meta| all.iter().position(|layout| meta.fits_types(&layout.header)));
    let taken = by_meta.unwrap_or(0);
    let also_fits: Vec<Dialect> = all
        .iter()
        .enumerate()
        .filter(|(index, _)| *index != taken)
        .map(|(_, layout)| layout.header.dialect)
        .collect();
    let names: Vec<&str> = also_fits.iter().map(|dialect| dialect.name()).collect();
    let layout =
        all.into_iter().nth(taken).ok_or_else(|| Error::malformed("a dbdf file", "something else"))?;
    let dialect = layout.header.dialect;
    let (reason, note) = match by_meta {
        Some(_) => (format!("several dialects fit {bytes} bytes; the .meta file beside it decides"), None),
        None => (
            format!("several dialects fit {bytes} bytes, and no other program writes them"),
            Some(format!(
                "the same bytes also fit {}; taken as {dialect} (another dialect can be named)",
                names.join(" and ")
            )),
        ),
    };
    Ok(Chosen { layout, reason, also_fits, note })
}

/// The layout of what is there of a damaged file, if that is anything.
fn beginning(source: &Source, dialect: Dialect, budget: &Budget) -> Option<DbdfLayout> {
    let layout = DbdfLayout::walk(source, dialect, budget, true).ok()?;
    Some(layout).filter(|layout| !layout.blocks.is_empty())
}

/// The dialect of a damaged file: the only one in which its beginning makes sense, or the one that its `.meta` says.
fn of_damaged(source: &Source, meta: Option<&Meta>, budget: &Budget, fault: Option<Error>) -> Result<Chosen> {
    let fault = || fault.unwrap_or_else(|| Error::malformed("a dbdf file", "something else"));
    let layouts = [Dialect::Daphne, Dialect::Spec].map(|dialect| beginning(source, dialect, budget));
    // Strings cannot be read, and their code is the document's int64.
    let is_readable = |layout: &DbdfLayout| !layout.header.value_types.contains(&ValueType::Str);
    // Its one block ends before the file does.
    let ends = |layout: &DbdfLayout| {
        let end = layout.blocks.last().map_or(0, |block| block.data_offset + block.data_bytes);
        layout.header.dialect == Dialect::Daphne && end < layout.bytes
    };
    let mut layouts: Vec<DbdfLayout> =
        layouts.into_iter().flatten().filter(|layout| is_readable(layout) && !ends(layout)).collect();
    let by_meta = meta.and_then(|meta| layouts.iter().position(|layout| meta.fits_types(&layout.header)));
    let reason = match (layouts.as_slice(), by_meta) {
        (_, Some(_)) => "the .meta file beside it decides",
        ([_], None) => "its beginning makes sense in no other dialect",
        // The same values at the same places.
        ([one, other], None)
            if one.header.value_types == other.header.value_types && one.blocks == other.blocks =>
        {
            "its beginning is the same in all dialects"
        }
        ([], None) => return Err(fault()),
        _ => {
            let names: Vec<String> =
                layouts.iter().map(|layout| format!("{ID}:{}", layout.header.dialect.name())).collect();
            return Err(fault().hint(Hint::FromOne(names.join(" or ").into())));
        }
    };
    let layout = layouts.swap_remove(by_meta.unwrap_or(0));
    Ok(Chosen { layout, reason: reason.to_owned(), also_fits: Vec::new(), note: None })
}

/// Whether no other dialect needs to be tried: a matrix of DAPHNE's that has cells, or a single value.
fn is_settled(layout: &DbdfLayout) -> bool {
    let header = &layout.header;
    header.dialect == Dialect::Daphne
        && match header.data_type {
            DataType::Frame => false,
            DataType::Scalar => true,
            DataType::DenseMatrix | DataType::CsrMatrix => header.rows > 0 && header.cols > 0,
        }
}

/// How much of a file is valid in a dialect that it does not fit.
fn plausible_bytes(fault: &Fault, dialect: Dialect, source: &Source) -> u64 {
    let mut code = [0];
    let code = source.read_at(18, &mut code).map_or(0, |_| u8::from_le_bytes(code));
    match dialect {
        // Strings are rare, and their codes are the document's int64 and float.
        Dialect::Daphne if matches!(code, 8 | 9) => fault.valid_bytes.min(18),
        // Any bytes are valid padding, so only a position of zero is evidence.
        Dialect::Daphne01 if fault.valid_bytes < 41 => 0,
        _ => fault.valid_bytes,
    }
}

fn is_tiled(layout: &DbdfLayout) -> bool {
    let mut sound = true;
    tiling::check(layout, |_| {
        sound = false;
        false
    });
    sound
}
