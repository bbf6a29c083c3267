//! Which dialect a file has. All three say version 1; the exact length and the structure tell them apart.

use crate::error::{Error, ErrorKind, Result};
use crate::limits::Budget;
use crate::source::Source;

use super::layout::Layout;
use super::meta::Meta;
use super::tiling;
use super::types::Dialect;

/// A file's layout and why it is read that way.
pub(super) struct Chosen {
    pub(super) layout: Layout,
    pub(super) reason: String,
    pub(super) also_fits: Vec<Dialect>,
    pub(super) note: Option<String>,
}

/// Finds the dialect of a file, or errs as the dialect that came furthest does.
pub(super) fn choose(
    source: &Source,
    forced: Option<Dialect>,
    meta: Option<&Meta>,
    budget: &Budget,
) -> Result<Chosen> {
    if let Some(dialect) = forced {
        let layout = Layout::read(source, dialect, budget)?;
        return Ok(Chosen { layout, reason: "as asked for".to_owned(), also_fits: Vec::new(), note: None });
    }
    let mut fitting = Vec::new();
    let mut worst: Option<Error> = None;
    for dialect in Dialect::ALL {
        match Layout::read(source, dialect, budget) {
            Ok(layout) => fitting.push(layout),
            Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::Usage) => return Err(error),
            // The dialect whose walk came furthest is what the file was meant to be; DAPHNE's own at a draw.
            Err(error) if worst.as_ref().is_none_or(|worst| error.offset() > worst.offset()) => {
                worst = Some(error)
            }
            Err(_) => {}
        }
    }
    if fitting.len() > 1 {
        let sound: Vec<Layout> = fitting.iter().filter(|layout| is_tiled(layout)).cloned().collect();
        if !sound.is_empty() {
            fitting = sound;
        }
    }
    let bytes = source.len().unwrap_or(0);
    let mut fitting = fitting.into_iter();
    let Some(first) = fitting.next() else {
        return Err(worst.unwrap_or_else(|| Error::malformed("a dbdf file", "something else")));
    };
    let others: Vec<Layout> = fitting.collect();
    if others.is_empty() {
        let reason = format!("the structure takes exactly {bytes} bytes in no other dialect");
        return Ok(Chosen { layout: first, reason, also_fits: Vec::new(), note: None });
    }
    let all: Vec<Layout> = std::iter::once(first).chain(others).collect();
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
                "the same bytes also fit {}; taken as {dialect} (--from dbdf:DIALECT names another)",
                names.join(" and ")
            )),
        ),
    };
    Ok(Chosen { layout, reason, also_fits, note })
}

fn is_tiled(layout: &Layout) -> bool {
    let mut sound = true;
    tiling::check(layout, |_| {
        sound = false;
        false
    });
    sound
}
