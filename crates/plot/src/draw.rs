//! Charts as scenes: margins, axes, marks.

use crate::axis::ticks;
use crate::chart::{Axis, Chart, Part, Tile};
use crate::scene::{Anchor, Colour, Scene, Shape, fitted, text_width};

const INK: Colour = Colour(38, 50, 66);
const FAINT: Colour = Colour(110, 122, 138);
const LINES: Colour = Colour(226, 230, 236);
const MARK: Colour = Colour(46, 111, 183);
const BAND: Colour = Colour(190, 213, 238);
const WHITE: Colour = Colour(255, 255, 255);
/// Colours of areas side by side.
const AREAS: [Colour; 6] = [
    Colour(46, 111, 183),
    Colour(57, 142, 128),
    Colour(190, 122, 44),
    Colour(126, 93, 166),
    Colour(178, 76, 92),
    Colour(92, 112, 132),
];
/// Size of labels.
const SIZE: f64 = 12.0;

/// The inside of the axes.
struct Frame {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

pub(crate) fn scene(chart: &Chart, width: f64, height: f64) -> Scene {
    let mut scene = Scene { width, height, title: String::new(), shapes: Vec::new() };
    let (Chart::Histogram { title, .. }
    | Chart::Bar { title, .. }
    | Chart::Line { title, .. }
    | Chart::Scatter { title, .. }
    | Chart::Grid { title, .. }
    | Chart::Sheet { title, .. }
    | Chart::Treemap { title, .. }) = chart;
    scene.title.clone_from(title);
    let shown = fitted(title, 15.0, width - 32.0);
    scene.text(16.0, 26.0, 15.0, Anchor::Start, INK, shown);
    match chart {
        Chart::Histogram { axis, counts, .. } => histogram(&mut scene, axis, counts),
        Chart::Bar { bars, .. } => bar(&mut scene, bars),
        Chart::Line { x, y, points, .. } => line(&mut scene, x, y, points),
        Chart::Scatter { x, y, points, .. } => {
            let frame = axes(&mut scene, x, y, true);
            let radius = if points.len() <= 200 { 4.0 } else { 2.6 };
            for [px, py] in points {
                let (x, y) =
                    (frame.x + place(x, *px) * frame.width, frame.bottom() - place(y, *py) * frame.height);
                scene.shapes.push(Shape::Circle { x, y, radius, fill: MARK });
            }
        }
        Chart::Grid { x, y, is_upward, width, cells, .. } => {
            grid(&mut scene, x, y, *is_upward, *width, cells)
        }
        Chart::Sheet { tiles, .. } => sheet(&mut scene, tiles),
        Chart::Treemap { parts, .. } => treemap(&mut scene, parts),
    }
    scene
}

impl Scene {
    fn text(&mut self, x: f64, y: f64, size: f64, anchor: Anchor, fill: Colour, text: String) {
        self.shapes.push(Shape::Text { x, y, size, anchor, fill, text, is_turned: false });
    }

    fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, fill: Colour) {
        self.shapes.push(Shape::Rect { x, y, width, height, fill, class: "", title: String::new() });
    }

    fn bar(&mut self, area: [f64; 4], fill: Colour, title: String) {
        let [x, y, width, height] = area;
        self.shapes.push(Shape::Rect { x, y, width, height, fill, class: "bar", title });
    }
}

impl Frame {
    fn bottom(&self) -> f64 {
        self.y + self.height
    }
}

/// How far along an axis a value is, from 0 to 1.
fn place(axis: &Axis, value: f64) -> f64 {
    axis.part(value).clamp(0.0, 1.0)
}

/// Draws both axes with ticks and labels.
fn axes(scene: &mut Scene, x: &Axis, y: &Axis, is_upward: bool) -> Frame {
    let down = ticks(y, ((scene.height - 100.0) / 45.0).max(2.0) as usize);
    let widest = down.iter().map(|(_, text)| text_width(text, SIZE)).fold(0.0, f64::max);
    let left = 24.0 + widest + if y.label.is_empty() { 0.0 } else { 20.0 };
    let frame = Frame {
        x: left,
        y: 44.0,
        width: (scene.width - left - 24.0).max(1.0),
        height: (scene.height - 44.0 - 54.0).max(1.0),
    };
    for (value, text) in down {
        let part = place(y, value);
        let at = if is_upward { frame.bottom() - part * frame.height } else { frame.y + part * frame.height };
        scene.rect(frame.x, at - 0.5, frame.width, 1.0, LINES);
        scene.text(frame.x - 8.0, at + 4.0, SIZE, Anchor::End, FAINT, text);
    }
    let wanted = if x.is_time { frame.width / 130.0 } else { frame.width / 90.0 };
    for (value, text) in ticks(x, wanted.max(2.0) as usize) {
        let at = frame.x + place(x, value) * frame.width;
        scene.rect(at - 0.5, frame.bottom(), 1.0, 5.0, FAINT);
        let half = text_width(&text, SIZE) / 2.0;
        let at = at.min(scene.width - half - 4.0);
        scene.text(at, frame.bottom() + 19.0, SIZE, Anchor::Middle, FAINT, text);
    }
    scene.rect(frame.x, frame.bottom() - 0.5, frame.width, 1.0, FAINT);
    let label = fitted(&x.label, SIZE, frame.width);
    scene.text(frame.x + frame.width / 2.0, scene.height - 12.0, SIZE, Anchor::Middle, INK, label);
    if !y.label.is_empty() {
        let text = fitted(&y.label, SIZE, frame.height);
        scene.shapes.push(Shape::Text {
            x: 20.0,
            y: frame.y + frame.height / 2.0,
            size: SIZE,
            anchor: Anchor::Middle,
            fill: INK,
            text,
            is_turned: true,
        });
    }
    frame
}

fn histogram(scene: &mut Scene, axis: &Axis, counts: &[u64]) {
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let y = Axis { label: "count".to_owned(), min: 0.0, max: most as f64 * 1.04, is_time: false };
    let frame = axes(scene, axis, &y, true);
    let width = frame.width / counts.len().max(1) as f64;
    let gap = if width > 4.0 { 1.0 } else { 0.0 };
    for (index, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let height = place(&y, *count as f64) * frame.height;
        let area = [
            frame.x + index as f64 * width + gap / 2.0,
            frame.bottom() - height,
            (width - gap).max(0.5),
            height,
        ];
        scene.bar(area, MARK, count.to_string());
    }
}

fn bar(scene: &mut Scene, bars: &[(String, u64)]) {
    let most = bars.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    let widest = bars.iter().map(|(label, _)| text_width(label, SIZE)).fold(0.0, f64::max);
    let left = 24.0 + widest.min(scene.width * 0.35);
    let room = scene.width - left - 24.0 - text_width(&most.to_string(), SIZE) - 8.0;
    let each = ((scene.height - 60.0) / bars.len().max(1) as f64).min(64.0);
    for (index, (label, count)) in bars.iter().enumerate() {
        let y = 44.0 + index as f64 * each;
        let width = (*count as f64 / most as f64 * room).max(1.0);
        let middle = y + each / 2.0 + 4.0;
        scene.text(left - 8.0, middle, SIZE, Anchor::End, INK, fitted(label, SIZE, left - 24.0));
        scene.bar([left, y + each * 0.12, width, each * 0.76], MARK, format!("{label}: {count}"));
        scene.text(left + width + 6.0, middle, SIZE, Anchor::Start, FAINT, count.to_string());
    }
}

fn line(scene: &mut Scene, x: &Axis, y: &Axis, points: &[[f64; 4]]) {
    let frame = axes(scene, x, y, true);
    let at = |px: f64, py: f64| {
        (frame.x + place(x, px) * frame.width, frame.bottom() - place(y, py) * frame.height)
    };
    if points.iter().any(|[_, _, low, high]| low < high) {
        let above = points.iter().map(|[px, _, _, high]| at(*px, *high));
        let below = points.iter().rev().map(|[px, _, low, _]| at(*px, *low));
        scene.shapes.push(Shape::Polygon { points: above.chain(below).collect(), fill: BAND });
    }
    let middle: Vec<(f64, f64)> = points.iter().map(|[px, mean, _, _]| at(*px, *mean)).collect();
    if let [(x, y)] = middle[..] {
        scene.shapes.push(Shape::Circle { x, y, radius: 3.0, fill: MARK });
    }
    scene.shapes.push(Shape::Polyline { points: middle, stroke: MARK, width: 1.6 });
}

/// From nearly white to a dark blue, quickly at first, so that few entries are visible.
fn shade(part: f32) -> Colour {
    if part <= 0.0 {
        return Colour(247, 249, 251);
    }
    let part = f64::from(part).sqrt() * 0.85 + 0.15;
    match part {
        part if part < 0.5 => Colour(214, 228, 243).towards(Colour(74, 139, 203), part * 2.0),
        part => Colour(74, 139, 203).towards(Colour(10, 36, 84), part * 2.0 - 1.0),
    }
}

fn grid(scene: &mut Scene, x: &Axis, y: &Axis, is_upward: bool, width: usize, cells: &[f32]) {
    let frame = axes(scene, x, y, is_upward);
    let rows = cells.len() / width.max(1);
    if rows == 0 {
        return;
    }
    let mut rgb = Vec::new();
    for row in 0..rows {
        let from = if is_upward { rows - 1 - row } else { row };
        for cell in &cells[from * width..(from + 1) * width] {
            let Colour(red, green, blue) = shade(*cell);
            rgb.extend_from_slice(&[red, green, blue]);
        }
    }
    scene.shapes.push(Shape::Image {
        x: frame.x,
        y: frame.y,
        width: frame.width,
        height: frame.height,
        columns: width as u32,
        rows: rows as u32,
        rgb,
    });
}

fn sheet(scene: &mut Scene, tiles: &[Tile]) {
    let (width, height) = (scene.width - 32.0, scene.height - 56.0);
    // The number of columns at which tiles are largest.
    let ratio =
        tiles.first().map_or(1.0, |tile| f64::from(tile.height.max(1)) / f64::from(tile.width.max(1)));
    let side = |columns: usize| {
        let rows = tiles.len().div_ceil(columns) as f64;
        (width / columns as f64 - 12.0).min((height / rows - 26.0) / ratio)
    };
    let columns = (1..=tiles.len().max(1)).rev().max_by(|a, b| side(*a).total_cmp(&side(*b))).unwrap_or(1);
    let size = side(columns).max(4.0);
    for (index, tile) in tiles.iter().enumerate() {
        let x = 16.0 + (index % columns) as f64 * (size + 12.0);
        let y = 40.0 + (index / columns) as f64 * (size * ratio + 26.0);
        let high = size * ratio;
        scene.rect(x - 1.0, y - 1.0, size + 2.0, high + 2.0, LINES);
        scene.shapes.push(Shape::Image {
            x,
            y,
            width: size,
            height: high,
            columns: tile.width,
            rows: tile.height,
            rgb: tile.rgb.clone(),
        });
        let label = fitted(&tile.label, 11.0, size);
        scene.text(x, y + high + 14.0, 11.0, Anchor::Start, FAINT, label);
    }
}

/// A squarified treemap (Bruls, Huizing, van Wijk 2000): rows of areas that are as square as possible.
fn treemap(scene: &mut Scene, parts: &[Part]) {
    let mut order: Vec<(usize, &Part)> =
        parts.iter().enumerate().filter(|(_, part)| part.bytes > 0).collect();
    order.sort_by(|a, b| b.1.bytes.cmp(&a.1.bytes).then(a.0.cmp(&b.0)));
    let total: f64 = order.iter().map(|(_, part)| part.bytes as f64).sum();
    let (mut x, mut y, mut width, mut height) = (16.0, 40.0, scene.width - 32.0, scene.height - 56.0);
    let scale = width * height / total.max(1.0);
    let mut rest = order.as_slice();
    while !rest.is_empty() {
        let side = f64::min(width, height);
        let worst = |count: usize| {
            let areas = rest[..count].iter().map(|(_, part)| part.bytes as f64 * scale);
            let thick = areas.clone().sum::<f64>() / side;
            areas.map(|area| (thick * thick / area).max(area / (thick * thick))).fold(0.0, f64::max)
        };
        let mut count = 1;
        while count < rest.len() && worst(count + 1) <= worst(count) {
            count += 1;
        }
        let (row, later) = rest.split_at(count);
        rest = later;
        let thick = row.iter().map(|(_, part)| part.bytes as f64 * scale).sum::<f64>() / side;
        let mut along = 0.0;
        for (index, part) in row {
            let length = part.bytes as f64 * scale / thick;
            let area =
                if width >= height { [x, y + along, thick, length] } else { [x + along, y, length, thick] };
            along += length;
            area_of(scene, area, AREAS[index % AREAS.len()], part);
        }
        if width >= height {
            (x, width) = (x + thick, width - thick);
        } else {
            (y, height) = (y + thick, height - thick);
        }
    }
}

fn area_of(scene: &mut Scene, [x, y, width, height]: [f64; 4], fill: Colour, part: &Part) {
    let title = format!("{}: {} bytes", part.path, part.bytes);
    let inner = [x + 0.75, y + 0.75, (width - 1.5).max(0.5), (height - 1.5).max(0.5)];
    scene.bar(inner, fill, title);
    if width > 46.0 && height > 20.0 {
        scene.text(x + 7.0, y + 17.0, SIZE, Anchor::Start, WHITE, fitted(&part.path, SIZE, width - 12.0));
    }
    if width > 46.0 && height > 38.0 {
        let bytes = fitted(&size_text(part.bytes), 11.0, width - 12.0);
        scene.text(x + 7.0, y + 33.0, 11.0, Anchor::Start, WHITE.towards(fill, 0.2), bytes);
    }
}

pub(crate) fn size_text(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = "bytes";
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if value >= 1024.0 {
            (value, unit) = (value / 1024.0, next);
        }
    }
    if unit == "bytes" { format!("{bytes} bytes") } else { format!("{value:.1} {unit}") }
}
