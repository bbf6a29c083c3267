//! Putting data in: rows to chunks to packs, then a root.
//!
//! ```text
//! batch --enc, cut--> plain chunks --BLAKE3--> new ones --zstd--> pack
//!   `--> identity                                                        then roots/IDENTITY
//! ```
//!
//! Columns are cut and chunks compressed side by side. Batches are gathered first, so that there is work for all threads.

use std::collections::HashSet;
use std::io::{BufWriter, Write as _};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, FieldRef, Schema};
use rayon::prelude::*;

use super::column::{ColumnCutter, Plain};
use super::files::{Files, Item, PACKS, ROOTS, now};
use super::index::Index;
use super::pack::{self, Digest, PackWriter};
use super::root::{Chunk, Dictionary, Origin, Root};
use super::{PutOptions, Stored, schema};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::hub::native::NATIVE_KEY;
use crate::hub::{Form, Rows};
use crate::identity::{self, IdentityOptions, RowHasher};

/// Bytes of batches that are worked on together, at most.
const STEP_BYTES: usize = 8 << 20;
/// Values of a dictionary that is kept.
const MAX_DICTIONARY: usize = 1 << 20;

/// Chunks on their way into packs.
struct Packer {
    files: Arc<dyn Files>,
    index: Index,
    control: Control,
    pack: Option<PackWriter>,
    /// What the pack that is being written has.
    pending: HashSet<Digest>,
    new_bytes: u64,
}

impl Packer {
    /// Stores the chunks that the store does not have; says what each is.
    fn store(&mut self, plain: Vec<Plain>) -> Result<Vec<Chunk>> {
        let digests: Vec<Digest> = self
            .control
            .install(|| plain.par_iter().map(|chunk| *blake3::hash(&chunk.bytes).as_bytes()).collect())?;
        let mut new = Vec::new();
        let mut seen: HashSet<Digest> = HashSet::new();
        let mut chunks = Vec::new();
        for (chunk, digest) in plain.iter().zip(&digests) {
            let length = chunk.bytes.len();
            let bytes = u32::try_from(length)
                .map_err(|_| Error::limit("the limit", u32::MAX, format!("a value of {length} bytes")))?;
            chunks.push(Chunk { rows: chunk.rows, bytes, digest: *digest });
            if !self.pending.contains(digest) && seen.insert(*digest) && self.index.find(digest)?.is_none() {
                new.push((*digest, chunk));
            }
        }
        let compress = |(digest, chunk): &(Digest, &Plain)| {
            let frame = pack::compress(&chunk.bytes)?;
            Ok::<_, Error>((*digest, chunk.bytes.len() as u32, frame))
        };
        let frames: Vec<Result<_>> = self.control.install(|| new.par_iter().map(compress).collect())?;
        for frame in frames {
            let (digest, plain, frame) = frame?;
            self.push(digest, plain, &frame)?;
        }
        Ok(chunks)
    }

    fn push(&mut self, digest: Digest, plain: u32, frame: &[u8]) -> Result<()> {
        if self.pack.as_ref().is_some_and(|pack| !pack.fits(frame.len())) {
            self.end_pack()?;
        }
        if self.pack.is_none() {
            self.pack = Some(PackWriter::new(self.files.as_ref())?);
        }
        if let Some(pack) = &mut self.pack {
            pack.push(digest, plain, frame)?;
        }
        self.pending.insert(digest);
        Ok(())
    }

    fn end_pack(&mut self) -> Result<()> {
        if let Some(pack) = self.pack.take() {
            let entries = pack.entries().to_vec();
            let (name, bytes) = pack.finish(self.files.as_ref())?;
            self.index.add(&Item { name, bytes, age: None }, &entries)?;
            self.new_bytes += bytes;
            self.pending.clear();
        }
        Ok(())
    }
}

/// A column on its way.
struct ColumnState {
    cutter: ColumnCutter,
    chunks: Vec<Chunk>,
    dictionary: Option<KnownDictionary>,
}

/// The dictionary that all batches of a column agree on so far.
struct KnownDictionary {
    values: ArrayRef,
}

impl ColumnState {
    fn new(field: &Field, is_matrix: bool) -> Self {
        let dictionary = match field.data_type() {
            DataType::Dictionary(_, value) => {
                Some(KnownDictionary { values: arrow_array::new_empty_array(value) })
            }
            _ => None,
        };
        ColumnState {
            cutter: ColumnCutter::new(field.data_type(), is_matrix),
            chunks: Vec::new(),
            dictionary,
        }
    }

    /// Whether the dictionary of a batch is the known one, or continues it; else the column is stored as plain values.
    fn look_at_dictionary(&mut self, array: &ArrayRef) {
        let Some(known) = &mut self.dictionary else { return };
        let values = array.as_any_dictionary().values();
        let count = known.values.len();
        let is_same = Arc::ptr_eq(values, &known.values)
            || values.len() >= count && values.slice(0, count).to_data() == known.values.to_data();
        let is_kept = is_same && values.len() <= MAX_DICTIONARY && values.null_count() == 0;
        match is_kept {
            true => known.values = Arc::clone(values),
            false => self.dictionary = None,
        }
    }
}

/// Stores rows. The caller has the shared lock.
pub(super) fn put(files: &Arc<dyn Files>, rows: Rows, options: &PutOptions) -> Result<Stored> {
    let mut own = IdentityOptions::default();
    own.budget = options.budget.clone();
    own.control = options.control.clone();
    let rows = identity::as_matrix(rows, &own)?;
    let source = rows.schema();
    let index = Index::read_reusable(Arc::clone(files), &options.budget, &options.control)?;
    let control = options.control.clone();
    let pending = HashSet::new();
    let mut packer = Packer { files: Arc::clone(files), index, control, pack: None, pending, new_bytes: 0 };
    let mut hasher = RowHasher::new(&source, &own)?;
    let is_matrix = matches!(Form::of(&source), Form::Dense | Form::Sparse);
    let mut columns: Vec<ColumnState> =
        source.fields().iter().map(|field| ColumnState::new(field, is_matrix)).collect();
    let (mut waiting, mut bytes) = (Vec::new(), 0);
    for batch in own.overlapped(rows)? {
        let batch = batch?;
        let (count, size) = (batch.num_rows(), batch.columns().iter().map(slice_bytes).sum::<usize>());
        // A large batch is worked on in parts: it is in memory several times.
        let part = (count.saturating_mul(STEP_BYTES) / size.max(1)).clamp(1, count.max(1));
        for start in (0..count).step_by(part) {
            let part = batch.slice(start, part.min(count - start));
            hasher.push(&part)?;
            bytes += size * part.num_rows() / count;
            waiting.push(part);
            if bytes >= STEP_BYTES / 2 {
                step(&mut packer, &mut columns, &std::mem::take(&mut waiting))?;
                bytes = 0;
            }
        }
    }
    step(&mut packer, &mut columns, &waiting)?;
    let mut fields: Vec<FieldRef> = Vec::new();
    let (mut chunks, mut dictionaries) = (Vec::new(), Vec::new());
    for (index, (column, field)) in columns.into_iter().zip(source.fields()).enumerate() {
        let (mut own, mut rest) = (column.chunks, Vec::new());
        column.cutter.finish(&mut rest);
        own.append(&mut packer.store(rest)?);
        chunks.push(own);
        fields.push(Arc::new(match (column.dictionary, schema::plain_dictionary(field)) {
            (Some(dictionary), Some(field)) => {
                let chunks = packer.store(cut_all(&dictionary.values)?)?;
                dictionaries.push(Dictionary { column: index as u32, chunks });
                field
            }
            _ => schema::plain(field),
        }));
    }
    packer.end_pack()?;
    files.sync(PACKS)?;
    let identity = hasher.finish()?;
    let mut metadata = source.metadata().clone();
    let native = metadata.remove(NATIVE_KEY).unwrap_or_default();
    let origin = Origin {
        format: options.format.clone().unwrap_or_default(),
        name: options.name.clone().unwrap_or_default(),
        time: options.time.unwrap_or_else(now),
        schema: schema::to_bytes(&Schema::new_with_metadata(fields, metadata)),
        native,
        dictionaries,
    };
    let root = Root { identity, chunks, origins: vec![origin], held: None };
    let root_bytes = write_root(files.as_ref(), root, options)?;
    let (identity, new_bytes) = (root_bytes.0, packer.new_bytes + root_bytes.1);
    Ok(Stored { identity, new_bytes })
}

fn cut_all(values: &ArrayRef) -> Result<Vec<Plain>> {
    let mut cutter = ColumnCutter::new(values.data_type(), false);
    let mut chunks = Vec::new();
    cutter.push(values, &mut chunks)?;
    cutter.finish(&mut chunks);
    Ok(chunks)
}

fn slice_bytes(array: &ArrayRef) -> usize {
    array.to_data().get_slice_memory_size().unwrap_or(0)
}

/// Cuts some batches, and stores the chunks that are complete.
fn step(packer: &mut Packer, columns: &mut [ColumnState], batches: &[RecordBatch]) -> Result<()> {
    if batches.is_empty() {
        return Ok(());
    }
    let cut = |(index, column): (usize, &mut ColumnState)| {
        let mut chunks = Vec::new();
        for batch in batches {
            let array = batch.column(index);
            column.look_at_dictionary(array);
            column.cutter.push(array, &mut chunks)?;
        }
        Ok(chunks)
    };
    let cut: Vec<Result<Vec<Plain>>> =
        packer.control.install(|| columns.par_iter_mut().enumerate().map(cut).collect())?;
    let cut: Vec<Vec<Plain>> = cut.into_iter().collect::<Result<_>>()?;
    let counts: Vec<usize> = cut.iter().map(Vec::len).collect();
    let mut stored = packer.store(cut.into_iter().flatten().collect())?.into_iter();
    for (column, count) in columns.iter_mut().zip(counts) {
        column.chunks.extend(stored.by_ref().take(count));
    }
    Ok(())
}

/// Writes the root, last of all; gives the identity and the bytes of the file.
fn write_root(files: &dyn Files, mut root: Root, options: &PutOptions) -> Result<(identity::Identity, u64)> {
    let id = root.identity.cid()?.to_string();
    let name = format!("{ROOTS}/{id}");
    let older = files.open(&name).and_then(|source| Root::read(&source, &id, &options.budget));
    // A root that is damaged is replaced.
    if let Ok(older) = older {
        root.keep_origins(older);
    }
    let mut file = BufWriter::new(files.create()?);
    root.write(&mut file)?;
    let cannot = |error| Error::io("cannot write a root", error);
    file.flush().map_err(cannot)?;
    let file = file.into_inner().map_err(|error| cannot(error.into_error()))?;
    let bytes = file.as_file().metadata().map_err(cannot)?.len();
    files.commit(file, &name)?;
    files.sync(ROOTS)?;
    Ok((root.identity, bytes))
}
