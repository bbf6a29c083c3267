//! Descriptions as JSON.

use super::{
    ColumnDescription, Description, MatrixDescription, QUANTILES, SuccinctDescription, TableDescription,
    number_text,
};
use crate::wire::json::write_string;

impl Description {
    /// One JSON object: the documented members in their order, then others if present (`count`, `true`,
    /// `false`, `lengths`, `histogram` of a column; `nans` of a matrix).
    pub fn to_json(&self) -> String {
        match self {
            Description::Table(table) => table_json(table),
            Description::Matrix(matrix) => matrix_json(matrix),
            Description::Succinct(succinct) => succinct_json(succinct),
        }
    }
}

fn string(text: &str) -> String {
    let mut out = Vec::new();
    write_string(&mut out, text);
    String::from_utf8_lossy(&out).into_owned()
}

fn text(value: &Option<String>) -> String {
    value.clone().unwrap_or_else(|| "null".to_owned())
}

fn object(members: &[(&str, String)]) -> String {
    let members: Vec<String> = members.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
    format!("{{{}}}", members.join(","))
}

fn list(values: impl Iterator<Item = String>) -> String {
    format!("[{}]", values.collect::<Vec<_>>().join(","))
}

fn quantiles(values: impl Iterator<Item = String>) -> String {
    let keys = QUANTILES.map(|quantile| quantile.to_string());
    let members: Vec<(&str, String)> = keys.iter().map(String::as_str).zip(values).collect();
    object(&members)
}

fn table_json(table: &TableDescription) -> String {
    object(&[
        ("rows", table.rows.to_string()),
        ("columns", list(table.columns.iter().map(ColumnDescription::to_json))),
    ])
}

impl ColumnDescription {
    /// One JSON object; see [`Description::to_json`].
    pub fn to_json(&self) -> String {
        let top = self.top.iter().map(|(value, count)| format!("[{value},{count}]"));
        let own_quantiles = self.quantiles.as_ref().map(|values| quantiles(values.iter().cloned()));
        let mut members = vec![
            ("name", string(&self.name)),
            ("type", string(&self.data_type)),
            ("nulls", self.nulls.to_string()),
            ("nans", self.nans.to_string()),
            ("distinct", self.distinct.to_string()),
            ("distinct_exact", self.distinct_exact.to_string()),
            ("min", text(&self.min)),
            ("max", text(&self.max)),
            ("mean", text(&self.mean)),
            ("std", text(&self.std)),
            ("quantiles", text(&own_quantiles)),
            ("top", list(top)),
            ("top_exact", self.top_exact.to_string()),
            ("count", self.count.to_string()),
        ];
        if let Some((trues, falses)) = self.truths {
            members.push(("true", trues.to_string()));
            members.push(("false", falses.to_string()));
        }
        if let Some(lengths) = self.lengths {
            let mean = number_text(lengths.mean());
            let lengths =
                [("min", lengths.min.to_string()), ("max", lengths.max.to_string()), ("mean", mean)];
            members.push(("lengths", object(&lengths)));
        }
        if let Some(histogram) = &self.histogram {
            let counts = list(histogram.counts.iter().map(ToString::to_string));
            let histogram = [
                ("min", number_text(histogram.min)),
                ("max", number_text(histogram.max)),
                ("width", number_text(histogram.width)),
                ("counts", counts),
            ];
            members.push(("histogram", object(&histogram)));
        }
        object(&members)
    }
}

fn matrix_json(matrix: &MatrixDescription) -> String {
    let counts = |counts: &Option<[f64; 5]>| match counts {
        Some(counts) => quantiles(counts.iter().map(|count| number_text(*count))),
        None => "null".to_owned(),
    };
    object(&[
        ("rows", matrix.rows.to_string()),
        ("cols", matrix.cols.to_string()),
        ("nonzeros", matrix.nonzeros.to_string()),
        ("density", text(&matrix.density.map(number_text))),
        ("min", text(&matrix.min)),
        ("max", text(&matrix.max)),
        ("mean", text(&matrix.mean)),
        ("symmetric", matrix.symmetric.to_string()),
        ("bandwidth", text(&matrix.bandwidth.map(|width| width.to_string()))),
        ("row_counts", counts(&matrix.row_counts)),
        ("col_counts", counts(&matrix.col_counts)),
        ("nans", matrix.nans.to_string()),
    ])
}

fn succinct_json(succinct: &SuccinctDescription) -> String {
    let number = |value: Option<u64>| text(&value.map(|value| value.to_string()));
    object(&[
        ("kind", string(&succinct.kind)),
        ("len", succinct.len.to_string()),
        ("ones", number(succinct.ones)),
        ("width", number(succinct.width)),
        ("runs", number(succinct.runs)),
        ("bits", succinct.bits.to_string()),
        ("entropy_bits", text(&succinct.entropy_bits.map(number_text))),
    ])
}
