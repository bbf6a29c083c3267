//! LZ4 blocks, compressed while their bytes come. The bytes are those of the library on 64-bit little-endian machines.
//!
//! Sequences are found by `kernels::lz4_search`, in the bytes that come or, where these are few, in the recent ones, which are
//! gathered. It ends where the bytes end; a match that goes on after them, and what follows it, is done here in small steps.
//! Literals that go on for long are kept apart: how many they are is written before them, and their last ones may become part
//! of the next match.

use lz4::block::{CompressionMode, compress_bound, compress_to_buffer};

use super::MAX_BYTES;
use crate::cursor::{Reserved, reserve};
use crate::error::{Error, Result};
use crate::kernels::lz4 as library;
use crate::kernels::lz4_search::{LEAST_MATCH, MOST_DISTANCE, Next, Search};
use crate::limits::{Budget, Reservation};

/// The number of recent bytes that are gathered before they are compressed: those that a match may reach, those of a run of
/// literals, and new ones.
const WINDOW: usize = 192 << 10;

/// The number of bytes that, if they come at once, are compressed where they are, and of those that are compressed at a time.
const STEP: usize = 256 << 10;

/// Longer runs of literals are kept apart.
const LONG_RUN: usize = 48 << 10;

/// The size of a piece of output, and of literals that are kept apart.
const PIECE: usize = 512 << 10;

/// What the search for matches takes.
const TABLE_BYTES: u64 = 16 << 10;

/// A block that is being compressed. Of the bytes that have come only the last ones are kept, and literals that have no
/// place in the output yet.
pub(crate) struct BlockWriter {
    level: i32,
    /// How many bytes have come.
    bytes: u64,
    /// The last of them, and the place of the first of those.
    recent: Reserved<u8>,
    start: usize,
    /// `None` while all bytes are recent ones.
    stream: Option<Box<Stream>>,
    /// Whether an error left it unfinished: it must not be used any more.
    is_broken: bool,
}

impl BlockWriter {
    /// A block of level 0, which is that of `LZ4_compress_default`, or of a higher one, of `LZ4_compress_HC`, whose bytes are gathered
    /// until all have come.
    pub(crate) fn new(level: i32, budget: &Budget) -> Self {
        BlockWriter {
            level,
            bytes: 0,
            recent: Reserved::new(budget),
            start: 0,
            stream: None,
            is_broken: false,
        }
    }

    /// How many bytes have come.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds bytes at the end. After an error, all that follows is one.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.check()?;
        self.is_broken = true;
        self.add(bytes)?;
        self.is_broken = false;
        Ok(())
    }

    fn check(&self) -> Result<()> {
        if self.is_broken { Err(Error::cancelled()) } else { Ok(()) }
    }

    fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let origin = usize::try_from(self.bytes).unwrap_or(usize::MAX);
        let total = self.bytes.saturating_add(bytes.len() as u64);
        if total > MAX_BYTES {
            let found = format!("at least {total} bytes for an LZ4 block");
            return Err(Error::limit("the limit", MAX_BYTES, found));
        }
        self.bytes = total;
        if self.level > 0 {
            return self.recent.extend_from_slice(bytes);
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            if rest.len() >= STEP && self.reach() >= origin {
                return self.compress_in_place(bytes, origin);
            }
            let count = rest.len().min(WINDOW.saturating_sub(self.recent.len()));
            let (some, later) = rest.split_at(count);
            self.recent.extend_from_slice(some)?;
            rest = later;
            if self.recent.len() >= WINDOW {
                self.compress_recent()?;
            }
        }
        Ok(())
    }

    /// The first place that may still be needed.
    fn reach(&self) -> usize {
        self.stream.as_ref().map_or(0, |stream| stream.reach())
    }

    /// Compresses `bytes`, the first of which has the place `origin`: nothing before it is needed.
    fn compress_in_place(&mut self, bytes: &[u8], origin: usize) -> Result<()> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(Box::new(Stream::new(self.recent.budget())?)),
        };
        let mut end = 0;
        while end < bytes.len() {
            end = bytes.len().min(end.saturating_add(STEP));
            let known = Known { bytes: bytes.get(..end).unwrap_or_default(), start: origin, is_last: false };
            stream.compress(&known)?;
        }
        self.start = stream.reach().max(origin);
        self.recent.clear();
        self.recent.extend_from_slice(bytes.get(self.start - origin..).unwrap_or_default())
    }

    /// Compresses what has been gathered, and keeps what may still be needed.
    fn compress_recent(&mut self) -> Result<()> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(Box::new(Stream::new(self.recent.budget())?)),
        };
        stream.compress(&Known { bytes: &self.recent, start: self.start, is_last: false })?;
        let reach = stream.reach().max(self.start);
        self.recent.drain(..reach - self.start);
        self.start = reach;
        Ok(())
    }

    /// The block in pieces, preceded by its length as an int32, and what pays for them.
    pub(crate) fn finish(self) -> Result<(Vec<Vec<u8>>, Reservation)> {
        self.check()?;
        let length = i32::try_from(self.bytes).unwrap_or(i32::MAX).to_le_bytes();
        let Some(stream) = self.stream else {
            let mut held = self.recent.budget().reserve(most_packed(self.recent.len()))?;
            let packed = compress_whole(&self.recent, length, self.level)?;
            held.shrink_to(packed.capacity() as u64);
            return Ok((vec![packed], held));
        };
        let Pieces { full: mut pieces, held, .. } =
            stream.finish(&Known { bytes: &self.recent, start: self.start, is_last: true })?;
        if let Some(place) = pieces.first_mut().and_then(|piece| piece.first_chunk_mut()) {
            *place = length;
        }
        Ok((pieces, held))
    }
}

/// Bytes that are in memory.
struct Known<'b> {
    bytes: &'b [u8],
    /// The place of the first.
    start: usize,
    /// Whether the block ends with them.
    is_last: bool,
}

impl<'b> Known<'b> {
    fn end(&self) -> usize {
        self.start + self.bytes.len()
    }

    fn range(&self, from: usize, to: usize) -> &'b [u8] {
        let range = from.checked_sub(self.start).zip(to.checked_sub(self.start));
        range.and_then(|(from, to)| self.bytes.get(from..to)).unwrap_or_default()
    }

    fn word(&self, place: usize) -> [u8; 8] {
        self.range(place, place + 8).first_chunk().copied().unwrap_or_default()
    }
}

/// What has been compressed of a block, and what comes next.
struct Stream {
    search: Search,
    out: Pieces,
    /// The piece of the last match's token, and its place there.
    token: (usize, usize),
    run: Option<LongRun>,
}

/// The first literals after the anchor, which are no recent bytes any more.
struct LongRun {
    /// The bytes before them, as far as a match may reach.
    before: Reserved<u8>,
    /// All pieces but the last have the same size.
    literals: Pieces,
    count: usize,
}

impl Stream {
    fn new(budget: &Budget) -> Result<Self> {
        let mut out = Pieces::new(budget);
        out.held.grow(TABLE_BYTES)?;
        // The place of the length.
        out.full.push(vec![0; 4]);
        Ok(Stream { search: Search::new(), out, token: (0, 0), run: None })
    }

    fn reach(&self) -> usize {
        let place = match self.search.next {
            Next::Probe { place, .. } if self.run.is_some() => place,
            _ => self.search.anchor,
        };
        place.saturating_sub(MOST_DISTANCE)
    }

    /// Writes the sequences that the known bytes decide.
    fn compress(&mut self, known: &Known<'_>) -> Result<()> {
        let (last_place, _) = Search::limits(known.end());
        loop {
            match self.search.next {
                Next::Probe { place, step, .. } if place + step > last_place => break,
                Next::Found { place, distance } if self.run.is_some() => {
                    self.begin_match(known, place, distance)?;
                }
                Next::Probe { .. } | Next::Found { .. } => {
                    let out = self.out.with_room(self.search.room(known.end()))?;
                    self.search.sequences(known.bytes, known.start, out);
                    if let Next::Match { token, .. } = self.search.next {
                        self.token = (self.out.full.len(), token);
                    }
                }
                Next::Match { place, distance, .. } => {
                    if !self.end_match(known, place, distance)? {
                        break;
                    }
                }
                Next::Ended if self.search.anchor >= last_place => break,
                Next::Ended => self.look_after_match(known),
            }
        }
        self.keep_run(known)
    }

    /// Writes the literals of a long run, and where the match after them is.
    fn begin_match(&mut self, known: &Known<'_>, mut place: usize, distance: usize) -> Result<()> {
        // The bytes from here on are the same; those before may be in memory no more.
        let (anchor, found) = (self.search.anchor, place);
        let byte = |place: usize| match place.checked_sub(known.start) {
            Some(index) => known.bytes.get(index).copied(),
            None => self.run.as_ref().and_then(|run| run.byte(place, anchor)),
        };
        while place > anchor && place > distance && byte(place - 1) == byte(place - 1 - distance) {
            place -= 1;
        }
        self.write_literals(known, place)?;
        let distance_bytes = u16::try_from(distance).unwrap_or(u16::MAX).to_le_bytes();
        self.out.with_room(2)?.extend_from_slice(&distance_bytes);
        self.search.anchor = found + LEAST_MATCH;
        self.search.next = Next::Match { place, distance, token: 0 };
        Ok(())
    }

    /// Writes a token with the number of literals from the anchor to `end`, and them.
    fn write_literals(&mut self, known: &Known<'_>, end: usize) -> Result<()> {
        let anchor = self.search.anchor;
        let count = end - anchor;
        let out = self.out.with_room(2 + count / 255)?;
        let token = out.len();
        out.push(nibble(count) << 4);
        write_rest(out, count);
        self.token = (self.out.full.len(), token);
        self.search.is_apart = false;
        match self.run.take() {
            Some(mut run) => {
                run.truncate(count);
                let first = anchor + run.count;
                self.out.append(run.literals);
                self.out.extend(known.range(first, end))
            }
            None => self.out.extend(known.range(anchor, end)),
        }
    }

    /// Follows a match and, where it ends before the known bytes do, writes its length. Whether it does.
    fn end_match(&mut self, known: &Known<'_>, place: usize, distance: usize) -> Result<bool> {
        let (_, last_match) = Search::limits(known.end());
        let anchor = &mut self.search.anchor;
        let here = known.range(*anchor, last_match);
        let earlier = known.range(*anchor - distance, last_match.saturating_sub(distance));
        *anchor += same_start(here, earlier);
        if *anchor >= last_match && !known.is_last {
            return Ok(false);
        }
        let longer = *anchor - place - LEAST_MATCH;
        let (piece, token) = self.token;
        if let Some(token) = self.out.get_mut(piece).and_then(|piece| piece.get_mut(token)) {
            *token |= nibble(longer);
        }
        write_rest(self.out.with_room(1 + longer / 255)?, longer);
        self.search.next = Next::Ended;
        Ok(true)
    }

    /// Whether another match follows a match without literals.
    fn look_after_match(&mut self, known: &Known<'_>) {
        let place = self.search.anchor;
        self.search.look_up(known.word(place - 2), place - 2);
        let own = known.word(place);
        let candidate = self.search.look_up(own, place);
        let distance = place - candidate;
        let is_match = distance <= MOST_DISTANCE && known.range(candidate, candidate + 4) == &own[..4];
        self.search.next = if is_match { Next::Found { place, distance } } else { Next::probe(place + 1) };
    }

    /// Keeps the literals of a long run.
    fn keep_run(&mut self, known: &Known<'_>) -> Result<()> {
        let anchor = self.search.anchor;
        let Next::Probe { place, .. } = self.search.next else { return Ok(()) };
        if self.run.is_none() && place - anchor > LONG_RUN {
            let mut before = Reserved::new(self.out.held.budget());
            let from = anchor.saturating_sub(MOST_DISTANCE).max(known.start);
            before.extend_from_slice(known.range(from, anchor))?;
            self.search.is_apart = true;
            self.run = Some(LongRun { before, literals: Pieces::new(self.out.held.budget()), count: 0 });
        }
        match &mut self.run {
            Some(run) => run.extend(known.range(anchor + run.count, place)),
            None => Ok(()),
        }
    }

    /// The block, whose last bytes these are.
    fn finish(mut self, known: &Known<'_>) -> Result<Pieces> {
        self.compress(known)?;
        self.write_literals(known, known.end())?;
        self.out.end_last();
        self.out.held.shrink_to(self.out.held.bytes().saturating_sub(TABLE_BYTES));
        Ok(self.out)
    }
}

impl LongRun {
    /// A byte before the recent ones.
    fn byte(&self, place: usize, anchor: usize) -> Option<u8> {
        match place.checked_sub(anchor) {
            Some(index) => self.literals.get(index / PIECE)?.get(index % PIECE).copied(),
            None => self.before.get((self.before.len() + place).checked_sub(anchor)?).copied(),
        }
    }

    fn extend(&mut self, mut literals: &[u8]) -> Result<()> {
        self.count += literals.len();
        while !literals.is_empty() {
            if self.literals.last.capacity() == 0 || self.literals.last.len() == PIECE {
                self.literals.begin(PIECE)?;
            }
            let room = PIECE - self.literals.last.len();
            let (some, later) = literals.split_at(literals.len().min(room));
            self.literals.last.extend_from_slice(some);
            literals = later;
        }
        Ok(())
    }

    /// Drops the literals that are no literals after all.
    fn truncate(&mut self, count: usize) {
        if count >= self.count {
            return;
        }
        self.count = count;
        while self.literals.full.len() > count / PIECE {
            self.literals.drop_last();
        }
        self.literals.last.truncate(count - self.literals.full.len() * PIECE);
    }
}

/// Output in pieces, and what pays for them.
struct Pieces {
    full: Vec<Vec<u8>>,
    /// The piece that is appended to.
    last: Vec<u8>,
    held: Reservation,
}

impl Pieces {
    fn new(budget: &Budget) -> Self {
        Pieces { full: Vec::new(), last: Vec::new(), held: budget.reservation() }
    }

    fn get(&self, place: usize) -> Option<&Vec<u8>> {
        if place == self.full.len() { Some(&self.last) } else { self.full.get(place) }
    }

    fn get_mut(&mut self, place: usize) -> Option<&mut Vec<u8>> {
        if place == self.full.len() { Some(&mut self.last) } else { self.full.get_mut(place) }
    }

    /// Ends the last piece. Its memory that is not used is freed.
    fn end_last(&mut self) {
        let unused = self.last.capacity();
        self.last.shrink_to_fit();
        let unused = (unused - self.last.capacity()) as u64;
        self.held.shrink_to(self.held.bytes().saturating_sub(unused));
        if !self.last.is_empty() {
            self.full.push(std::mem::take(&mut self.last));
        }
    }

    /// Begins a piece.
    fn begin(&mut self, room: usize) -> Result<()> {
        self.end_last();
        let (piece, held) = reserve(room as u64, self.held.budget())?.into_parts();
        self.held.merge(held);
        self.last = piece;
        Ok(())
    }

    /// Goes back to the piece before the last one.
    fn drop_last(&mut self) {
        let before = self.full.pop().unwrap_or_default();
        let dropped = std::mem::replace(&mut self.last, before);
        self.held.shrink_to(self.held.bytes().saturating_sub(dropped.capacity() as u64));
    }

    /// The last piece, with room for so many bytes.
    fn with_room(&mut self, room: usize) -> Result<&mut Vec<u8>> {
        if self.last.capacity() - self.last.len() < room {
            // Most blocks of tables with many columns are short.
            let most = if self.full.len() < 2 { room } else { PIECE };
            self.begin(room.max(most))?;
        }
        Ok(&mut self.last)
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<()> {
        self.with_room(bytes.len())?.extend_from_slice(bytes);
        Ok(())
    }

    fn append(&mut self, mut other: Pieces) {
        self.end_last();
        other.end_last();
        self.full.extend(other.full);
        self.held.merge(other.held);
    }
}

/// The four bits of a token for a length.
fn nibble(length: usize) -> u8 {
    u8::try_from(length).map_or(15, |length| length.min(15))
}

/// Writes what remains of a length that does not fit the four bits of a token.
fn write_rest(out: &mut Vec<u8>, length: usize) {
    if let Some(more) = length.checked_sub(15) {
        out.resize(out.len() + more / 255, 255);
        out.extend(u8::try_from(more % 255));
    }
}

/// How many bytes at the start of both are the same.
fn same_start(one: &[u8], other: &[u8]) -> usize {
    let words = one.as_chunks::<32>().0.iter().zip(other.as_chunks::<32>().0);
    let same = words.take_while(|(one, other)| one == other).count() * 32;
    let rest = one.iter().zip(other).skip(same);
    same + rest.take_while(|(one, other)| one == other).count()
}

/// The most bytes of a block of so many, after its length.
fn most_packed(plain: usize) -> u64 {
    let plain = plain as u64;
    4 + plain + plain / 255 + 16
}

/// A whole block, after its length.
fn compress_whole(plain: &[u8], length: [u8; 4], level: i32) -> Result<Vec<u8>> {
    // The same block on all levels: a token without literals. The optimal parser (levels 10 to 12) reads before the
    // start of an empty input, so the library is not called.
    if plain.is_empty() {
        return Ok(vec![0; 5]);
    }
    let too_long = || Error::limit("the limit", MAX_BYTES, format!("{} bytes for an LZ4 block", plain.len()));
    let mut packed = length.to_vec();
    if level == 0 {
        library::compress(plain, &mut packed).ok_or_else(too_long)?;
    } else {
        let bound = compress_bound(plain.len()).map_err(|_| too_long())?;
        packed.resize(4 + bound, 0);
        let mode = Some(CompressionMode::HIGHCOMPRESSION(level));
        let room = packed.get_mut(4..).unwrap_or_default();
        let written = compress_to_buffer(plain, mode, false, room)
            .map_err(|error| Error::io("LZ4 compression", error))?;
        packed.truncate(4 + written);
    }
    packed.shrink_to_fit();
    Ok(packed)
}
