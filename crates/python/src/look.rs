//! Figures and pictures.

use std::borrow::Cow;

use pentaglot::job::View;
use pentaglot_plot::{HEIGHTS, PlotOptions, WIDTHS, plot as draw};
use pyo3::prelude::*;

use crate::document::Document;
use crate::error::{About, Outcome};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(describe, module)?)?;
    module.add_function(wrap_pyfunction!(plot, module)?)
}

fn view(columns: Option<Vec<String>>, filter: Option<String>) -> View {
    let mut view = View::default();
    view.columns = columns;
    view.filter = filter;
    view
}

/// What the values of a document are like, as JSON.
#[pyfunction]
#[pyo3(signature = (document, columns, filter, progress))]
fn describe(
    py: Python<'_>,
    document: &Bound<'_, Document>,
    columns: Option<Vec<String>>,
    filter: Option<String>,
    progress: Option<Py<PyAny>>,
) -> Outcome<String> {
    let document = document.get();
    let view = view(columns, filter);
    let watch = document.watch(progress);
    watch.run(py, || Ok(document.opened.describe(&view)?.to_json())).about(document.name())
}

/// A picture: the bytes of an SVG document or of a PNG file.
#[pyfunction]
#[pyo3(signature = (document, kind, columns, filter, size, png, progress))]
#[expect(clippy::too_many_arguments, reason = "they are those of the Python function")]
fn plot(
    py: Python<'_>,
    document: &Bound<'_, Document>,
    kind: Option<String>,
    columns: Option<Vec<String>>,
    filter: Option<String>,
    size: (u32, u32),
    png: bool,
    progress: Option<Py<PyAny>>,
) -> Outcome<Cow<'static, [u8]>> {
    let document = document.get();
    let watch = document.watch(progress);
    let drawn = watch.run(py, || {
        let mut options = PlotOptions::default();
        options.kind = kind.as_deref().map(str::parse).transpose()?;
        options.view = view(columns, filter);
        let (width, height) = size;
        if !WIDTHS.contains(&width) || !HEIGHTS.contains(&height) {
            let ((least, most), (low, high)) = (WIDTHS.into_inner(), HEIGHTS.into_inner());
            let message = format!(
                "expected a size from {least} x {low} to {most} x {high} pixels, found {width} x {height}"
            );
            return Err(pentaglot::Error::usage(message).into());
        }
        let chart = draw(&document.opened, &options)?;
        Ok(match png {
            true => chart.to_png(width, height)?,
            false => chart.to_svg(width, height).into_bytes(),
        })
    });
    drawn.map(Cow::Owned).about(document.name())
}
