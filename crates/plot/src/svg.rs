//! A scene as an SVG document: text stays text, in a sans-serif font of the viewer.

use std::fmt::Write as _;

use crate::raster::encode;
use crate::scene::{Anchor, Colour, Scene, Shape};

pub(crate) fn document(scene: &Scene) -> String {
    let (width, height) = (number(scene.width), number(scene.height));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"DejaVu Sans, Verdana, sans-serif\" role=\"img\">\n<title>{}</title>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n",
        escape(&scene.title)
    );
    for shape in &scene.shapes {
        // Writing to a string does not fail.
        let _ = write_shape(&mut out, shape);
    }
    out.push_str("</svg>\n");
    out
}

fn write_shape(out: &mut String, shape: &Shape) -> std::fmt::Result {
    match shape {
        Shape::Rect { x, y, width, height, fill, class, title } => {
            write!(
                out,
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"",
                number(*x),
                number(*y),
                number(*width),
                number(*height),
                colour(*fill)
            )?;
            if !class.is_empty() {
                write!(out, " class=\"{class}\"")?;
            }
            match title.is_empty() {
                true => writeln!(out, "/>"),
                false => writeln!(out, "><title>{}</title></rect>", escape(title)),
            }
        }
        Shape::Polyline { points, stroke, width } => writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linejoin=\"round\"/>",
            places(points),
            colour(*stroke),
            number(*width)
        ),
        Shape::Polygon { points, fill } => {
            writeln!(out, "<polygon points=\"{}\" fill=\"{}\"/>", places(points), colour(*fill))
        }
        Shape::Circle { x, y, radius, fill } => writeln!(
            out,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\" fill-opacity=\"0.7\"/>",
            number(*x),
            number(*y),
            number(*radius),
            colour(*fill)
        ),
        Shape::Text { x, y, size, anchor, fill, text, is_turned } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let (x, y) = (number(*x), number(*y));
            let turn = if *is_turned { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
            writeln!(
                out,
                "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\" text-anchor=\"{anchor}\" fill=\"{}\"{turn}>{}</text>",
                number(*size),
                colour(*fill),
                escape(text)
            )
        }
        Shape::Image { x, y, width, height, columns, rows, rgb } => {
            let bytes = encode(*columns, *rows, rgb).unwrap_or_default();
            writeln!(
                out,
                "<image x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" preserveAspectRatio=\"none\" \
                 style=\"image-rendering:pixelated\" href=\"data:image/png;base64,{}\"/>",
                number(*x),
                number(*y),
                number(*width),
                number(*height),
                base64_simd::STANDARD.encode_to_string(bytes)
            )
        }
    }
}

fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn places(points: &[(f64, f64)]) -> String {
    points.iter().map(|(x, y)| format!("{},{}", number(*x), number(*y))).collect::<Vec<_>>().join(" ")
}

fn colour(Colour(red, green, blue): Colour) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Escapes text for XML: characters that XML does not allow become replacement characters.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            character => out.push(character),
        }
    }
    out
}
