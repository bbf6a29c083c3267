//! `image-files=DIR`: a column of images as a column of names and a folder of files, and back.
//!
//! If the input has image columns, each image becomes a file in the folder, named by the number of its row
//! (`000000.png`, `000001.png`, …; with several image columns `COLUMN-000000.png`), and the column holds the names.
//! Plain images become PNG files. The folder appears together with the output: before, it must not exist or must be
//! empty.
//!
//! If it has none, columns of names become columns of images: those that are images in the requested type, or without
//! one those whose first name is that of a file in the folder. Names are paths inside the folder; no other file is
//! read.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch, StringArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use tempfile::TempDir;

use super::open::Opened;
use crate::error::{Context, Error, Result};
use crate::formats::ds::{Image, ImageFormat, image_from_file, image_to_file, image_type_of_file};
use crate::hub::type_text::print_field;
use crate::hub::{Effect, LossKind, Plan, Rows, Selection, native, rows};
use crate::limits::Budget;

/// The approximate size of a batch of images.
const BATCH_BYTES: usize = 16 << 20;
/// How many rows are searched for the first name of a column.
const LOOK_ROWS: u64 = 1000;

/// A planned step between images and files.
pub(super) struct ImageFiles {
    folder: PathBuf,
    way: Way,
    /// The schema of the result.
    pub(super) schema: SchemaRef,
    /// The effect on each column.
    pub(super) plan: Plan,
}

enum Way {
    Export(Vec<Exported>),
    Import(Vec<(usize, Image)>),
}

/// An image column that becomes files.
struct Exported {
    column: usize,
    image: Image,
    /// The prefix of the names of its files.
    prefix: String,
}

/// A folder that is being filled, under a temporary name.
pub(super) struct Staging {
    files: TempDir,
    folder: PathBuf,
}

impl ImageFiles {
    /// Plans the step for rows of the selection. `wanted` is the requested type.
    pub(super) fn plan(
        folder: &str,
        opened: &Opened,
        selection: &Selection,
        wanted: Option<&Schema>,
    ) -> Result<Self> {
        let schema = selection.schema();
        let folder = PathBuf::from(folder);
        let images: Vec<(usize, Image)> = (schema.fields().iter().enumerate())
            .filter_map(|(index, field)| Some((index, Image::of_field(field)?)))
            .collect();
        let mut plan = Plan::default();
        let mut fields: Vec<Arc<Field>> = schema.fields().iter().cloned().collect();
        let way = if images.is_empty() {
            let named = match wanted {
                Some(wanted) => wanted_images(schema, wanted),
                None => found_images(&folder, opened, selection)?,
            };
            if named.is_empty() {
                return Err(Error::usage(format!(
                    "no column holds images, and none holds names of images in {}",
                    folder.display()
                )));
            }
            for (index, image) in &named {
                let Some(field) = fields.get_mut(*index) else { continue };
                let image = image.field(field.name())?.with_nullable(field.is_nullable());
                let effect = Effect::checked(LossKind::Range).because("each must name such an image");
                plan.step(field.name(), print_field(field), print_field(&image), effect);
                *field = Arc::new(image);
            }
            Way::Import(named)
        } else {
            check_free(&folder)?;
            let alone = images.len() == 1;
            for (index, image) in &images {
                let Some(field) = fields.get_mut(*index) else { continue };
                let effect = match image.format {
                    ImageFormat::Plain if !image.fits_png() => Effect::impossible(
                        "PNG holds black or red, green and blue, all of uint8 or all of uint32",
                    ),
                    ImageFormat::Plain => Effect::checked(LossKind::Range).because("each becomes a PNG file"),
                    _ => Effect::widened().because("each becomes a file"),
                };
                plan.step(field.name(), print_field(field), "utf8", effect);
                *field = Arc::new(Field::new(field.name(), DataType::Utf8, field.is_nullable()));
            }
            let exported = images.into_iter().map(|(column, image)| {
                let prefix = if alone { String::new() } else { prefix(column, schema.field(column).name()) };
                Exported { column, image, prefix }
            });
            Way::Export(exported.collect())
        };
        let schema = Schema::new_with_metadata(Fields::from(fields), schema.metadata().clone());
        Ok(ImageFiles { folder, way, schema: native::without(&Arc::new(schema)), plan })
    }

    /// The rows after the step. Exported images are written to a folder that [`Staging::commit`] renames.
    pub(super) fn run(self, stream: Rows, budget: &Budget) -> Result<(Rows, Option<Staging>)> {
        let ImageFiles { folder, way, schema, .. } = self;
        let out = Arc::clone(&schema);
        match way {
            Way::Export(columns) => {
                check_free(&folder)?;
                let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
                let parent = parent.unwrap_or(Path::new("."));
                let mut builder = tempfile::Builder::new();
                builder.prefix(".pentaglot-");
                // The usual permissions of a folder; the user's mask restricts them.
                #[cfg(unix)]
                builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
                let files = builder.tempdir_in(parent);
                let files = files.map_err(|error| at(error, parent))?;
                let path = files.path().to_owned();
                let mut start = 0;
                let batches = stream.map(move |batch| {
                    let batch = batch?;
                    let batch = export(&batch, &columns, &path, start, &out)?;
                    start += batch.num_rows() as u64;
                    Ok(batch)
                });
                Ok((rows::from_batches(schema, batches), Some(Staging { files, folder })))
            }
            Way::Import(columns) => {
                let root = folder.canonicalize().map_err(|error| at(error, &folder))?;
                let budget = budget.clone();
                let mut start = 0;
                let batches = stream.flat_map(move |batch| {
                    let batches = batch.map_err(Error::from).and_then(|batch| {
                        let batches = import(&batch, &columns, &root, start, &out, &budget)?;
                        start += batch.num_rows() as u64;
                        Ok(batches)
                    });
                    match batches {
                        Ok(batches) => batches.into_iter().map(Ok).collect(),
                        Err(error) => vec![Err(error)],
                    }
                });
                Ok((rows::from_batches(schema, batches), None))
            }
        }
    }
}

impl Staging {
    /// Gives the folder its name; it is removed again if the output cannot be completed.
    pub(super) fn commit<T>(self, finish: impl FnOnce() -> Result<T>) -> Result<T> {
        check_free(&self.folder)?;
        if self.folder.exists() {
            std::fs::remove_dir(&self.folder).map_err(|error| at(error, &self.folder))?;
        }
        std::fs::rename(self.files.path(), &self.folder).map_err(|error| at(error, &self.folder))?;
        let _ = self.files.keep();
        finish().inspect_err(|_| drop(std::fs::remove_dir_all(&self.folder)))
    }
}

fn at(error: std::io::Error, path: &Path) -> Error {
    Error::from(error).field(path.display().to_string())
}

/// Returns an error unless the folder does not exist or is empty.
fn check_free(folder: &Path) -> Result<()> {
    let taken = match std::fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => std::fs::symlink_metadata(folder).is_ok(),
    };
    if !taken {
        return Ok(());
    }
    let name = folder.display();
    Err(Error::usage(format!("image-files: expected a folder that does not exist or is empty, found {name}")))
}

/// The prefix of the file names of one of several image columns: its name, with only characters that are safe in a
/// file name.
fn prefix(column: usize, name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let text: String = name.chars().take(64).map(safe).collect();
    match text == name && !name.is_empty() {
        true => format!("{text}-"),
        false => format!("{column}_{text}-"),
    }
}

fn export(
    batch: &RecordBatch,
    columns: &[Exported],
    folder: &Path,
    start: u64,
    schema: &SchemaRef,
) -> Result<RecordBatch> {
    let mut arrays = batch.columns().to_vec();
    for Exported { column, image, prefix } in columns {
        let unplanned = || Error::unsupported("images of another storage type than binary");
        let slot = arrays.get_mut(*column).ok_or_else(unplanned)?;
        let images = slot.as_binary_opt::<i32>().ok_or_else(unplanned)?;
        let mut names: Vec<Option<String>> = Vec::new();
        for (index, bytes) in images.iter().enumerate() {
            let row = start + index as u64;
            let place = |error: Error| placed(error, row, schema.field(*column).name());
            let Some(bytes) = bytes else {
                names.push(None);
                continue;
            };
            let file = image_to_file(bytes, image).map_err(place)?;
            let extension = if image.format == ImageFormat::Jpeg { "jpg" } else { "png" };
            let name = format!("{prefix}{row:06}.{extension}");
            let path = folder.join(&name);
            std::fs::write(&path, file).map_err(|error| at(error, &path))?;
            names.push(Some(name));
        }
        *slot = Arc::new(StringArray::from(names));
    }
    rows::batch(Arc::clone(schema), arrays, batch.num_rows())
}

/// The error of one cell.
fn placed(error: Error, row: u64, column: &str) -> Error {
    error.field(format!("row {row}, column {column:?}"))
}

/// Images of a batch, as several batches if they are large.
fn import(
    batch: &RecordBatch,
    columns: &[(usize, Image)],
    root: &Path,
    start: u64,
    schema: &SchemaRef,
    budget: &Budget,
) -> Result<Vec<RecordBatch>> {
    let mut done = Vec::new();
    let mut first = 0;
    while first < batch.num_rows() {
        let mut pictures: Vec<Pictures> = columns.iter().map(|_| Pictures::default()).collect();
        let mut count = 0;
        while first + count < batch.num_rows() && pictures.iter().all(|one| one.bytes.len() < BATCH_BYTES) {
            for ((column, image), pictures) in columns.iter().zip(&mut pictures) {
                let field = schema.field(*column);
                let row = start + (first + count) as u64;
                let place = |error: Error| placed(error, row, field.name());
                match text(batch.column(*column), first + count)? {
                    None => pictures.push(None),
                    Some(name) => {
                        let file = read_confined(root, name, budget).map_err(place)?;
                        let bytes = image_from_file(&file, image, budget);
                        pictures.push(Some(
                            &bytes.map_err(|error| error.field(format!("{name:?}"))).map_err(place)?,
                        ));
                    }
                }
            }
            count += 1;
        }
        let mut arrays: Vec<ArrayRef> =
            batch.columns().iter().map(|column| column.slice(first, count)).collect();
        for ((column, _), pictures) in columns.iter().zip(pictures) {
            if let Some(slot) = arrays.get_mut(*column) {
                *slot = pictures.finish()?;
            }
        }
        done.push(rows::batch(Arc::clone(schema), arrays, count)?);
        first += count;
    }
    Ok(done)
}

#[derive(Default)]
struct Pictures {
    bytes: Vec<u8>,
    lengths: Vec<usize>,
    valid: Vec<bool>,
}

impl Pictures {
    fn push(&mut self, image: Option<&[u8]>) {
        self.bytes.extend_from_slice(image.unwrap_or_default());
        self.lengths.push(image.map_or(0, <[u8]>::len));
        self.valid.push(image.is_some());
    }

    fn finish(self) -> Result<ArrayRef> {
        if i32::try_from(self.bytes.len()).is_err() {
            return Err(Error::limit(
                "the limit",
                i32::MAX,
                format!("{} bytes for an image", self.bytes.len()),
            ));
        }
        let nulls = Some(NullBuffer::from(self.valid)).filter(|nulls| nulls.null_count() > 0);
        let offsets = OffsetBuffer::from_lengths(self.lengths);
        Ok(Arc::new(BinaryArray::try_new(offsets, self.bytes.into(), nulls)?))
    }
}

/// A value of a text column.
fn text(column: &ArrayRef, row: usize) -> Result<Option<&str>> {
    if column.is_null(row) {
        return Ok(None);
    }
    match column.data_type() {
        DataType::Utf8 => Ok(Some(column.as_string::<i32>().value(row))),
        DataType::LargeUtf8 => Ok(Some(column.as_string::<i64>().value(row))),
        DataType::Utf8View => Ok(Some(column.as_string_view().value(row))),
        _ => Err(Error::unsupported("names of another type than text")),
    }
}

fn is_text(field: &Field) -> bool {
    matches!(field.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// The text columns that are images in the requested type.
fn wanted_images(schema: &Schema, wanted: &Schema) -> Vec<(usize, Image)> {
    let image = |field: &Field| {
        let alone = schema.fields().len() == 1 && wanted.fields().len() == 1;
        let mut all = wanted.fields().iter();
        let target = all.find(|target| alone || target.name() == field.name())?;
        Image::of_field(target).filter(|_| is_text(field))
    };
    let fields = schema.fields().iter().enumerate();
    fields.filter_map(|(index, field)| Some((index, image(field)?))).collect()
}

/// The text columns whose first name is that of an image in the folder.
fn found_images(folder: &Path, opened: &Opened, selection: &Selection) -> Result<Vec<(usize, Image)>> {
    if !opened.content.is_seekable() {
        return Err(Error::usage("the image columns of a stream must be given by a type"));
    }
    let root = folder.canonicalize().map_err(|error| at(error, folder))?;
    let look = selection.clone().with_rows(0..LOOK_ROWS);
    let mut first: Vec<Option<String>> = vec![None; selection.schema().fields().len()];
    for batch in opened.document.rows(&look).in_format(opened.format.info().id)? {
        let batch = batch.map_err(Error::from)?;
        for (slot, column) in first.iter_mut().zip(batch.columns()) {
            if let (None, Some(row)) = (&slot, (0..batch.num_rows()).find(|row| column.is_valid(*row))) {
                *slot = text(column, row).ok().flatten().map(str::to_owned);
            }
        }
    }
    let mut found = Vec::new();
    for (index, name) in first.into_iter().enumerate() {
        if let Some(name) = name
            && let Ok(file) = read_confined(&root, &name, &opened.budget)
            && let Ok(image) = image_type_of_file(&file, &opened.budget)
        {
            found.push((index, image));
        }
    }
    Ok(found)
}

/// The content of a file below `root`, which is a canonical path. No file outside is read, also through links or `..`
/// in the name.
fn read_confined(root: &Path, name: &str, budget: &Budget) -> Result<Vec<u8>> {
    let refused = |found: &str| {
        Error::usage(format!(
            "expected the name of a file in the folder of images, found {name:?}, which {found}"
        ))
    };
    let inside =
        |component: Component<'_>| matches!(component, Component::Normal(part) if part != OsStr::new(""));
    if name.is_empty() || name.contains('\0') || !Path::new(name).components().all(inside) {
        return Err(refused("is not a path below it"));
    }
    let path =
        root.join(name).canonicalize().map_err(|error| Error::from(error).field(format!("{name:?}")))?;
    if !path.starts_with(root) {
        return Err(refused("leads out of it"));
    }
    let kind = std::fs::metadata(&path).map_err(|error| Error::from(error).field(format!("{name:?}")))?;
    if !kind.is_file() {
        return Err(refused("is not a file"));
    }
    budget.check(kind.len()).map_err(|error| error.field(format!("{name:?}")))?;
    let file = std::fs::File::open(&path).map_err(|error| Error::from(error).field(format!("{name:?}")))?;
    let mut bytes = Vec::new();
    // A file that grows meanwhile is truncated, and then is not a valid image.
    file.take(kind.len())
        .read_to_end(&mut bytes)
        .map_err(|error| Error::from(error).field(format!("{name:?}")))?;
    Ok(bytes)
}
