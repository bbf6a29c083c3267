//! The mean of one column of a file of any format, of the rows that match a filter.
//!
//! `cargo run --example mean -- examples/data/ticks.bson price 'quantity > 100'`

#![expect(clippy::print_stdout, reason = "an example prints what it finds")]

use pentaglot::arrow::array::cast::AsArray;
use pentaglot::arrow::array::types::Float64Type;
use pentaglot::arrow::schema::{DataType, Field, Schema};
use pentaglot::convert::adapt::adapter;
use pentaglot::hub::{LossKinds, LossRecord};
use pentaglot::job::{self, OpenOptions, View};
use pentaglot::{Limits, Registry};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (file, column, filter) = match &arguments[..] {
        [file, column] => (file, column, None),
        [file, column, filter] => (file, column, Some(filter)),
        _ => return Err("usage: mean FILE COLUMN [FILTER]".into()),
    };
    let limits = Limits::default().with_max_alloc(256 << 20);
    let opened = job::open(&Registry::default(), file, &OpenOptions::default().with_budget(limits.budget()))?;
    let mut view = View::default().with_columns([column]).with_batch_rows(8192);
    if let Some(filter) = filter {
        view = view.with_filter(filter);
    }
    let rows = opened.rows(&view)?;
    // Numbers of any type are cast to float64; a number that float64 cannot hold exactly is an error.
    let floats = Schema::new(vec![Field::new(column, DataType::Float64, true)]);
    let adapter = adapter(&rows.schema(), &floats.into());
    adapter.plan.check(LossKinds::NONE)?;
    let (mut sum, mut count) = (0.0, 0);
    for batch in adapter.adapt(rows, LossKinds::NONE, LossRecord::default()) {
        for value in batch?.column(0).as_primitive::<Float64Type>().iter().flatten() {
            sum += value;
            count += 1;
        }
    }
    println!("{} of {count} values", sum / f64::from(count));
    Ok(())
}
