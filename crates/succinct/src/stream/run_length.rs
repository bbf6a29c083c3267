//! Writes a run-length encoded vector that is larger than memory.

use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

use super::pack::{Packer, put_int_header};
use crate::layout::{ByteSink, WordSink};
use crate::run_length::encode::{BLOCK_WORDS, CodedBlock, Encoder, Joiner, sample_width};

/// Bytes of a block in the scratch file: its sample and its units.
const RECORD: usize = 8 * (2 + BLOCK_WORDS);

/// Writes a [`RunLengthVector`](crate::RunLengthVector) run by run.
///
/// In the file the samples come first, and they are not known before the last run: so blocks are written to a scratch
/// file (such as a temporary one), 48 bytes each, which [`finish`](Self::finish) reads twice: for the samples, then
/// for the data. Memory is constant, the output is written from start to end.
///
/// ```
/// use std::io::Cursor;
/// use pentaglot_succinct::{RunLengthVector, RunLengthVectorWriter, Structure, Supports};
/// let runs = [(10, 5), (500_000, 1_000)];
/// let mut writer = RunLengthVectorWriter::new(Vec::new(), Cursor::new(Vec::new())).unwrap();
/// for (start, run) in runs {
///     writer.push_run(start, run).unwrap();
/// }
/// let bytes: Vec<u8> = writer.finish(1_000_000).unwrap();
/// let words = RunLengthVector::from_runs(1_000_000, runs).unwrap().to_words(Supports::AsIs);
/// assert_eq!(bytes, words.into_iter().flat_map(u64::to_le_bytes).collect::<Vec<_>>());
/// ```
#[derive(Debug)]
pub struct RunLengthVectorWriter<O, S: Write> {
    output: O,
    scratch: BufWriter<S>,
    // Where the scratch file starts.
    start: u64,
    blocks: u64,
    joiner: Joiner,
    encoder: Encoder,
}

impl<O: Write, S: Read + Write + Seek> RunLengthVectorWriter<O, S> {
    /// Starts a vector that will be written to `output`; `scratch` is overwritten from its position on.
    pub fn new(output: O, mut scratch: S) -> io::Result<Self> {
        let start = scratch.stream_position()?;
        let (scratch, joiner, encoder) = (BufWriter::new(scratch), Joiner::default(), Encoder::default());
        Ok(RunLengthVectorWriter { output, scratch, start, blocks: 0, joiner, encoder })
    }

    /// The number of bits so far.
    pub fn len(&self) -> u64 {
        self.joiner.len
    }

    /// Whether there are no bits yet.
    pub fn is_empty(&self) -> bool {
        self.joiner.len == 0
    }

    /// Appends a run of set bits that starts at `start`, at or after the current end; adjacent runs are merged, and a
    /// run of length 0 only extends the vector to `start`.
    pub fn push_run(&mut self, start: u64, run: u64) -> io::Result<()> {
        match self.joiner.push(start, run).map_err(io::Error::other)? {
            Some((start, run)) => self.put(start, run),
            None => Ok(()),
        }
    }

    fn put(&mut self, start: u64, run: u64) -> io::Result<()> {
        match self.encoder.put(start, run) {
            Some(block) => self.put_block(&block),
            None => Ok(()),
        }
    }

    fn put_block(&mut self, block: &CodedBlock) -> io::Result<()> {
        self.blocks += 1;
        let mut elements = block.sample.iter().chain(&block.words);
        elements.try_for_each(|element| self.scratch.write_all(&element.to_le_bytes()))
    }

    /// Completes a vector of `len` bits, at least as many as were appended, and leaves the output after it.
    pub fn finish(mut self, len: u64) -> io::Result<O> {
        self.push_run(len, 0)?;
        if let Some((start, run)) = self.joiner.last() {
            self.put(start, run)?;
        }
        let last = self.encoder.last();
        let mut units = 16 * BLOCK_WORDS as u64 * self.blocks;
        if let Some(block) = last {
            units += block.units;
            self.put_block(&block)?;
        }
        let width = sample_width(last.map(|block| block.sample));
        let scratch = self.scratch.into_inner().map_err(io::IntoInnerError::into_error)?;
        let (mut scratch, mut output) = (BufReader::new(scratch), ByteSink(BufWriter::new(self.output)));

        output.put(&[len, self.encoder.ones])?;
        let samples = 2 * self.blocks;
        put_int_header(&mut output, samples, width)?;
        scratch.seek(SeekFrom::Start(self.start))?;
        let mut packed = Packer::default();
        for _ in 0..self.blocks {
            let record = read_record(&mut scratch)?;
            packed.push(record[0], width, &mut output)?;
            packed.push(record[1], width, &mut output)?;
        }
        packed.finish(&mut output)?;

        put_int_header(&mut output, units, 4)?;
        scratch.seek(SeekFrom::Start(self.start))?;
        let mut words_left = units.div_ceil(16);
        for _ in 0..self.blocks {
            let record = read_record(&mut scratch)?;
            let words = words_left.min(BLOCK_WORDS as u64);
            output.put(&record[2..2 + words as usize])?;
            words_left -= words;
        }
        output.0.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

fn read_record(scratch: &mut impl Read) -> io::Result<[u64; 2 + BLOCK_WORDS]> {
    let mut bytes = [0; RECORD];
    scratch.read_exact(&mut bytes)?;
    let mut record = [0; 2 + BLOCK_WORDS];
    for (element, bytes) in record.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *element = u64::from_le_bytes(*bytes);
    }
    Ok(record)
}
