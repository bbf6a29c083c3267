//! Pictures of typed data, as SVG, PNG or text: the kind suits the document, which is read once and in
//! bounded memory.
//!
//! ```text
//! document  --gather-->  Chart  --draw-->  Scene  --svg | png-->  bytes
//!                               --text-->  lines of Unicode blocks
//! ```
//!
//! ```
//! use pentaglot::{Registry, Source, job};
//! use pentaglot_plot::{PlotOptions, plot};
//! let source = Source::from_bytes("x.csv", b"a\n1\n2\n2\n".to_vec());
//! let opened = job::open_source(&Registry::default(), source, None, &job::OpenOptions::default())?;
//! let chart = plot(&opened, &PlotOptions::default())?;
//! assert!(chart.to_svg(800, 500).starts_with("<svg "));
//! # Ok::<(), pentaglot::Error>(())
//! ```

mod axis;
mod bins;
mod chart;
mod draw;
mod gather;
mod points;
mod raster;
mod scene;
mod sheet;
mod spy;
mod svg;
mod text;

pub use chart::{Axis, Chart, Kind, Part, Tile};

use pentaglot::Result;
use pentaglot::job::{Opened, View};

/// Options of a picture.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PlotOptions {
    /// The kind of picture; by default what suits the data.
    pub kind: Option<Kind>,
    /// Which rows and columns.
    pub view: View,
}

/// The least and the greatest width of a picture, in pixels. Labels are not readable in a narrower one.
pub const WIDTHS: std::ops::RangeInclusive<u32> = 200..=8000;
/// The least and the greatest height of a picture, in pixels.
pub const HEIGHTS: std::ops::RangeInclusive<u32> = 150..=8000;

/// Reads the data of a picture.
pub fn plot(opened: &Opened, options: &PlotOptions) -> Result<Chart> {
    gather::chart(opened, options)
}

impl Chart {
    /// The picture as an SVG document of this many pixels.
    pub fn to_svg(&self, width: u32, height: u32) -> String {
        svg::document(&draw::scene(self, f64::from(width), f64::from(height)))
    }

    /// The picture as a PNG file of this many pixels.
    pub fn to_png(&self, width: u32, height: u32) -> Result<Vec<u8>> {
        raster::png(&draw::scene(self, f64::from(width), f64::from(height)), width, height)
    }

    /// The picture as lines of text with at most this many characters.
    pub fn to_text(&self, width: usize) -> String {
        text::lines(self, width.max(20))
    }
}
