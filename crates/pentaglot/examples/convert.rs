//! Converts a file to another format and says what happens to each column.
//!
//! `cargo run --example convert -- examples/data/ticks.bson /tmp/ticks.parquet`

#![expect(clippy::print_stdout, reason = "an example prints what it finds")]

use pentaglot::Registry;
use pentaglot::job::{Conversion, ConvertOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, output] = &arguments[..] else { return Err("usage: convert INPUT OUTPUT".into()) };
    let options = ConvertOptions::default().with_force(true);
    let conversion = Conversion::plan(&Registry::default(), std::slice::from_ref(input), output, &options)?;
    print!("{}", conversion.plan);
    let report = conversion.run(output, options.force)?;
    println!("{} rows, {} bytes", report.rows, report.bytes);
    Ok(())
}
