//! `cargo xtask pictures`: every picture in the documentation, made from `examples/data`.

use std::fs;
use std::process::Command;

use crate::{Result, build_folder, cargo, root, run};

/// Name in `docs/pictures`, file in `examples/data`, further words of `pentaglot plot`.
const PICTURES: &[(&str, &str, &[&str])] = &[
    ("line.svg", "ticks.bson", &["--columns", "time,price"]),
    ("histogram.svg", "ticks.bson", &["--columns", "quantity"]),
    ("bar.svg", "ticks.bson", &["--columns", "symbol"]),
    ("scatter.svg", "stations.csv", &["--columns", "lon,lat"]),
    ("spy.svg", "ratings.dbdf", &[]),
    ("sheet.svg", "digits.ds", &[]),
    ("runs.svg", "exons.sds", &[]),
    ("treemap.svg", "ticks.bson", &["--kind", "treemap"]),
];

pub(crate) fn make() -> Result {
    run(cargo().args(["build", "--workspace"]))?;
    let folder = root().join("docs/pictures");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let command = build_folder().join(format!("pentaglot{}", std::env::consts::EXE_SUFFIX));
    for (name, file, words) in PICTURES {
        run(Command::new(&command)
            .args(["plot", "--force", "--size", "640x360"])
            .arg(root().join("examples/data").join(file))
            .arg("-o")
            .arg(folder.join(name))
            .args(*words))?;
        println!("xtask: docs/pictures/{name}");
    }
    Ok(())
}
