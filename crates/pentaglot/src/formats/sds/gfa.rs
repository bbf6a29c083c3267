//! A GBZ graph as the lines of a GFA 1.1 file: header, segments, links, paths, walks.
//!
//! Segments have their names and sequences if the graph translates nodes to segments; otherwise nodes are segments,
//! and their ids are the names. Paths of the sample `_gbwt_ref` are P-lines, all others W-lines.

use std::fmt::Write as _;
use std::sync::Arc;

use super::graph::{GENERIC_SAMPLE, Graph, Segment, Segments, Visit, is_canonical};
use crate::error::{Error, Result};
use crate::limits::{Budget, Reservation};

/// Which lines come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Header,
    Segments,
    Links,
    Paths,
    Walks,
    End,
}

/// The lines of a GFA file.
pub(super) struct Lines {
    graph: Arc<Graph>,
    stage: Stage,
    /// The next node, segment or path.
    next: u64,
    /// Lines to be returned next.
    links: std::vec::IntoIter<String>,
    starts: Vec<(u64, u64)>,
    _held: Reservation,
}

impl Lines {
    pub(super) fn new(graph: Arc<Graph>, budget: &Budget) -> Result<Self> {
        let (starts, _held) = graph.starts(budget)?;
        let links = Vec::new().into_iter();
        Ok(Lines { graph, stage: Stage::Header, next: 0, links, starts, _held })
    }

    fn enter(&mut self, stage: Stage) -> Result<()> {
        self.stage = stage;
        let graph = &self.graph;
        let is_node = graph.segments.is_none() && matches!(stage, Stage::Segments | Stage::Links);
        self.next = if is_node { graph.ids().start } else { 0 };
        Ok(())
    }

    /// The next number, while there are any.
    fn advance(&mut self, end: u64) -> Option<u64> {
        let number = self.next;
        self.next += 1;
        (number < end).then_some(number)
    }

    fn line(&mut self) -> Result<Option<String>> {
        loop {
            if let Some(link) = self.links.next() {
                return Ok(Some(link));
            }
            let graph = &self.graph;
            let segment_end = match &graph.segments {
                Some(segments) => segments.len(),
                None => graph.ids().end,
            };
            let path_end = graph.names.as_ref().map_or(0, |names| names.path_count());
            match self.stage {
                Stage::Header => {
                    let samples = graph.reference_samples.as_ref();
                    let samples = samples.map_or_else(String::new, |samples| format!("\tRS:Z:{samples}"));
                    self.enter(Stage::Segments)?;
                    return Ok(Some(format!("H\tVN:Z:1.1{samples}")));
                }
                Stage::Segments => match self.advance(segment_end) {
                    Some(id) => match segment_line(&self.graph, id)? {
                        Some(line) => return Ok(Some(line)),
                        None => continue,
                    },
                    None => self.enter(Stage::Links)?,
                },
                Stage::Links => match self.advance(segment_end) {
                    Some(id) => self.links = links(&self.graph, id)?.into_iter(),
                    None => self.enter(Stage::Paths)?,
                },
                Stage::Paths | Stage::Walks => match self.advance(path_end) {
                    Some(id) => {
                        let wants_walk = self.stage == Stage::Walks;
                        if let Some(line) = path_line(&self.graph, &self.starts, id, wants_walk)? {
                            return Ok(Some(line));
                        }
                    }
                    None if self.stage == Stage::Paths => self.enter(Stage::Walks)?,
                    None => self.stage = Stage::End,
                },
                Stage::End => return Ok(None),
            }
        }
    }
}

impl Iterator for Lines {
    type Item = Result<String>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = self.line();
        if line.is_err() {
            self.stage = Stage::End;
        }
        line.transpose()
    }
}

/// The name of the segment that a node is in, the number that orders it, and the nodes of it.
fn segment_of(graph: &Graph, node: u64) -> Result<(String, Segment)> {
    match &graph.segments {
        Some(segments) => {
            let segment = segments.of_node(node)?;
            Ok((segments.name(segment.id)?, segment))
        }
        None => Ok((node.to_string(), Segment { id: node, nodes: node..node + 1 })),
    }
}

/// The nodes of a segment that is in the graph.
fn present(graph: &Graph, id: u64) -> Result<Option<Segment>> {
    let segment = match &graph.segments {
        Some(segments) => segments.get(id)?,
        None => Segment { id, nodes: id..id + 1 },
    };
    // A segment that no path visits has no nodes.
    Ok(if !segment.nodes.is_empty() && graph.has_node(segment.nodes.start)? { Some(segment) } else { None })
}

fn name(segments: Option<&Segments>, id: u64) -> Result<String> {
    segments.map_or_else(|| Ok(id.to_string()), |segments| segments.name(id))
}

fn segment_line(graph: &Graph, id: u64) -> Result<Option<String>> {
    let Some(segment) = present(graph, id)? else { return Ok(None) };
    let mut line = format!("S\t{}\t", name(graph.segments.as_ref(), id)?);
    for node in segment.nodes {
        line += &graph.sequence(node)?;
    }
    Ok(Some(line))
}

/// The links of a segment, each at one of its ends only.
fn links(graph: &Graph, id: u64) -> Result<Vec<String>> {
    let Some(segment) = present(graph, id)? else { return Ok(Vec::new()) };
    let own = name(graph.segments.as_ref(), id)?;
    let mut links = Vec::new();
    for is_reverse in [false, true] {
        let node = if is_reverse { segment.nodes.start } else { segment.nodes.end - 1 };
        let from = Visit { node, is_reverse };
        for to in graph.successors(from)? {
            let (name, other) = segment_of(graph, to.node)?;
            if is_canonical(from, (other.id, to.is_reverse), id) {
                links.push(format!("L\t{own}\t{}\t{name}\t{}\t0M", from.sign(), to.sign()));
            }
        }
    }
    Ok(links)
}

/// The line of a path; `None` if it is of the other kind (P-line or W-line).
fn path_line(graph: &Graph, starts: &[(u64, u64)], id: u64, wants_walk: bool) -> Result<Option<String>> {
    let Some(names) = &graph.names else { return Ok(None) };
    let path = names.path(id)?;
    if (path.sample != GENERIC_SAMPLE) != wants_walk {
        return Ok(None);
    }
    // The reverse direction of each path follows it.
    let start = usize::try_from(id).ok().and_then(|id| starts.get(2 * id));
    let start = start.ok_or_else(|| Error::malformed("a sequence of the path", "none").index(id))?;
    let visits = graph.walk(*start)?;
    let (mut steps, mut length, mut expected) = (String::new(), 0_u64, None::<(Visit, Segment)>);
    for visit in visits {
        length += graph.sequence(visit.node)?.len() as u64;
        // The nodes of a segment are visited one after the other.
        if let Some((next, segment)) = expected.take() {
            if next != visit {
                let found = format!("node {}", visit.node);
                return Err(Error::malformed(
                    format_args!("node {}, as the segment goes on", next.node),
                    found,
                ));
            }
            expected = following(visit, segment);
            continue;
        }
        let (name, segment) = segment_of(graph, visit.node)?;
        let _ = match wants_walk {
            true => write!(steps, "{}{name}", if visit.is_reverse { '<' } else { '>' }),
            false => write!(steps, "{}{name}{}", if steps.is_empty() { "" } else { "," }, visit.sign()),
        };
        expected = following(visit, segment);
    }
    Ok(Some(match wants_walk {
        true => {
            let (sample, contig, phase) = (path.sample, path.contig, path.phase);
            let start = u64::from(path.fragment);
            format!("W\t{sample}\t{phase}\t{contig}\t{start}\t{}\t{steps}", start + length)
        }
        false => format!("P\t{}\t{steps}\t*", path.contig),
    }))
}

/// The visit that must follow within a segment.
fn following(visit: Visit, segment: Segment) -> Option<(Visit, Segment)> {
    let node = match visit.is_reverse {
        false => visit.node.checked_add(1)?,
        true => visit.node.checked_sub(1)?,
    };
    segment.nodes.contains(&node).then_some((Visit { node, ..visit }, segment))
}
