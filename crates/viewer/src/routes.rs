//! The requests of the page.

use std::ops::RangeInclusive;
use std::sync::Arc;

use pentaglot::formats::sds::Answer;
use pentaglot::hub::Form;
use pentaglot::job::View;
use pentaglot::{Error, ErrorKind, Result};
use pentaglot_plot::{Chart, HEIGHTS, Kind, PlotOptions, WIDTHS, plot};
use serde_json::{Value, json};

use crate::http::{Request, Response};
use crate::{State, bytes, page, save, table, work};

/// Maximum number of positions in a response.
const MOST_POSITIONS: usize = 1000;
/// Maximum number of matrix entries that are sent individually.
const MOST_ENTRIES: usize = 2000;

pub(crate) fn answer(state: &Arc<State>, request: &Request) -> Response {
    if let Err(refusal) = state.guard.check_source(request) {
        return refusal;
    }
    let is_read = request.method == "GET";
    if is_read && let Some(file) = page::file(&request.path) {
        return file;
    }
    if !is_read && request.method != "POST" {
        return Response::fault(405, "only GET and POST are supported");
    }
    if !is_read && request.path == "/api/login" {
        return login(state, request);
    }
    if !request.path.starts_with("/api/") {
        return Response::fault(404, "there is nothing here");
    }
    if let Err(refusal) = state.guard.check_token(request) {
        return refusal;
    }
    route(state, request).unwrap_or_else(|error| {
        let status = match error.kind() {
            ErrorKind::Usage => 400,
            _ => 500,
        };
        Response::fault(status, &error.to_string())
    })
}

fn login(state: &State, request: &Request) -> Response {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    match body["code"].as_str().and_then(|code| state.guard.exchange(code)) {
        Some(token) => Response::json(json!({ "token": token }).to_string()),
        None => Response::fault(403, "the code is wrong, or was used already: start the viewer again"),
    }
}

fn route(state: &Arc<State>, request: &Request) -> Result<Response> {
    let text = |key: &str| request.query.get(key).map(String::as_str);
    let number = |key: &str| text(key).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let index = text("file").unwrap_or("0");
    let file = || state.files.get(index);
    let body =
        || serde_json::from_slice::<Value>(&request.body).map_err(|_| Error::usage("expected a JSON object"));
    let json = |value: Value| Ok(Response::json(value.to_string()));
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/api/files") => json(files(state)),
        ("POST", "/api/view") => json(table::view(state, file()?, &body()?)?),
        ("GET", "/api/rows") => {
            let bytes = table::cells(state, file()?, &request.query)?;
            Ok(Response::new(200, "application/vnd.apache.arrow.stream", bytes))
        }
        ("GET", "/api/cell") => {
            Ok(Response::json(table::cell(state, file()?, number("row"), number("column"))?))
        }
        ("GET", "/api/describe") => Ok(Response::json(work::describe(state, index, text("column"))?)),
        ("GET", "/api/validate") => Ok(Response::json(work::validate(state, index)?)),
        ("GET", "/api/count") => Ok(Response::json(work::count(state, index)?)),
        ("GET", "/api/outline") => {
            json(bytes::outline(state, file()?, text("path").unwrap_or(""), number("from"))?)
        }
        ("GET", "/api/locate") => json(bytes::locate(state, file()?, number("offset"))?),
        ("GET", "/api/bytes") => {
            let bytes = bytes::at(state, file()?, number("offset"), number("length"))?;
            Ok(Response::new(200, "application/octet-stream", bytes))
        }
        ("GET", "/api/spy") => json(spy(state, request)?),
        ("GET", "/api/picture") => picture(state, request),
        ("GET", "/api/query") => {
            let queries = file()?.queries(state)?;
            let answer = queries.answer(text("query").unwrap_or("").split_whitespace())?;
            // The page shows the first of many positions.
            let answer = match answer {
                Answer::Positions(positions) => Answer::Positions(Box::new(positions.take(MOST_POSITIONS))),
                other => other,
            };
            json(json!({ "answer": answer.into_text() }))
        }
        ("POST", "/api/plan") => json(save::plan(state, file()?, &body()?)?),
        ("POST", "/api/save") => json(save::save(state, file()?, &body()?)?),
        _ => Ok(Response::fault(404, "there is nothing here")),
    }
}

fn files(state: &State) -> Value {
    let files: Vec<Value> = state.files.all().iter().map(|file| file.about(state)).collect();
    let targets = state.registry.formats().map(|format| {
        let info = format.info();
        let dialects: Vec<&str> =
            info.dialects.iter().filter(|dialect| dialect.write).map(|dialect| dialect.name).collect();
        json!({ "id": info.id, "title": info.title, "extension": info.extensions.first(), "dialects": dialects })
    });
    let targets: Vec<Value> = targets.collect();
    json!({
        "files": files, "targets": targets, "read_only": state.options.read_only, "filter": state.options.filter,
    })
}

/// A rectangle of a matrix: the density of its cells, and its entries if they are few.
fn spy(state: &State, request: &Request) -> Result<Value> {
    let opened = state.files.get(request.query.get("file").map_or("0", String::as_str))?.opened(state)?;
    let number = |key: &str| request.query.get(key).and_then(|text| text.parse::<u64>().ok());
    let mut options = PlotOptions::default();
    options.kind = Some(Kind::Spy);
    let is_list = matches!(Form::of(&opened.document.summary().schema), Form::Dense | Form::Sparse);
    let (top, left) = (number("top").unwrap_or(0), number("left").unwrap_or(0));
    if let (true, Some(bottom), Some(right)) = (is_list, number("bottom"), number("right")) {
        options.view.rows = Some(top..bottom.max(top));
        options.view.columns = Some(vec![format!("{left}..{}", right.max(left))]);
    }
    let Chart::Grid { x, y, width, cells, .. } = plot(opened, &options)? else {
        return Err(Error::usage("this is not a matrix"));
    };
    let cells: Vec<f64> = cells.iter().map(|cell| (f64::from(*cell) * 1000.0).ceil() / 1000.0).collect();
    let entries = match number("entries") {
        Some(1) => entries(opened, &options.view, top, left)?,
        _ => Value::Null,
    };
    Ok(json!({ "rows": y.max, "cols": x.max, "width": width, "cells": cells, "entries": entries }))
}

/// Row, column and value of each entry; null if there are many.
fn entries(opened: &pentaglot::job::Opened, view: &View, top: u64, left: u64) -> Result<Value> {
    let mut view = view.clone();
    view.forms = vec![Form::Coo];
    let mut found = Vec::new();
    for batch in opened.rows(&view)? {
        let batch = batch.map_err(Error::from)?;
        let columns = pentaglot::hub::json::Columns::new(&batch, &pentaglot::job::json_options())?;
        for row in 0..batch.num_rows() {
            if found.len() == MOST_ENTRIES {
                return Ok(Value::Null);
            }
            let mut out = Vec::new();
            columns.write_array(row, &mut out)?;
            let entry: Vec<Value> = serde_json::from_slice(&out).unwrap_or_default();
            if let [row, col, value] = entry.as_slice() {
                let (row, col) = (row.as_u64().unwrap_or(0), col.as_u64().unwrap_or(0));
                found.push(json!([row + top, col + left, value]));
            }
        }
    }
    Ok(Value::Array(found))
}

/// A picture as SVG.
fn picture(state: &State, request: &Request) -> Result<Response> {
    let opened = state.files.get(request.query.get("file").map_or("0", String::as_str))?.opened(state)?;
    let number = |key: &str| request.query.get(key).and_then(|text| text.parse::<u32>().ok());
    let mut options = PlotOptions::default();
    options.kind = request.query.get("kind").map(|kind| kind.parse()).transpose()?;
    options.view.columns = request.query.get("column").map(|column| vec![column.clone()]);
    let from = number("from").map(u64::from).unwrap_or(0);
    if from > 0 {
        options.view.rows = Some(from..u64::MAX);
    }
    let size = |key: &str, usual: u32, range: RangeInclusive<u32>| {
        number(key).unwrap_or(usual).clamp(*range.start(), *range.end())
    };
    let (width, height) = (size("width", 900, WIDTHS), size("height", 500, HEIGHTS));
    let svg = plot(opened, &options)?.to_svg(width, height);
    Ok(Response::new(200, "image/svg+xml", svg))
}
