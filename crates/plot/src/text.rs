//! Charts as lines of text: Unicode blocks, no colours.

use crate::axis::{number_text, ticks};
use crate::chart::{Axis, Chart, Part, Tile};

/// Lines of a chart with two axes.
const HEIGHT: usize = 16;
/// Shades from nothing to full.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
/// Eighths of a block, from the bottom and from the left.
const UP: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const RIGHT: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

pub(crate) fn lines(chart: &Chart, width: usize) -> String {
    match chart {
        Chart::Histogram { title, axis, counts } => histogram(title, axis, counts, width),
        Chart::Bar { title, bars } => bar(title, bars, width),
        Chart::Line { title, x, y, points } => {
            let points: Vec<[f64; 2]> = points.iter().map(|[x, mean, _, _]| [*x, *mean]).collect();
            dots(title, x, y, &points, width, true)
        }
        Chart::Scatter { title, x, y, points } => dots(title, x, y, points, width, false),
        Chart::Grid { title, x, y, is_upward, width: columns, cells } => {
            let rows = cells.len() / (*columns).max(1);
            let shown = |row: usize| if *is_upward { rows - 1 - row } else { row };
            grid(title, x, y, *is_upward, width, |across, down, room, high| {
                let part = |index: usize, of: usize, count: usize| {
                    let from = index * count / of;
                    from..((index + 1) * count / of).max(from + 1).min(count.max(from + 1))
                };
                let inside = part(down, high, rows).filter(|row| *row < rows);
                let all = inside.flat_map(|row| {
                    let columns = *columns;
                    part(across, room, columns)
                        .filter(move |column| *column < columns)
                        .map(move |column| cells[shown(row) * columns + column])
                });
                all.fold(0f32, f32::max)
            })
        }
        Chart::Sheet { title, tiles } => sheet(title, tiles, width),
        Chart::Treemap { title, parts } => treemap(title, parts, width),
    }
}

/// Text from a file, in which characters that a terminal interprets are replaced.
fn plain(text: &str) -> String {
    let harmless = |character: char| {
        !character.is_control()
            && !matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|character| if harmless(character) { character } else { '\u{fffd}' }).collect()
}

fn cut(text: &str, width: usize) -> String {
    let text = plain(text);
    if text.chars().count() <= width {
        return text;
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

fn full_bar(part: f64, width: usize) -> String {
    let eighths = (part * width as f64 * 8.0).round() as usize;
    let mut out = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) || eighths == 0 && part > 0.0 {
        out.push(RIGHT[(eighths % 8).max(1)]);
    }
    out
}

fn bar(title: &str, bars: &[(String, u64)], width: usize) -> String {
    let most = bars.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    let labels: Vec<String> = bars.iter().map(|(label, _)| cut(label, width / 3)).collect();
    let widest = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let room = width.saturating_sub(widest + 3 + most.to_string().len()).max(1);
    let mut out = format!("{}\n", cut(title, width));
    for (label, (_, count)) in labels.iter().zip(bars) {
        let bar = full_bar(*count as f64 / most as f64, room);
        out.push_str(&format!("{label:>widest$} {bar} {count}\n"));
    }
    out
}

fn histogram(title: &str, axis: &Axis, counts: &[u64], width: usize) -> String {
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let margin = most.to_string().len() + 1;
    let room = width.saturating_sub(margin + 1).max(1);
    // Each bar takes several characters, or several bars one.
    let (each, joined) = match counts.len() {
        0 => (1, 1),
        count if count <= room => (room / count, 1),
        count => (1, count.div_ceil(room)),
    };
    let bars: Vec<u64> = counts.chunks(joined).map(|some| some.iter().sum()).collect();
    let top = bars.iter().copied().max().unwrap_or(0).max(1);
    let high = HEIGHT / 2;
    let mut out = format!("{}\n", cut(title, width));
    for line in (0..high).rev() {
        let label = if line == high - 1 { top.to_string() } else { String::new() };
        out.push_str(&format!("{label:>margin$}▕"));
        for bar in &bars {
            let eighths = (*bar as f64 / top as f64 * (high * 8) as f64).ceil() as usize;
            let block = UP[eighths.saturating_sub(line * 8).min(8)];
            out.extend(std::iter::repeat_n(block, each));
        }
        out = out.trim_end().to_owned() + "\n";
    }
    out.push_str(&below(axis, margin + 1, bars.len() * each));
    out
}

/// The texts of the ticks of an axis below a chart, and its label.
fn below(axis: &Axis, margin: usize, room: usize) -> String {
    let mut line: Vec<char> = vec![' '; margin + room];
    let mut free = 0;
    for (value, text) in ticks(axis, (room / 14).max(1)) {
        let part = axis.part(value);
        let at = margin + (part * (room.saturating_sub(1)) as f64).round() as usize;
        let length = text.chars().count();
        let start = at.saturating_sub(length / 2).min((margin + room).saturating_sub(length));
        if start >= free && start + length <= line.len() {
            line.splice(start..start + length, text.chars());
            free = start + length + 1;
        }
    }
    let ticks: String = line.iter().collect();
    let label = cut(&axis.label, room);
    let start = margin + room.saturating_sub(label.chars().count()) / 2;
    format!("{}\n{}{label}\n", ticks.trim_end(), " ".repeat(start))
}

/// A grid of shades with both axes; `value` gives the part from 0 to 1 at a place.
fn grid(
    title: &str,
    x: &Axis,
    y: &Axis,
    is_upward: bool,
    width: usize,
    value: impl Fn(usize, usize, usize, usize) -> f32,
) -> String {
    let shade = |part: f32| match part {
        part if part <= 0.0 => SHADES[0],
        part => SHADES[(part.sqrt() * 4.0).ceil().clamp(1.0, 4.0) as usize],
    };
    framed(title, x, y, is_upward, width, |across, down, room, high| shade(value(across, down, room, high)))
}

fn framed(
    title: &str,
    x: &Axis,
    y: &Axis,
    is_upward: bool,
    width: usize,
    mark: impl Fn(usize, usize, usize, usize) -> char,
) -> String {
    let (top, bottom) = if is_upward { (y.max, y.min) } else { (y.min, y.max) };
    let step = (y.max - y.min).abs() / 10.0;
    let (top, bottom) = (number_text(top, step), number_text(bottom, step));
    let margin = top.chars().count().max(bottom.chars().count());
    let room = width.saturating_sub(margin + 2).max(1);
    let mut out = format!("{}\n", cut(title, width));
    for down in 0..HEIGHT {
        let label = match down {
            0 => top.as_str(),
            down if down == HEIGHT - 1 => bottom.as_str(),
            _ => "",
        };
        let line: String = (0..room).map(|across| mark(across, down, room, HEIGHT)).collect();
        out.push_str(format!("{label:>margin$}▕{line}").trim_end());
        out.push('\n');
    }
    out + &below(x, margin + 1, room)
}

/// Points as dots of Braille characters, two across and four down in each.
fn dots(title: &str, x: &Axis, y: &Axis, points: &[[f64; 2]], width: usize, is_line: bool) -> String {
    let margin_free = |room: usize| {
        let mut cells = vec![0u8; room * HEIGHT];
        let place = |axis: &Axis, value: f64, count: usize| {
            let part = axis.part(value);
            ((part * (count - 1) as f64).round().max(0.0) as usize).min(count - 1)
        };
        let mut dot = |across: usize, up: usize| {
            let down = HEIGHT * 4 - 1 - up;
            const BITS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
            cells[down / 4 * room + across / 2] |= BITS[across % 2][down % 4];
        };
        let mut last: Option<(usize, usize)> = None;
        for [px, py] in points {
            let now = (place(x, *px, room * 2), place(y, *py, HEIGHT * 4));
            let from = last.filter(|_| is_line).unwrap_or(now);
            let steps = now.0.abs_diff(from.0).max(now.1.abs_diff(from.1)).max(1);
            for step in 0..=steps {
                let between = |a: usize, b: usize| (a * (steps - step) + b * step) / steps;
                dot(between(from.0, now.0), between(from.1, now.1));
            }
            last = Some(now);
        }
        cells
    };
    let cells = std::cell::OnceCell::new();
    framed(title, x, y, true, width, |across, down, room, _| {
        let cells = cells.get_or_init(|| margin_free(room));
        match cells[down * room + across] {
            0 => ' ',
            bits => char::from_u32(0x2800 + u32::from(bits)).unwrap_or(' '),
        }
    })
}

fn treemap(title: &str, parts: &[Part], width: usize) -> String {
    let bars: Vec<(String, u64)> = parts.iter().map(|part| (part.path.clone(), part.bytes)).collect();
    bar(title, &bars, width)
}

/// Images side by side: a character is one pixel across and two down, dark to bright.
fn sheet(title: &str, tiles: &[Tile], width: usize) -> String {
    let mut out = format!("{}\n", cut(title, width));
    let widest = tiles.iter().map(|tile| (tile.width as usize * 2).clamp(8, 32)).max().unwrap_or(8);
    let columns = (width / (widest + 2)).max(1);
    for some in tiles.chunks(columns) {
        let high = some.iter().map(|tile| rows_of(tile, widest)).max().unwrap_or(0);
        for line in 0..high {
            let text: String = some.iter().map(|tile| tile_line(tile, line, widest) + "  ").collect();
            out.push_str(text.trim_end());
            out.push('\n');
        }
        let labels: String =
            some.iter().map(|tile| format!("{:<widest$}  ", cut(&tile.label, widest))).collect();
        out.push_str(labels.trim_end());
        out.push_str("\n\n");
    }
    out
}

fn rows_of(tile: &Tile, width: usize) -> usize {
    (width * tile.height as usize / (2 * tile.width.max(1) as usize)).clamp(1, 24)
}

fn tile_line(tile: &Tile, line: usize, width: usize) -> String {
    let rows = rows_of(tile, width);
    if line >= rows {
        return " ".repeat(width);
    }
    let row = line * tile.height as usize / rows;
    let pixel = |across: usize| {
        let at = (row * tile.width as usize + across * tile.width as usize / width) * 3;
        let rgb = tile.rgb.get(at..at + 3).unwrap_or(&[0; 3]);
        let bright: u32 = rgb.iter().map(|value| u32::from(*value)).sum::<u32>() / 3;
        SHADES[(bright as usize * SHADES.len() / 256).min(SHADES.len() - 1)]
    };
    (0..width).map(pixel).collect()
}
