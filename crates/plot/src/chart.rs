//! The content of a picture, independent of how it is drawn.

use std::fmt;

use pentaglot::{Error, Result};

/// A kind of picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Counts of a column's numbers in ranges of equal width.
    Histogram,
    /// Counts of a column's most frequent values.
    Bar,
    /// A number over time, over another number, or over the row.
    Line,
    /// One number against another.
    Scatter,
    /// The positions of the entries of a matrix.
    Spy,
    /// The first images or tensors of a column.
    Sheet,
    /// The positions of the ones of a bit vector.
    Runs,
    /// The bytes of the file by part.
    Treemap,
}

impl Kind {
    /// All kinds with their names.
    pub const ALL: [(&'static str, Kind); 8] = [
        ("histogram", Kind::Histogram),
        ("bar", Kind::Bar),
        ("line", Kind::Line),
        ("scatter", Kind::Scatter),
        ("spy", Kind::Spy),
        ("sheet", Kind::Sheet),
        ("runs", Kind::Runs),
        ("treemap", Kind::Treemap),
    ];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Kind::ALL.iter().find(|(_, kind)| kind == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

impl std::str::FromStr for Kind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Kind::ALL.iter().find(|(name, _)| *name == text).map(|(_, kind)| *kind);
        found.ok_or_else(|| {
            let names: Vec<&str> = Kind::ALL.iter().map(|(name, _)| *name).collect();
            Error::usage(format!("expected a kind of picture ({}), found {text:?}", names.join(", ")))
        })
    }
}

/// One axis: its label and its range.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Axis {
    /// The name of the values.
    pub label: String,
    /// Its start.
    pub min: f64,
    /// Its end.
    pub max: f64,
    /// Whether numbers are seconds since 1970.
    pub is_time: bool,
}

impl Axis {
    /// Where a value is between the start, 0, and the end, 1; the middle of an axis without a length.
    pub(crate) fn part(&self, value: f64) -> f64 {
        // Half of each: the difference of two finite numbers may not be finite.
        let (low, high) = (self.min / 2.0, self.max / 2.0);
        if high > low { (value / 2.0 - low) / (high - low) } else { 0.5 }
    }
}

/// An image in a sheet.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tile {
    /// Pixels in a row.
    pub width: u32,
    /// Rows of pixels.
    pub height: u32,
    /// Red, green and blue of each pixel.
    pub rgb: Vec<u8>,
    /// The text below it.
    pub label: String,
}

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Part {
    /// Its path.
    pub path: String,
    /// The bytes that it takes.
    pub bytes: u64,
}

/// A picture, ready to be drawn.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Chart {
    /// Bars side by side over an axis of numbers.
    Histogram {
        /// The title.
        title: String,
        /// The axis below the bars.
        axis: Axis,
        /// The height of each bar.
        counts: Vec<u64>,
    },
    /// Labelled bars.
    Bar {
        /// The title.
        title: String,
        /// Each bar with its label.
        bars: Vec<(String, u64)>,
    },
    /// A line, and the range of the values at each place.
    Line {
        /// The title.
        title: String,
        /// From left to right.
        x: Axis,
        /// From bottom to top.
        y: Axis,
        /// Place, mean, least and greatest value.
        points: Vec<[f64; 4]>,
    },
    /// Points.
    Scatter {
        /// The title.
        title: String,
        /// From left to right.
        x: Axis,
        /// From bottom to top.
        y: Axis,
        /// The points.
        points: Vec<[f64; 2]>,
    },
    /// Cells of equal size, darker the more they hold.
    Grid {
        /// The title.
        title: String,
        /// From left to right.
        x: Axis,
        /// From top to bottom, or from bottom to top.
        y: Axis,
        /// Whether the first row of cells is at the bottom.
        is_upward: bool,
        /// Cells in a row.
        width: usize,
        /// How full each cell is, from 0 to 1, row by row.
        cells: Vec<f32>,
    },
    /// Images.
    Sheet {
        /// The title.
        title: String,
        /// The images.
        tiles: Vec<Tile>,
    },
    /// Areas in proportion to bytes.
    Treemap {
        /// The title.
        title: String,
        /// The parts, in the order of the file.
        parts: Vec<Part>,
    },
}
