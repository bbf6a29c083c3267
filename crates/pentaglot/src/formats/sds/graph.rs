//! The graph of a GBZ or GBWT file: its paths, nodes and edges, checked against the counts in the file.

use std::sync::Arc;

use pentaglot_succinct::{BitQueries, SharedWords};

use super::containers::{Container, Content, StringArray};
use super::gbwt::{Records, sparse, unpack};
use super::layout::Object;
use super::type_text::{SdsKind, join};
use crate::error::{Error, Result};
use crate::limits::{Budget, Reservation};

/// The sample of paths that have only a name.
pub(super) const GENERIC_SAMPLE: &str = "_gbwt_ref";

/// The names of samples, contigs and paths.
pub(super) struct Names {
    pub(super) samples: Option<Arc<StringArray>>,
    pub(super) contigs: Option<Arc<StringArray>>,
    paths: SharedWords,
    pub(super) sample_count: u64,
    pub(super) contig_count: u64,
}

/// A path's name.
pub(super) struct PathName {
    pub(super) sample: String,
    pub(super) contig: String,
    pub(super) phase: u32,
    pub(super) fragment: u32,
}

/// The text of a string of a packed array; `None` is one that the array does not hold.
pub(super) fn text(bytes: Option<Vec<u8>>, index: u64) -> Result<String> {
    let expected = "starts within the characters, codes within the alphabet";
    let bytes = bytes.ok_or_else(|| Error::malformed(expected, "others").index(index))?;
    String::from_utf8(bytes).map_err(|error| Error::malformed("UTF-8", error).index(index))
}

/// The value of a field of a header.
pub(super) fn field(container: &Container, path: &str) -> Result<u64> {
    let found = container.parts().iter().find(|part| part.path == path);
    match found.map(|part| &part.content) {
        Some(Content::Field(value)) => Ok(*value),
        _ => Err(Error::malformed(format_args!("a field {path}"), "none")),
    }
}

fn object(container: &Container, path: &str) -> Result<Arc<Object>> {
    match container.member(Some(path)) {
        Some(Content::Object(object)) => Ok(Arc::clone(object)),
        _ => Err(Error::malformed(format_args!("a part {path}"), "none")),
    }
}

fn strings(container: &Container, path: &str) -> Option<Arc<StringArray>> {
    match container.member(Some(path))? {
        Content::Strings(strings) | Content::Tags(strings) => Some(Arc::clone(strings)),
        _ => None,
    }
}

/// Returns an error unless a part has as many items as the file declares.
fn check_count(what: &str, stated: u64, found: u64) -> Result<()> {
    if stated == found {
        return Ok(());
    }
    Err(Error::malformed(format_args!("{stated} {what}, as the file states"), found).rule("counts"))
}

/// The prefix of the GBWT's parts in a container.
fn gbwt_prefix(container: &Container) -> &'static str {
    if container.kind() == SdsKind::Gbz { "gbwt" } else { "" }
}

impl Names {
    /// The names in a container; `None` if it has no metadata.
    pub(super) fn open(container: &Container) -> Result<Option<Self>> {
        let prefix = match container.kind() {
            SdsKind::GbwtMeta => String::new(),
            _ => join(gbwt_prefix(container), "metadata"),
        };
        let Some(Content::Paths(paths)) = container.member(Some(&join(&prefix, "path_names"))) else {
            return Ok(None);
        };
        let flags = field(container, &join(&prefix, "flags"))?;
        let named = |bit: u64, name: &str| match flags & bit {
            0 => None,
            _ => strings(container, &join(&prefix, name)),
        };
        let names = Names {
            samples: named(2, "sample_names"),
            contigs: named(4, "contig_names"),
            paths: paths.clone(),
            sample_count: field(container, &join(&prefix, "samples"))?,
            contig_count: field(container, &join(&prefix, "contigs"))?,
        };
        if let Some(samples) = &names.samples {
            check_count("samples", names.sample_count, samples.len())?;
        }
        if let Some(contigs) = &names.contigs {
            check_count("contigs", names.contig_count, contigs.len())?;
        }
        Ok(Some(names))
    }

    /// How many paths have names.
    pub(super) fn path_count(&self) -> u64 {
        self.paths.as_ref().len() as u64 / 2
    }

    /// A sample's name; its number, if samples have no names.
    pub(super) fn sample(&self, id: u64) -> Result<String> {
        self.samples.as_ref().map_or_else(|| Ok(id.to_string()), |names| text(names.get(id), id))
    }

    /// A contig's name; its number, if contigs have no names.
    pub(super) fn contig(&self, id: u64) -> Result<String> {
        self.contigs.as_ref().map_or_else(|| Ok(id.to_string()), |names| text(names.get(id), id))
    }

    #[expect(clippy::cast_possible_truncation, reason = "the two halves of an element")]
    pub(super) fn path(&self, id: u64) -> Result<PathName> {
        let at = usize::try_from(id).unwrap_or(usize::MAX).saturating_mul(2);
        let Some([first, second]) = self.paths.as_ref().get(at..at.saturating_add(2)) else {
            return Err(Error::malformed("a path name", "none").index(id));
        };
        let (sample, contig) = (u64::from(*first as u32), first >> 32);
        let outside =
            |what: &str| Error::malformed(format_args!("a {what} of the file"), "another").index(id);
        if sample >= self.sample_count {
            return Err(outside("sample").field("path_names"));
        }
        if contig >= self.contig_count {
            return Err(outside("contig").field("path_names"));
        }
        let (sample, contig) = (self.sample(sample)?, self.contig(contig)?);
        let (phase, fragment) = (*second as u32, (second >> 32) as u32);
        // Programs write the largest number for paths that have no phase.
        let phase = if sample == GENERIC_SAMPLE && phase == u32::MAX { 0 } else { phase };
        Ok(PathName { sample, contig, phase, fragment })
    }
}

/// The sequences of nodes: packed characters, or text compressed with zstd.
enum Sequences {
    Packed(Arc<StringArray>),
    Text { starts: Arc<Object>, text: Vec<u8>, _held: Reservation },
}

impl Sequences {
    fn open(container: &Container, prefix: &str, budget: &Budget) -> Result<Self> {
        if let Some(strings) = strings(container, prefix) {
            return Ok(Sequences::Packed(strings));
        }
        let starts = object(container, &join(prefix, "index"))?;
        let total = field(container, &join(prefix, "total_length"))?;
        match object(container, &join(prefix, "zstd"))?.as_ref() {
            Object::Bytes(count, words) => {
                let (text, _held) = unpack((*count, words), total, budget)?;
                Ok(Sequences::Text { starts, text, _held })
            }
            other => Err(Error::malformed("bytes", other.kind())),
        }
    }

    fn len(&self) -> u64 {
        match self {
            Sequences::Packed(strings) => strings.len(),
            Sequences::Text { starts, .. } => sparse(starts).map_or(0, |starts| starts.count_ones()),
        }
    }

    fn get(&self, index: u64) -> Result<String> {
        match self {
            Sequences::Packed(strings) => text(strings.get(index), index),
            Sequences::Text { starts, text: all, .. } => {
                let bytes = sparse(starts).and_then(|starts| {
                    let mut bounds = starts.iter_from(index);
                    let start = usize::try_from(bounds.next()?).ok()?;
                    let last = index + 1 >= self.len();
                    let end = if last { all.len() } else { usize::try_from(bounds.next()?).ok()? };
                    all.get(start..end).map(<[u8]>::to_vec)
                });
                text(bytes, index)
            }
        }
    }
}

/// The names of segments, each of one or more nodes with consecutive ids.
pub(super) struct Segments {
    names: Arc<StringArray>,
    mapping: Arc<Object>,
}

/// A segment: its number and its nodes, from the first to before the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) id: u64,
    pub(super) nodes: std::ops::Range<u64>,
}

impl Segments {
    pub(super) fn len(&self) -> u64 {
        self.names.len()
    }

    pub(super) fn name(&self, id: u64) -> Result<String> {
        text(self.names.get(id), id).map_err(|error| error.field("segments"))
    }

    pub(super) fn get(&self, id: u64) -> Result<Segment> {
        let outside = || Error::malformed("the nodes of a segment", "none").index(id).field("mapping");
        let mapping = sparse(&self.mapping).ok_or_else(outside)?;
        let mut starts = mapping.iter_from(id);
        let start = starts.next().ok_or_else(outside)?;
        Ok(Segment { id, nodes: start..starts.next().unwrap_or(mapping.len()) })
    }

    /// The segment of a node.
    pub(super) fn of_node(&self, node: u64) -> Result<Segment> {
        let found = sparse(&self.mapping).and_then(|mapping| mapping.predecessor_ranked(node));
        let none = || Error::malformed("a segment", "none").index(node).field("mapping");
        self.get(found.ok_or_else(none)?.0)
    }
}

/// A node in one of its two orientations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Visit {
    pub(super) node: u64,
    pub(super) is_reverse: bool,
}

impl Visit {
    fn of(number: u64) -> Self {
        Visit { node: number / 2, is_reverse: number % 2 == 1 }
    }

    fn number(self) -> u64 {
        self.node.saturating_mul(2) | u64::from(self.is_reverse)
    }

    /// `+` or `-`.
    pub(super) fn sign(self) -> &'static str {
        if self.is_reverse { "-" } else { "+" }
    }
}

/// A GBZ graph, or a GBWT index without sequences.
pub(super) struct Graph {
    records: Records,
    offset: u64,
    alphabet: u64,
    sequences: u64,
    visits: u64,
    pub(super) is_bidirectional: bool,
    nodes: Option<Sequences>,
    pub(super) segments: Option<Segments>,
    pub(super) names: Option<Names>,
    pub(super) reference_samples: Option<String>,
}

impl Graph {
    pub(super) fn open(container: &Container, budget: &Budget) -> Result<Self> {
        let prefix = gbwt_prefix(container);
        let stated = |name: &str| field(container, &join(prefix, name));
        let index = object(container, &join(prefix, "bwt.index"))?;
        let (data, is_packed) = match object(container, &join(prefix, "bwt.data")) {
            Ok(data) => (data, false),
            Err(_) => (object(container, &join(prefix, "bwt.zstd"))?, true),
        };
        let Object::Bytes(count, words) = data.as_ref() else {
            return Err(Error::malformed("bytes", data.kind()).field("bwt.data"));
        };
        let records =
            Records::new(&index, (*count, words), is_packed, budget).map_err(|error| error.field("bwt"))?;
        let (offset, alphabet) = (stated("offset")?, stated("alphabet_size")?);
        if alphabet < offset {
            return Err(Error::malformed(format_args!("an alphabet of at least {offset}"), alphabet));
        }
        check_count("records", alphabet - offset, records.len())?;
        let names = Names::open(container)?;
        let (sequences, is_bidirectional) = (stated("sequences")?, stated("flags")? & 1 != 0);
        let tags = strings(container, &join(prefix, "tags"));
        let mut graph = Graph {
            records,
            offset,
            alphabet,
            sequences,
            visits: stated("size")?,
            is_bidirectional,
            nodes: None,
            segments: None,
            names,
            reference_samples: None,
        };
        for tag in 0..tags.as_ref().map_or(0, |tags| tags.len() / 2) {
            let get = |at: u64| text(tags.as_ref().and_then(|tags| tags.get(at)), at);
            if get(2 * tag)? == "reference_samples" {
                graph.reference_samples = Some(get(2 * tag + 1)?);
            }
        }
        if let Some(names) = graph.names.as_ref().filter(|names| names.path_count() > 0) {
            check_count("paths", graph.path_count(), names.path_count())?;
        }
        if container.kind() == SdsKind::Gbz {
            graph.open_nodes(container, budget)?;
        }
        Ok(graph)
    }

    fn open_nodes(&mut self, container: &Container, budget: &Budget) -> Result<()> {
        if !self.is_bidirectional {
            return Err(
                Error::malformed("a bidirectional GBWT", "one of a single direction").field("gbwt.flags")
            );
        }
        let sequences = Sequences::open(container, "graph.sequences", budget)
            .map_err(|error| error.field("graph.sequences"))?;
        let ids = self.ids();
        check_count("sequences", ids.end - ids.start, sequences.len())?;
        let mut count = 0;
        for id in ids {
            count += u64::from(self.has_node(id)?);
        }
        check_count("nodes", field(container, "graph.nodes")?, count)?;
        self.nodes = Some(sequences);
        if field(container, "graph.flags")? & 1 != 0 {
            let names = strings(container, "graph.segments");
            let names = names.ok_or_else(|| Error::malformed("names of segments", "none"))?;
            self.segments = Some(Segments { names, mapping: object(container, "graph.mapping")? });
        }
        Ok(())
    }

    /// The ids that nodes may have.
    pub(super) fn ids(&self) -> std::ops::Range<u64> {
        let first = self.offset.div_ceil(2);
        first..(self.alphabet / 2).max(first)
    }

    /// How many paths there are: a bidirectional index has each in both directions.
    pub(super) fn path_count(&self) -> u64 {
        if self.is_bidirectional { self.sequences / 2 } else { self.sequences }
    }

    fn record_of(&self, visit: Visit) -> Option<u64> {
        let number = visit.number();
        (number > self.offset && number < self.alphabet).then(|| number - self.offset)
    }

    /// Whether a node occurs; without a reverse direction, in either orientation.
    pub(super) fn has_node(&self, node: u64) -> Result<bool> {
        let has = |is_reverse: bool| match self.record_of(Visit { node, is_reverse }) {
            Some(record) => self.records.has_edges(record),
            None => Ok(false),
        };
        Ok(has(false)? || !self.is_bidirectional && has(true)?)
    }

    /// The sequence of a node.
    pub(super) fn sequence(&self, node: u64) -> Result<String> {
        let index = node.checked_sub(self.ids().start);
        let found = self.nodes.as_ref().zip(index);
        let (nodes, index) =
            found.ok_or_else(|| Error::malformed("a sequence of the node", "none").index(node))?;
        nodes.get(index).map_err(|error| error.field("sequences"))
    }

    /// The visits that follow a visit to a node, except for ends of paths.
    pub(super) fn successors(&self, visit: Visit) -> Result<Vec<Visit>> {
        let Some(record) = self.record_of(visit) else { return Ok(Vec::new()) };
        let record = self.records.record(record)?;
        let inner = record.edges.iter().map(|edge| edge.0).filter(|node| *node != 0);
        let visits: Vec<Visit> = inner.map(Visit::of).collect();
        match visits.iter().find(|next| self.record_of(**next).is_none()) {
            None => Ok(visits),
            Some(next) => {
                Err(Error::malformed("an edge to a node of the graph", next.node).index(visit.node))
            }
        }
    }

    /// The edges that leave a node, each once in a bidirectional index: from the smaller node, or as a loop from its
    /// forward orientation.
    pub(super) fn edges(&self, node: u64) -> Result<Vec<(Visit, Visit)>> {
        let mut edges = Vec::new();
        for is_reverse in [false, true] {
            let from = Visit { node, is_reverse };
            for to in self.successors(from)? {
                if !self.is_bidirectional || is_canonical(from, (to.node, to.is_reverse), node) {
                    edges.push((from, to));
                }
            }
        }
        Ok(edges)
    }

    /// The first visit of every sequence.
    pub(super) fn starts(&self, budget: &Budget) -> Result<(Vec<(u64, u64)>, Reservation)> {
        if self.sequences == 0 {
            return Ok((Vec::new(), budget.reservation()));
        }
        let (mut starts, held) = crate::cursor::reserve(self.sequences, budget)?.into_parts();
        let record = self.records.record(0)?;
        check_count("sequences", self.sequences, record.visits())?;
        for start in record.all() {
            let start =
                start.ok_or_else(|| Error::malformed("an edge of the record", "none").field("bwt.data"))?;
            starts.push(start);
        }
        Ok((starts, held))
    }

    /// The visits of a path, from the first visit of its sequence on.
    pub(super) fn walk(&self, start: (u64, u64)) -> Result<Vec<Visit>> {
        let (mut visits, mut at) = (Vec::new(), start);
        while at.0 != 0 {
            let visit = Visit::of(at.0);
            let broken = || {
                Error::malformed("a path that goes on to its end", "one that breaks off").index(visit.node)
            };
            if visits.len() as u64 >= self.visits {
                return Err(Error::malformed("a path that ends", "one that does not"));
            }
            visits.push(visit);
            let record = self.records.record(self.record_of(visit).ok_or_else(broken)?)?;
            at = record.next(at.1).ok_or_else(broken)?;
        }
        Ok(visits)
    }

    /// Returns an error unless all records together have as many visits as the file declares.
    pub(super) fn check_visits(&self) -> Result<()> {
        let mut visits = 0_u64;
        for record in 0..self.records.len() {
            let record = self.records.record(record)?;
            visits = visits.saturating_add(record.visits());
        }
        check_count("visits", self.visits, visits)
    }
}

/// Whether a link is listed at this end of it: `own` and `to.0` are the numbers that order nodes or segments.
pub(super) fn is_canonical(from: Visit, to: (u64, bool), own: u64) -> bool {
    match from.is_reverse {
        false => to.0 >= own,
        true => to.0 > own || to.0 == own && !to.1,
    }
}
