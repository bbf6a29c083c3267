//! The shapes of a picture: a few simple ones that both SVG and the rasteriser support.

use std::sync::LazyLock;

use ab_glyph::{Font, FontRef, PxScale, ScaleFont};

/// A colour without transparency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Colour(pub(crate) u8, pub(crate) u8, pub(crate) u8);

impl Colour {
    /// `part` of the way to another colour.
    pub(crate) fn towards(self, other: Colour, part: f64) -> Colour {
        let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * part).round() as u8;
        Colour(mix(self.0, other.0), mix(self.1, other.1), mix(self.2, other.2))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Debug, Clone)]
pub(crate) enum Shape {
    /// `class` names its role in the SVG.
    Rect {
        x: f64,
        y: f64,
        width: f64,
        height: f64,
        fill: Colour,
        class: &'static str,
        title: String,
    },
    Polyline {
        points: Vec<(f64, f64)>,
        stroke: Colour,
        width: f64,
    },
    Polygon {
        points: Vec<(f64, f64)>,
        fill: Colour,
    },
    Circle {
        x: f64,
        y: f64,
        radius: f64,
        fill: Colour,
    },
    /// `y` is the base line.
    Text {
        x: f64,
        y: f64,
        size: f64,
        anchor: Anchor,
        fill: Colour,
        text: String,
        is_turned: bool,
    },
    /// Pixels, stretched without smoothing.
    Image {
        x: f64,
        y: f64,
        width: f64,
        height: f64,
        columns: u32,
        rows: u32,
        rgb: Vec<u8>,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct Scene {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) title: String,
    pub(crate) shapes: Vec<Shape>,
}

pub(crate) static FONT: LazyLock<FontRef<'static>> = LazyLock::new(|| {
    FontRef::try_from_slice(include_bytes!("../font/DejaVuSans-subset.ttf"))
        .expect("the embedded font is sound")
});

/// The scale at which an em of the font has `size` pixels; the font's own scale is the height of a line.
pub(crate) fn scale(size: f64) -> PxScale {
    let ems = FONT.units_per_em().map_or(1.0, |units| FONT.height_unscaled() / units);
    PxScale::from(size as f32 * ems)
}

/// How wide a text is.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let font = FONT.as_scaled(scale(size));
    text.chars().map(|character| f64::from(font.h_advance(FONT.glyph_id(character)))).sum()
}

/// The text, cut with an ellipsis to this width.
pub(crate) fn fitted(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for character in text.chars() {
        kept.push(character);
        if text_width(&kept, size) + text_width("…", size) > width {
            kept.pop();
            break;
        }
    }
    if kept.is_empty() { kept } else { kept + "…" }
}
