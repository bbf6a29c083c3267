//! The result of a comparison as JSON.

use serde_json::{Value, json};

use super::{Diff, Place};

impl Diff {
    /// One object: `{equal, schema: [...], rows: {added, removed, changed}, columns: [{name, changed, first: [...]}],
    /// first_added: [{row|key, values}], first_removed: [...]}`.
    pub fn to_json(&self) -> String {
        object(self).to_string()
    }
}

/// JSON text of a value as it is, or as a string if it is not JSON.
fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

fn object(found: &Diff) -> Value {
    let schema =
        found.schema.iter().map(|found| json!({ "column": found.column, "a": found.a, "b": found.b }));
    let columns = found.columns.iter().filter(|column| column.changed > 0).map(|column| {
        let first = column.first.iter().map(|cell| {
            let (a, b) = (value(&cell.a), value(&cell.b));
            match &cell.place {
                Place::Row(row) => json!({ "row": row, "a": a, "b": b }),
                Place::Entry { row, col } => json!({ "row": row, "col": col, "a": a, "b": b }),
                Place::Key(key) => json!({ "key": value(key), "a": a, "b": b }),
            }
        });
        json!({ "name": column.name, "changed": column.changed, "first": first.collect::<Vec<_>>() })
    });
    let one_sided = |rows: &[(Place, String)]| -> Vec<Value> {
        let row = |(place, values): &(Place, String)| match place {
            Place::Row(row) => json!({ "row": row, "values": value(values) }),
            Place::Entry { row, col } => json!({ "row": row, "col": col, "values": value(values) }),
            Place::Key(key) => json!({ "key": value(key), "values": value(values) }),
        };
        rows.iter().map(row).collect()
    };
    let rows = &found.rows;
    json!({
        "equal": found.is_equal(),
        "schema": schema.collect::<Vec<_>>(),
        "rows": { "added": rows.added, "removed": rows.removed, "changed": rows.changed },
        "columns": columns.collect::<Vec<_>>(),
        "first_added": one_sided(&found.first_added),
        "first_removed": one_sided(&found.first_removed),
    })
}
