//! `plot`: a picture of a file.

use std::io::Write;
use std::ops::RangeInclusive;
use std::path::Path;

use pentaglot::{Error, job};
use pentaglot_plot::{HEIGHTS, PlotOptions, WIDTHS, plot};

use crate::args::Plot;
use crate::progress::Progress;
use crate::screen;
use crate::{About, DONE, Outcome, Session};

/// Characters per line if standard output is not a terminal.
const WIDTH: usize = 80;

pub(crate) fn run(session: &Session, args: &Plot) -> Outcome {
    let options = args.open.options(&session.global);
    let file = &args.file;
    let is_png = match args.output.as_deref().map(extension) {
        None | Some(Some("svg")) => false,
        Some(Some("png")) => true,
        Some(_) => {
            let output = args.output.as_deref().unwrap_or_default();
            let found = extension(output).map_or("none".to_owned(), |found| format!(".{found}"));
            let message = format!("{output}: expected the extension .svg or .png, found {found}");
            return Err(Error::usage(message).into());
        }
    };
    let opened = session.open(file, &options)?;
    let create = |output: &String| job::create(&session.registry, output, args.force).about(output);
    let sink = args.output.as_ref().map(create).transpose()?;
    let mut wanted = PlotOptions::default();
    wanted.kind = args.kind;
    wanted.view.columns = args.columns.as_deref().map(job::parse_columns);
    wanted.view.filter.clone_from(&args.filter);
    wanted.view.batch_rows = session.global.batch_rows;
    let progress = Progress::follow(&session.global);
    let chart = plot(&opened, &wanted).about(file)?;
    drop(progress);
    let (Some(output), Some(mut sink)) = (&args.output, sink) else {
        let width = screen::width().unwrap_or(WIDTH);
        screen::print(chart.to_text(width).as_bytes())?;
        return Ok(DONE);
    };
    let (width, height) = args.size;
    let bytes = match is_png {
        true => chart.to_png(width, height).about(file)?,
        false => chart.to_svg(width, height).into_bytes(),
    };
    sink.write_all(&bytes).map_err(Error::from).about(output)?;
    sink.finish().about(output)?;
    Ok(DONE)
}

fn extension(name: &str) -> Option<&str> {
    Path::new(name).extension().and_then(|extension| extension.to_str())
}

/// `WIDTHxHEIGHT` in pixels.
pub(crate) fn parse_size(text: &str) -> Result<(u32, u32), String> {
    let wrong = || {
        let ((least, most), (low, high)) = (WIDTHS.into_inner(), HEIGHTS.into_inner());
        format!("expected WIDTHxHEIGHT from {least}x{low} to {most}x{high}")
    };
    let (width, height) = text.split_once('x').ok_or_else(wrong)?;
    let number = |text: &str, range: RangeInclusive<u32>| {
        text.parse::<u32>().ok().filter(|number| range.contains(number)).ok_or_else(wrong)
    };
    Ok((number(width, WIDTHS)?, number(height, HEIGHTS)?))
}
