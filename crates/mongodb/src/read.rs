//! A version of a table as a document: chunks are fetched when their rows are asked for, with the columns that are asked
//! for, a few ahead.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use futures::TryStreamExt;
use mongodb::bson::{Bson, Document as BsonDocument, doc};
use pentaglot::formats::bsondf::Type;
use pentaglot::formats::{Document, Findings, Node, Outline, ReadOptions, Split, Summary};
use pentaglot::hub::filter::{Interval, Limit};
use pentaglot::hub::{Rows, Selection, rows};
use pentaglot::{Budget, Control, Error, RemoteTable, Result};

use crate::FORMAT;
use crate::fetch::{Fetch, at, missing};
use crate::rows::{ChunkReader, check_place, frame_options, wrong_sum};
use crate::store::{AT_ONCE, ChunkId, Store, Version};

/// Rows of a batch, unless a user asks for another number.
const BATCH_ROWS: u64 = 64 << 10;

/// The most keys that are listed.
const MOST_KEYS: i64 = 100_000;

/// Opens the table that an address names; a collection of several tables, of which none is named, lists their keys.
pub(crate) fn open(store: Store, options: &ReadOptions) -> Result<RemoteTable> {
    let address = store.address.clone();
    let id = match (address.version(), address.key()) {
        (Some(version), _) => version,
        (None, Some(key)) => store.current(key)?.ok_or_else(|| no_key(&store, key))?,
        (None, None) => match &store.all_keys(MOST_KEYS)?[..] {
            [] => return Err(Error::usage("no table is in this collection (C.keys is empty)")),
            [(_, version)] => *version,
            keys => return Ok(container(keys.iter().map(|(key, _)| key.clone()).collect())),
        },
    };
    let version = store.version(id)?;
    if address.key().is_some_and(|key| key != version.key) {
        return Err(Error::usage(format!("version {id} is one of the key {:?}", version.key)));
    }
    if !version.is_done {
        return Err(Error::malformed(
            format_args!("version {id} to be complete"),
            "one that is being written",
        ));
    }
    let filter = range_filter(&store, &version)?;
    let document = Arc::new(TableDocument::new(store, version, options)?);
    Ok(RemoteTable::new(FORMAT, document).with_filter(filter))
}

fn no_key(store: &Store, key: &str) -> Error {
    let there = match store.all_keys(11) {
        Ok(keys) if keys.is_empty() => "there is none".to_owned(),
        Ok(keys) => {
            let more = if keys.len() > 10 { ", …" } else { "" };
            let names: Vec<&str> = keys.iter().take(10).map(|(key, _)| key.as_str()).collect();
            format!("there is {}{more}", names.join(", "))
        }
        Err(error) => return error,
    };
    Error::usage(format!("there is no key {key:?} ({there})"))
}

fn container(keys: Vec<String>) -> RemoteTable {
    let mut summary = Summary::new(FORMAT, Arc::new(arrow_schema::Schema::empty()));
    summary.members = keys;
    RemoteTable::new(FORMAT, Arc::new(Container { summary }))
}

/// The condition that `from=` and `to=` are: from the first on, up to but without the second.
fn range_filter(store: &Store, version: &Version) -> Result<Option<String>> {
    let (from, to) = store.address.range();
    if from.is_none() && to.is_none() {
        return Ok(None);
    }
    let Some(order) = store.address.order().or(version.order.as_deref()) else {
        return Err(Error::usage("from= and to= need an ordering column: order=COLUMN"));
    };
    let Some((_, kind)) = version.columns.iter().find(|(name, _)| name == order) else {
        return Err(Error::usage(format!("order: there is no column {order:?}")));
    };
    let kind = match kind {
        Type::Factor { dictionary, .. } => dictionary,
        kind => kind,
    };
    let is_number = kind.to_arrow().is_numeric();
    let literal = |text: &str| match is_number {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "''")),
    };
    let column = format!("\"{}\"", order.replace('"', "\"\""));
    let conditions: Vec<String> = [(">=", from), ("<", to)]
        .into_iter()
        .filter_map(|(operator, text)| Some(format!("{column} {operator} {}", literal(text?))))
        .collect();
    Ok(Some(conditions.join(" and ")))
}

/// A collection of several tables.
struct Container {
    summary: Summary,
}

impl Document for Container {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn outline(&self) -> Outline {
        Node::new("collection", 0, 0)
    }

    fn validate(&self, _findings: &mut Findings) -> Result<()> {
        self.summary.check_member()
    }

    fn rows(&self, _selection: &Selection) -> Result<Rows> {
        Err(self.summary.check_member().err().unwrap_or_else(|| Error::usage("no key is named")))
    }
}

/// What is known of a chunk without its frame.
#[derive(Debug, Clone)]
struct ChunkMeta {
    id: ChunkId,
    rows: Range<u64>,
    min: Bson,
    max: Bson,
}

/// One version of a table.
struct TableDocument {
    store: Store,
    version: Arc<Version>,
    metas: OnceLock<Arc<Vec<ChunkMeta>>>,
    summary: Summary,
    budget: Budget,
    control: Control,
}

impl TableDocument {
    fn new(store: Store, version: Version, options: &ReadOptions) -> Result<Self> {
        let mut summary = Summary::new(FORMAT, version.arrow_schema()?);
        summary.rows = Some(version.rows);
        let mut fact = |name: &str, value: String| summary.metadata.push((name.to_owned(), value));
        fact("key", version.key.clone());
        fact("version", version.id.to_hex());
        fact("chunks", version.chunks.len().to_string());
        if let Some(order) = &version.order {
            fact("order", order.clone());
        }
        let (budget, control) = (options.budget.clone(), options.control.clone());
        Ok(TableDocument {
            store,
            version: Arc::new(version),
            metas: OnceLock::new(),
            summary,
            budget,
            control,
        })
    }

    /// Where the rows of each chunk are; asked for once.
    fn metas(&self) -> Result<Arc<Vec<ChunkMeta>>> {
        if let Some(metas) = self.metas.get() {
            return Ok(Arc::clone(metas));
        }
        let mut found: HashMap<ChunkId, BsonDocument> = HashMap::new();
        let collection = self.store.chunks.clone_with_type::<BsonDocument>();
        for some in Version::groups(&self.version.chunks, AT_ONCE) {
            let filter = Version::chunk_filter(&self.version.key, some);
            let fields = doc! { "first": 1, "rows": 1, "min": 1, "max": 1 };
            let documents: Vec<BsonDocument> = self.store.wait(async {
                collection.find(filter.clone()).projection(fields.clone()).await?.try_collect().await
            })?;
            for document in documents {
                let id = document.get_document("_id").ok().and_then(ChunkId::from_bson);
                found.extend(id.map(|id| (id, document)));
            }
        }
        let mut metas = Vec::new();
        let mut start = 0;
        for id in &self.version.chunks {
            let chunk = found.get(id).ok_or_else(|| missing(*id))?;
            let field = |name: &str| {
                let value = chunk.get(name)?;
                value.as_i64().or_else(|| value.as_i32().map(i64::from))
            };
            let count = check_place(field, start).map_err(|error| at(*id, error))?;
            let bound = |name: &str| chunk.get(name).cloned().unwrap_or(Bson::Null);
            metas.push(ChunkMeta {
                id: *id,
                rows: start..start + count,
                min: bound("min"),
                max: bound("max"),
            });
            start += count;
        }
        if start != self.version.rows {
            return Err(wrong_sum(self.version.rows, start));
        }
        Ok(Arc::clone(self.metas.get_or_init(|| Arc::new(metas))))
    }

    /// The chunks that hold the rows of a reader, which is told where the first of them begins.
    ///
    /// All chunks say themselves where they begin: asking for that first would let the server read each of them twice.
    fn chunks_to_read(&self, reader: &mut ChunkReader) -> Result<Vec<ChunkId>> {
        let range = &reader.range;
        if *range == (0..self.version.rows) {
            reader.all_rows = Some(self.version.rows);
            return Ok(self.version.chunks.clone());
        }
        let metas = self.metas()?;
        let overlaps = |meta: &&ChunkMeta| meta.rows.start < range.end && range.start < meta.rows.end;
        let mut some: Vec<&ChunkMeta> = metas.iter().filter(overlaps).collect();
        if some.is_empty() {
            // A batch without rows has the dictionaries of the first chunk.
            some.extend(metas.first());
        }
        reader.next_row = some.first().map_or(0, |meta| meta.rows.start);
        Ok(some.iter().map(|meta| meta.id).collect())
    }

    /// Starts to fetch chunks, with some columns.
    fn fetch(&self, chunks: &[ChunkId], names: &[String]) -> Result<Fetch> {
        let mut fields = None;
        let is_path = |name: &String| name.is_empty() || name.starts_with('$') || name.contains('.');
        if names.len() < self.version.columns.len() && !names.iter().any(is_path) {
            let mut projection = doc! { "first": 1, "rows": 1 };
            projection.extend(names.iter().map(|name| (format!("df.{name}"), Bson::Int32(1))));
            fields = Some(projection);
        }
        Fetch::start(&self.store, &self.version.key, chunks.to_vec(), fields)
    }
}

impl Document for TableDocument {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn splits(&self, wanted: usize) -> Vec<Split> {
        let Ok(metas) = self.metas() else { return Split::whole(&self.summary) };
        let each = metas.len().div_ceil(wanted.max(1)).max(1);
        let split = |some: &[ChunkMeta]| {
            let rows = some.first()?.rows.start..some.last()?.rows.end;
            (!rows.is_empty()).then_some(Split { rows, bytes: 0..0 })
        };
        metas.chunks(each).filter_map(split).collect()
    }

    fn candidates(&self, intervals: &[Interval]) -> Result<Option<Vec<Range<u64>>>> {
        let Some(order) = &self.version.order else { return Ok(None) };
        let own = |interval: &&Interval| {
            self.version.columns.get(interval.field).is_some_and(|(name, _)| name == order)
        };
        let intervals: Vec<&Interval> = intervals.iter().filter(own).collect();
        if intervals.is_empty() {
            return Ok(None);
        }
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for meta in self.metas()?.iter() {
            if !intervals.iter().all(|interval| may_match(meta, interval)) {
                continue;
            }
            match ranges.last_mut() {
                Some(last) if last.end == meta.rows.start => last.end = meta.rows.end,
                _ => ranges.push(meta.rows.clone()),
            }
        }
        Ok(Some(ranges))
    }

    fn outline(&self) -> Outline {
        Node::new("collection", 0, 0)
    }

    /// Every chunk is fetched and its frame checked as in a file.
    fn validate(&self, findings: &mut Findings) -> Result<()> {
        let chunks: Vec<ChunkId> = self.metas()?.iter().map(|meta| meta.id).collect();
        let names: Vec<String> = self.version.columns.iter().map(|(name, _)| name.clone()).collect();
        let mut fetch = self.fetch(&chunks, &names)?;
        let registry = pentaglot::Registry::default();
        let format = registry.get(FORMAT)?;
        for chunk in &chunks {
            self.control.check()?;
            let Some(document) = fetch.next(&self.store)? else { break };
            let source = pentaglot::Source::from_bytes("chunk", document.into_bytes());
            let mut options = frame_options(&self.budget, &self.control);
            options.member = Some("df".to_owned());
            match format.open(source, &options) {
                Ok(frame) => frame.validate(findings)?,
                Err(error) => findings.error(&at(*chunk, error)),
            }
        }
        Ok(())
    }

    fn rows(&self, selection: &Selection) -> Result<Rows> {
        let range = selection.range(self.version.rows);
        let schema = Arc::clone(selection.schema());
        let wanted: Vec<(String, Type)> = selection
            .fields()
            .into_iter()
            .filter_map(|field| self.version.columns.get(field).cloned())
            .collect();
        let mut names: Vec<String> = wanted.iter().map(|(name, _)| name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        let mut reader = ChunkReader {
            store: self.store.clone(),
            budget: self.budget.clone(),
            control: self.control.clone(),
            wanted,
            fetch: None,
            chunks: Vec::new().into_iter(),
            next_row: 0,
            all_rows: None,
            schema: Arc::clone(&schema),
            batch_rows: selection.batch_rows_or(BATCH_ROWS as usize) as u64,
            open: None,
            failed: false,
            range,
        };
        if names.is_empty() {
            reader.open = Some((Vec::new(), reader.range.clone()));
        } else {
            reader.chunks = self.chunks_to_read(&mut reader)?.into_iter();
            reader.fetch = Some(self.fetch(reader.chunks.as_slice(), &names)?);
        }
        Ok(rows::from_batches(schema, reader))
    }
}

/// Whether a chunk can hold values of an interval.
fn may_match(meta: &ChunkMeta, interval: &Interval) -> bool {
    let reaches = |bound: &Bson, limit: &Option<Limit>, is_low: bool| {
        let Some(limit) = limit else { return true };
        let order = match (bound, limit) {
            (Bson::Int64(bound), Limit::Number(limit)) => bound.partial_cmp(limit),
            (Bson::Int32(bound), Limit::Number(limit)) => i64::from(*bound).partial_cmp(limit),
            (Bson::Double(bound), Limit::Float(limit)) => bound.partial_cmp(limit),
            (Bson::String(bound), Limit::Text(limit)) => Some(bound.as_str().cmp(limit.as_str())),
            _ => None,
        };
        // What cannot be compared may match.
        order.is_none_or(|order| if is_low { order.is_ge() } else { order.is_le() })
    };
    reaches(&meta.max, &interval.low, true) && reaches(&meta.min, &interval.high, false)
}
