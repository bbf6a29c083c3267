//! `describe`: statistics of the values of a file.

use pentaglot::job::{
    self, ColumnDescription, Description, Histogram, MatrixDescription, SuccinctDescription, View,
};
use serde_json::Value;

use crate::args::Describe;
use crate::progress::Progress;
use crate::screen::{self, bold, count, cut, escape, faint};
use crate::{About, DONE, Outcome, Session};

/// Maximum number of characters of a value.
const VALUE: usize = 24;
/// Most frequent values that are shown.
const SHOWN: usize = 5;

pub(crate) fn run(session: &Session, args: &Describe) -> Outcome {
    let options = args.open.options(&session.global);
    let file = &args.file;
    let opened = session.open(file, &options)?;
    let mut view = View::default();
    view.columns = args.columns.as_deref().map(job::parse_columns);
    view.filter = args.filter.clone();
    view.batch_rows = session.global.batch_rows;
    let progress = Progress::follow(&session.global);
    let description = opened.describe(&view).about(file)?;
    drop(progress);
    if args.json {
        screen::print(format!("{}\n", description.to_json()).as_bytes())?;
        return Ok(DONE);
    }
    let text = match &description {
        Description::Table(table) => {
            let columns: Vec<String> = table.columns.iter().map(column).collect();
            format!("{}\n{}", count(table.rows, "row"), columns.concat())
        }
        Description::Matrix(figures) => matrix(figures),
        Description::Succinct(figures) => succinct(figures),
        _ => description.to_json(),
    };
    screen::show(&text)?;
    Ok(DONE)
}

/// A JSON text as a cell: strings without their quotes.
fn value(text: &str) -> String {
    let plain = match serde_json::from_str(text) {
        Ok(Value::String(string)) => string,
        _ => text.to_owned(),
    };
    cut(&escape(&plain), VALUE)
}

/// A number with at most six significant digits.
fn number(text: &str) -> String {
    match text.parse::<f64>() {
        Ok(number) => short(number),
        Err(_) => value(text),
    }
}

fn short(number: f64) -> String {
    let size = number.abs();
    if number == number.trunc() && size < 1e15 {
        return format!("{number:.0}");
    }
    let text = match size {
        // One digit after the point at least, so that no digit before it is cut off below.
        1e-4..1e15 => {
            format!("{number:.*}", 5usize.saturating_sub(size.log10().floor().max(0.0) as usize).max(1))
        }
        _ => return format!("{number:.4e}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn column(column: &ColumnDescription) -> String {
    let mut lines = vec![format!("{}  {}", bold(&escape(&column.name)), faint(&escape(&column.data_type)))];
    let about = if column.distinct_exact { "" } else { "about " };
    let mut counts = vec![count(column.count, "value"), format!("{} missing", column.nulls)];
    if column.nans > 0 {
        counts.push(format!("{} NaN", column.nans));
    }
    counts.push(format!("{about}{} distinct", column.distinct));
    if let Some((trues, falses)) = column.truths {
        counts.push(format!("{trues} true"));
        counts.push(format!("{falses} false"));
    }
    lines.push(counts.join(", "));
    let mut figures = Vec::new();
    let mut figure = |name: &str, text: Option<String>| {
        figures.extend(text.map(|text| format!("{} {text}", faint(name))));
    };
    figure("min", column.min.as_deref().map(value));
    if let Some(quantiles) = &column.quantiles {
        let names = job::QUANTILES.map(|quantile| format!("{:.0}%", quantile * 100.0));
        names.iter().zip(quantiles).for_each(|(name, text)| figure(name, Some(number(text))));
    }
    figure("max", column.max.as_deref().map(value));
    figure("mean", column.mean.as_deref().map(number));
    figure("std", column.std.as_deref().map(number));
    if let Some(lengths) = column.lengths {
        let text = format!("{} to {}, mean {}", lengths.min, lengths.max, short(lengths.mean()));
        figure("length", Some(text));
    }
    if !figures.is_empty() {
        lines.push(figures.join("  "));
    }
    if let Some(histogram) = column.histogram.as_ref().filter(|histogram| histogram.counts.len() > 1) {
        lines.push(bars(histogram));
    }
    if column.top.first().is_some_and(|(_, most)| *most > 1) {
        let about = if column.top_exact { "" } else { "at least " };
        let top = column.top.iter().take(SHOWN);
        let top: Vec<String> = top.map(|(text, times)| format!("{} ({about}{times})", value(text))).collect();
        lines.push(format!("{} {}", faint("most frequent"), top.join(", ")));
    }
    format!("\n{}\n", lines.join("\n  "))
}

/// A histogram of Unicode blocks, at most 20 of them.
fn bars(histogram: &Histogram) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let joined = histogram.counts.len().div_ceil(20);
    let counts: Vec<u64> = histogram.counts.chunks(joined).map(|some| some.iter().sum()).collect();
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let block = |count: &u64| match *count {
        0 => ' ',
        count => BLOCKS[((count as f64 / most as f64 * 8.0).ceil() as usize).clamp(1, 8) - 1],
    };
    format!("▕{}▏", counts.iter().map(block).collect::<String>())
}

fn lines(figures: &[(&str, Option<String>)]) -> String {
    let known = figures.iter().filter_map(|(name, text)| Some((name, text.as_ref()?)));
    known.map(|(name, text)| format!("{}  {text}\n", faint(&format!("{name:<11}")))).collect()
}

fn counts(counts: &Option<[f64; 5]>) -> Option<String> {
    let names = job::QUANTILES.map(|quantile| format!("{:.0}%", quantile * 100.0));
    let all = names.iter().zip(counts.as_ref()?);
    Some(all.map(|(name, count)| format!("{} {}", faint(name), short(*count))).collect::<Vec<_>>().join("  "))
}

fn matrix(matrix: &MatrixDescription) -> String {
    lines(&[
        ("shape", Some(format!("{} x {}", matrix.rows, matrix.cols))),
        ("entries", Some(matrix.nonzeros.to_string())),
        ("density", matrix.density.map(|density| format!("{} %", short(density * 100.0)))),
        ("min", matrix.min.as_deref().map(value)),
        ("max", matrix.max.as_deref().map(value)),
        ("mean", matrix.mean.as_deref().map(number)),
        ("NaN", (matrix.nans > 0).then(|| matrix.nans.to_string())),
        ("symmetric", Some(if matrix.symmetric { "yes" } else { "no" }.to_owned())),
        ("bandwidth", matrix.bandwidth.map(|width| width.to_string())),
        ("row counts", counts(&matrix.row_counts)),
        ("col counts", counts(&matrix.col_counts)),
    ])
}

fn succinct(succinct: &SuccinctDescription) -> String {
    let number = |value: Option<u64>| value.map(|value| value.to_string());
    lines(&[
        ("kind", Some(escape(&succinct.kind))),
        ("length", Some(succinct.len.to_string())),
        ("ones", number(succinct.ones)),
        ("width", number(succinct.width)),
        ("runs", number(succinct.runs)),
        ("bits", Some(succinct.bits.to_string())),
        ("entropy", succinct.entropy_bits.map(|bits| format!("{} bits", short(bits)))),
    ])
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn numbers_keep_every_digit_before_the_point() {
        let cases = [
            (1.0, "1"),
            (100_000.4, "100000.4"),
            (120_000.02, "120000"),
            (299_999.5, "299999.5"),
            (1_000_000.5, "1000000.5"),
            (-123.456_789, "-123.457"),
            (0.001_234_567, "0.00123"),
            (1.5e-7, "1.5000e-7"),
            (1e20, "1.0000e20"),
        ];
        for (number, expected) in cases {
            assert_eq!(short(number), expected);
        }
    }
}
