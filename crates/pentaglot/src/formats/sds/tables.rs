//! A pangenome file as tables: samples, contigs, paths, nodes, edges, and the lines of its GFA.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::{LargeStringBuilder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::containers::{Container, Table};
use super::gfa::Lines;
use super::graph::{Graph, Names};
use crate::error::{Error, Result};
use crate::formats::sds::ID;
use crate::hub::{native, rows};
use crate::limits::Budget;

impl Table {
    pub(super) fn schema(self) -> Schema {
        let text = |name: &str| Field::new(name, DataType::Utf8, false);
        let number = |name: &str| Field::new(name, DataType::UInt64, false);
        let small = |name: &str| Field::new(name, DataType::UInt32, false);
        match self {
            Table::Samples | Table::Contigs => Schema::new(vec![text("name")]),
            Table::Paths => {
                Schema::new(vec![text("sample"), text("contig"), small("phase"), small("fragment")])
            }
            Table::Nodes { has_sequences: true } => {
                Schema::new(vec![number("id"), text("sequence"), number("length")])
            }
            Table::Nodes { .. } => Schema::new(vec![number("id")]),
            Table::Edges => Schema::new(vec![
                number("from"),
                text("from_orientation"),
                number("to"),
                text("to_orientation"),
            ]),
            Table::Gfa => {
                native::with(Schema::new(vec![Field::new("line", DataType::LargeUtf8, false)]), ID, NATIVE)
            }
        }
    }

    /// The number of rows, if the file declares it.
    pub(super) fn row_count(self, container: &Container) -> Result<Option<u64>> {
        let names = |count: fn(&Names) -> u64| Ok(Names::open(container)?.as_ref().map(count));
        match self {
            Table::Samples => names(|names| names.sample_count),
            Table::Contigs => names(|names| names.contig_count),
            Table::Paths => names(Names::path_count),
            Table::Nodes { has_sequences: true } => super::graph::field(container, "graph.nodes").map(Some),
            Table::Nodes { .. } | Table::Edges | Table::Gfa => Ok(None),
        }
    }

    /// Opens the table; with `by_nodes`, nodes keep their ids also if they are parts of segments.
    pub(super) fn open(self, container: &Container, budget: &Budget, by_nodes: bool) -> Result<OpenTable> {
        let content = match self {
            Table::Samples | Table::Contigs | Table::Paths => {
                let names = Names::open(container)?;
                Opened::Names(Arc::new(names.ok_or_else(|| Error::malformed("metadata", "none"))?))
            }
            _ => {
                let mut graph = Graph::open(container, budget)?;
                graph.segments = graph.segments.filter(|_| !by_nodes);
                Opened::Graph(Arc::new(graph))
            }
        };
        Ok(OpenTable { table: self, content, budget: budget.clone() })
    }
}

/// The native type of the lines of a GFA file.
pub(super) const NATIVE: &str = "gfa";

enum Opened {
    Names(Arc<Names>),
    Graph(Arc<Graph>),
}

/// A table that is ready to be read.
pub(super) struct OpenTable {
    table: Table,
    content: Opened,
    budget: Budget,
}

/// Bytes of text in a batch.
const BATCH_BYTES: usize = 1 << 20;

impl OpenTable {
    /// The rows of a range, in batches.
    pub(super) fn batches(
        &self,
        range: Range<u64>,
        size: u64,
        schema: SchemaRef,
    ) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + Send>> {
        let table = self.table;
        let skip = usize::try_from(range.start).unwrap_or(usize::MAX);
        let take = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let all: Box<dyn Iterator<Item = Result<Row>> + Send> = match (table, &self.content) {
            (Table::Gfa, Opened::Graph(graph)) => {
                let lines = Lines::new(Arc::clone(graph), &self.budget)?;
                Box::new(lines.map(|line| line.map(Row::Line)))
            }
            (Table::Nodes { has_sequences }, Opened::Graph(graph)) => {
                let graph = Arc::clone(graph);
                Box::new(graph.ids().filter_map(move |id| node(&graph, id, has_sequences).transpose()))
            }
            (Table::Edges, Opened::Graph(graph)) => {
                let graph = Arc::clone(graph);
                Box::new(graph.ids().flat_map(move |id| edges(&graph, id)))
            }
            (_, Opened::Names(names)) => {
                let count = match table {
                    Table::Samples => names.sample_count,
                    Table::Contigs => names.contig_count,
                    _ => names.path_count(),
                };
                // Samples and contigs without names take no bytes of the file.
                if table == Table::Samples && names.samples.is_none()
                    || table == Table::Contigs && names.contigs.is_none()
                {
                    self.budget.limits().check_free_rows(count)?;
                }
                let names = Arc::clone(names);
                Box::new((0..count).map(move |id| name(&names, table, id)))
            }
            _ => return Err(Error::unsupported(format!("a table of {}", table.name()))),
        };
        let mut rows = all.skip(skip).take(take);
        let mut is_broken = false;
        Ok(Box::new(std::iter::from_fn(move || {
            let mut builder = Builder::default();
            while builder.rows < size && builder.bytes < BATCH_BYTES && !is_broken {
                match rows.next() {
                    Some(Ok(row)) => builder.push(row),
                    Some(Err(error)) => {
                        is_broken = true;
                        return Some(Err(error));
                    }
                    None => break,
                }
            }
            (builder.rows > 0).then(|| builder.finish(table, &schema))
        })))
    }
}

/// One row of a table.
enum Row {
    Name(String),
    Path(super::graph::PathName),
    Node(u64, Option<String>),
    Edge(super::graph::Visit, super::graph::Visit),
    Line(String),
}

fn name(names: &Names, table: Table, id: u64) -> Result<Row> {
    match table {
        Table::Samples => names.sample(id).map(Row::Name),
        Table::Contigs => names.contig(id).map(Row::Name),
        _ => names.path(id).map(Row::Path),
    }
}

/// The node of this id, if there is one.
fn node(graph: &Graph, id: u64, has_sequences: bool) -> Result<Option<Row>> {
    if !graph.has_node(id)? {
        return Ok(None);
    }
    let sequence = if has_sequences { Some(graph.sequence(id)?) } else { None };
    Ok(Some(Row::Node(id, sequence)))
}

fn edges(graph: &Graph, id: u64) -> Vec<Result<Row>> {
    match graph.edges(id) {
        Ok(edges) => edges.into_iter().map(|(from, to)| Ok(Row::Edge(from, to))).collect(),
        Err(error) => vec![Err(error)],
    }
}

/// Columns being built; a table uses some of them.
#[derive(Default)]
struct Builder {
    rows: u64,
    bytes: usize,
    texts: [StringBuilder; 2],
    lines: LargeStringBuilder,
    numbers: [Vec<u64>; 2],
    small: [Vec<u32>; 2],
}

impl Builder {
    fn text(&mut self, column: usize, text: &str) {
        self.bytes += text.len();
        if let Some(builder) = self.texts.get_mut(column) {
            builder.append_value(text);
        }
    }

    fn push(&mut self, row: Row) {
        self.rows += 1;
        let [first, second] = &mut self.numbers;
        match row {
            Row::Name(name) => self.text(0, &name),
            Row::Path(path) => {
                let [phase, fragment] = &mut self.small;
                phase.push(path.phase);
                fragment.push(path.fragment);
                self.text(0, &path.sample);
                self.text(1, &path.contig);
            }
            Row::Node(id, sequence) => {
                first.push(id);
                if let Some(sequence) = sequence {
                    second.push(sequence.len() as u64);
                    self.text(0, &sequence);
                }
            }
            Row::Edge(from, to) => {
                first.push(from.node);
                second.push(to.node);
                self.text(0, from.sign());
                self.text(1, to.sign());
            }
            Row::Line(line) => {
                self.bytes += line.len();
                self.lines.append_value(line);
            }
        }
    }

    fn finish(mut self, table: Table, schema: &SchemaRef) -> Result<RecordBatch> {
        let [first, second] = &mut self.texts;
        let (first, second): (ArrayRef, ArrayRef) = (Arc::new(first.finish()), Arc::new(second.finish()));
        let number = |values: Vec<u64>| -> ArrayRef { Arc::new(UInt64Array::from(values)) };
        let small = |values: Vec<u32>| -> ArrayRef { Arc::new(UInt32Array::from(values)) };
        let [one, two] = self.numbers;
        let [phase, fragment] = self.small;
        let columns = match table {
            Table::Samples | Table::Contigs => vec![first],
            Table::Paths => vec![first, second, small(phase), small(fragment)],
            Table::Nodes { has_sequences: true } => vec![number(one), first, number(two)],
            Table::Nodes { .. } => vec![number(one)],
            Table::Edges => vec![number(one), first, number(two), second],
            Table::Gfa => vec![Arc::new(self.lines.finish()) as ArrayRef],
        };
        rows::batch(Arc::clone(schema), columns, usize::try_from(self.rows).unwrap_or(0))
    }
}
