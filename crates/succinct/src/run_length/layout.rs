//! A run-length encoded vector as elements: length, ones, samples, data.

use std::io;

use super::decode::BLOCK_UNITS;
use super::{Key, RunLengthVector};
use crate::bits::{bit_len, read_int};
use crate::cpu::dispatch;
use crate::cursor::WordCursor;
use crate::error::Error;
use crate::int_vector::IntVector;
use crate::layout::{Severity, Structure, Supports, Walk, WordSink};
use crate::storage::{Section, Words};

impl<W: Words> Structure<W> for RunLengthVector<W> {
    fn from_words(cursor: &mut WordCursor<W>) -> Result<Self, Error>
    where
        W: Section,
    {
        let at = cursor.position();
        let (len, ones) = (cursor.element("len")?, cursor.element("ones")?);
        let samples_at = cursor.position();
        let samples = IntVector::from_words(cursor).map_err(|error| error.within("samples"))?;
        let data_at = cursor.position();
        let data = IntVector::from_words(cursor).map_err(|error| error.within("data"))?;
        Self::check_parts(len, ones, samples, data, [at, samples_at, data_at])
    }

    fn write_words(&self, supports: Supports, sink: &mut impl WordSink) -> io::Result<()> {
        sink.put(&[self.len, self.ones])?;
        self.samples.write_words(supports, sink)?;
        self.data.write_words(supports, sink)
    }

    fn walk(&self, walk: &mut Walk) {
        let start = walk.offset();
        walk.part("len", 1);
        walk.part("ones", 1);
        let samples_start = walk.offset();
        walk.nest("samples", &self.samples);
        let data_start = walk.offset();
        walk.nest("data", &self.data);
        if walk.checking() {
            self.check(walk, start, samples_start, data_start);
        }
    }
}

impl<W: Words> RunLengthVector<W> {
    /// Follows the runs from block to block and compares the samples with them.
    fn check(&self, walk: &mut Walk, start: u64, samples_start: u64, data_start: u64) {
        let (mut ones, mut tail) = (0_u64, 0_u64);
        for block in 0..self.blocks() {
            for (item, key, expected) in [(0, Key::Ones, ones), (1, Key::Bits, tail)] {
                let found = self.sample(block, key);
                if found != expected {
                    let index = 2 * block + item;
                    let place = samples_start + 4 + index * u64::from(self.samples.width()) / 64;
                    walk.error("samples", place, &format!("samples[{index}]"), expected, found);
                }
            }
            let mut decoder = self.block(block);
            let first = decoder.unit();
            let mut before = decoder.tail;
            while let Some(run) = dispatch!(isa => decoder.next_run(isa)) {
                let place = data_start + 4 + decoder.unit().saturating_sub(1) / 16;
                let name = format!("data[{}]", decoder.unit().saturating_sub(1));
                if run.start < before || decoder.tail < run.start || decoder.tail > self.len {
                    let expected = format!("runs within {} bits", self.len);
                    walk.error("length", place, &name, expected, format!("{} + {}", run.start, run.len));
                }
                if run.start == before && run.start > 0 {
                    let expected = "runs with unset bits between them".to_owned();
                    let found = format!("a run at {}", run.start);
                    walk.finding(Severity::Warning, "maximal runs", place, &name, expected, found);
                }
                before = decoder.tail;
            }
            self.check_padding(walk, data_start, first, decoder.unit());
            (ones, tail) = (decoder.ones, decoder.tail);
            if !walk.checking() {
                return;
            }
        }
        if ones != self.ones {
            walk.error("count", start + 1, "ones", ones, self.ones);
        }
        let width = if self.blocks() == 0 { 1 } else { bit_len(self.sample(self.blocks() - 1, Key::Bits)) };
        if self.samples.width() != width {
            let (expected, found) = (width.to_string(), self.samples.width().to_string());
            let severity = Severity::Warning;
            walk.finding(severity, "minimal width", samples_start + 1, "samples.width", expected, found);
        }
    }

    fn check_padding(&self, walk: &mut Walk, data_start: u64, first: u64, unit: u64) {
        let end = (first + BLOCK_UNITS).min(self.data.len());
        for index in unit.min(end)..end {
            let found = read_int(self.data.bits().words(), 4 * index, 4);
            if found != 0 {
                let place = data_start + 4 + index / 16;
                return walk.error("padding", place, &format!("data[{index}]"), 0, found);
            }
        }
        // Spec, "Run-length encoded bitvector": the final block has no padding.
        if end == self.data.len() && unit < end {
            let place = data_start + 4 + unit / 16;
            walk.error(
                "padding",
                place,
                &format!("data[{unit}]"),
                "no padding in the last block",
                end - unit,
            );
        }
    }
}
