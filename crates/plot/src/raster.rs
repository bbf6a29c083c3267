//! Renders a scene as pixels. Edges are smooth: the colour of a pixel is weighted by the area that a shape
//! covers.

use ab_glyph::{Font, ScaleFont, point};
use pentaglot::{Error, Result};

use crate::scene::{Anchor, Colour, FONT, Scene, Shape, scale, text_width};

/// The bytes of a PNG file.
pub(crate) fn png(scene: &Scene, width: u32, height: u32) -> Result<Vec<u8>> {
    let mut canvas = Canvas { width: width as usize, height: height as usize, rgb: Vec::new() };
    canvas.rgb.resize(canvas.width * canvas.height * 3, 255);
    scene.shapes.iter().for_each(|shape| canvas.draw(shape));
    encode(width, height, &canvas.rgb)
}

/// Pixels as a PNG file.
pub(crate) fn encode(width: u32, height: u32, rgb: &[u8]) -> Result<Vec<u8>> {
    let wrong = |error: png::EncodingError| Error::io("cannot write PNG", std::io::Error::other(error));
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().map_err(wrong)?;
    writer.write_image_data(rgb).map_err(wrong)?;
    writer.finish().map_err(wrong)?;
    Ok(bytes)
}

struct Canvas {
    width: usize,
    height: usize,
    rgb: Vec<u8>,
}

impl Canvas {
    fn blend(&mut self, x: i64, y: i64, Colour(red, green, blue): Colour, cover: f64) {
        let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else { return };
        if x >= self.width || y >= self.height || cover <= 0.0 {
            return;
        }
        let at = (y * self.width + x) * 3;
        for (own, new) in self.rgb[at..at + 3].iter_mut().zip([red, green, blue]) {
            let mixed = f64::from(*own) + (f64::from(new) - f64::from(*own)) * cover.min(1.0);
            *own = mixed.round() as u8;
        }
    }

    /// Pixels from `from` to `to`, cut at the edge of the canvas.
    fn span(from: f64, to: f64, most: usize) -> std::ops::Range<i64> {
        (from.floor().max(0.0) as i64)..(to.ceil().clamp(0.0, most as f64) as i64)
    }

    fn draw(&mut self, shape: &Shape) {
        match shape {
            Shape::Rect { x, y, width, height, fill, .. } => self.rect(*x, *y, *width, *height, *fill),
            Shape::Polyline { points, stroke, width } => {
                points.windows(2).for_each(|pair| self.segment(pair[0], pair[1], *width, *stroke));
            }
            Shape::Polygon { points, fill } => self.polygon(points, *fill),
            Shape::Circle { x, y, radius, fill } => {
                for row in Self::span(y - radius - 1.0, y + radius + 1.0, self.height) {
                    for column in Self::span(x - radius - 1.0, x + radius + 1.0, self.width) {
                        let distance = (column as f64 + 0.5 - x).hypot(row as f64 + 0.5 - y);
                        self.blend(column, row, *fill, (radius - distance + 0.5).clamp(0.0, 1.0) * 0.7);
                    }
                }
            }
            Shape::Text { x, y, size, anchor, fill, text, is_turned } => {
                self.text(*x, *y, *size, *anchor, *fill, text, *is_turned);
            }
            Shape::Image { x, y, width, height, columns, rows, rgb } => {
                for row in Self::span(*y, y + height, self.height) {
                    for column in Self::span(*x, x + width, self.width) {
                        let part = |place: f64, start: f64, length: f64, count: u32| {
                            (((place + 0.5 - start) / length * f64::from(count)).max(0.0) as usize)
                                .min(count.saturating_sub(1) as usize)
                        };
                        let from = part(row as f64, *y, *height, *rows) * *columns as usize
                            + part(column as f64, *x, *width, *columns);
                        if let [red, green, blue] = rgb[from * 3..from * 3 + 3] {
                            self.blend(column, row, Colour(red, green, blue), 1.0);
                        }
                    }
                }
            }
        }
    }

    fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, fill: Colour) {
        let overlap =
            |pixel: i64, from: f64, to: f64| (to.min(pixel as f64 + 1.0) - from.max(pixel as f64)).max(0.0);
        for row in Self::span(y, y + height, self.height) {
            let down = overlap(row, y, y + height);
            for column in Self::span(x, x + width, self.width) {
                self.blend(column, row, fill, down * overlap(column, x, x + width));
            }
        }
    }

    fn segment(&mut self, from: (f64, f64), to: (f64, f64), width: f64, stroke: Colour) {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = dx * dx + dy * dy;
        let reach = width / 2.0 + 1.0;
        for row in Self::span(from.1.min(to.1) - reach, from.1.max(to.1) + reach, self.height) {
            for column in Self::span(from.0.min(to.0) - reach, from.0.max(to.0) + reach, self.width) {
                let (x, y) = (column as f64 + 0.5, row as f64 + 0.5);
                let along = if length > 0.0 { ((x - from.0) * dx + (y - from.1) * dy) / length } else { 0.0 };
                let along = along.clamp(0.0, 1.0);
                let distance = (x - from.0 - along * dx).hypot(y - from.1 - along * dy);
                self.blend(column, row, stroke, (width / 2.0 - distance + 0.5).clamp(0.0, 1.0));
            }
        }
    }

    /// Fills row by row, between the intersections of the edges with the middle of the row.
    fn polygon(&mut self, points: &[(f64, f64)], fill: Colour) {
        let low = points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
        let high = points.iter().map(|point| point.1).fold(f64::NEG_INFINITY, f64::max);
        for row in Self::span(low, high, self.height) {
            let middle = row as f64 + 0.5;
            let edges = points.iter().zip(points.iter().cycle().skip(1));
            let crossing = |(from, to): (&(f64, f64), &(f64, f64))| {
                let crosses = (from.1 <= middle) != (to.1 <= middle);
                crosses.then(|| from.0 + (middle - from.1) / (to.1 - from.1) * (to.0 - from.0))
            };
            let mut crossings: Vec<f64> = edges.filter_map(crossing).collect();
            crossings.sort_by(f64::total_cmp);
            for pair in crossings.chunks_exact(2) {
                self.rect(pair[0], row as f64, pair[1] - pair[0], 1.0, fill);
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "they are those of the shape")]
    fn text(&mut self, x: f64, y: f64, size: f64, anchor: Anchor, fill: Colour, text: &str, is_turned: bool) {
        // A rotated text is drawn by rotating each of its pixels about its anchor.
        let width = text_width(text, size);
        let start = match anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => -width / 2.0,
            Anchor::End => -width,
        };
        let scaled = FONT.as_scaled(scale(size));
        let mut pen = start;
        for character in text.chars() {
            let id = FONT.glyph_id(character);
            let (base_x, base_y) = if is_turned { (pen, 0.0) } else { (x + pen, y) };
            let glyph = id.with_scale_and_position(scale(size), point(base_x as f32, base_y as f32));
            if let Some(outline) = FONT.outline_glyph(glyph) {
                let bounds = outline.px_bounds();
                outline.draw(|column, row, cover| {
                    let (left, top) =
                        (i64::from(column) + bounds.min.x as i64, i64::from(row) + bounds.min.y as i64);
                    let (left, top) = match is_turned {
                        true => (x.round() as i64 + top, y.round() as i64 - left),
                        false => (left, top),
                    };
                    self.blend(left, top, fill, f64::from(cover));
                });
            }
            pen += f64::from(scaled.h_advance(id));
        }
    }
}
