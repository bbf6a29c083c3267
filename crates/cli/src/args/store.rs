//! What the verb `store` takes.

use clap::{Args, Subcommand};
use pentaglot::hub::LossKinds;

use super::Open;
use super::parse::*;

#[derive(Debug, Args)]
pub(crate) struct Store {
    /// The store: a folder, or a place in a bucket (s3://bucket/folder); the default is the environment variable PENTAGLOT_STORE
    #[arg(long = "store", value_name = "STORE", global = true)]
    pub(crate) folder: Option<String>,
    #[command(subcommand)]
    pub(crate) action: StoreAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreAction {
    /// Store files: their data, each under its identity
    #[command(
        after_help = "Examples:\n  pentaglot store put readings.parquet --name monday --store data.store\n  pentaglot store put 'day-*.csv' | tee identities.txt"
    )]
    Put(StorePut),
    /// Write stored data to a file of any format
    #[command(
        after_help = "Examples:\n  pentaglot store get bafkr4iabbj3 readings.parquet\n  pentaglot store get monday monday.csv --force"
    )]
    Get(StoreGet),
    /// What a store has, the oldest first: identity, rows, columns, bytes, bytes that are shared, when, name
    #[command(
        after_help = "Examples:\n  pentaglot store ls --store data.store\n  pentaglot store ls --json | jq .identity"
    )]
    Ls(StoreList),
    /// Remove data from a store; `gc` frees its space
    #[command(
        after_help = "Examples:\n  pentaglot store rm bafkr4iabbj3\n  pentaglot store rm monday && pentaglot store gc"
    )]
    Rm(StoreRemove),
    /// Check every byte of a store: 0 sound, 1 damaged; one finding a line
    #[command(
        after_help = "Examples:\n  pentaglot store verify --store data.store\n  pentaglot store verify --json | jq .findings"
    )]
    Verify(StoreReport),
    /// Free the space of what was removed
    #[command(after_help = "Examples:\n  pentaglot store gc --store data.store\n  pentaglot store gc --json")]
    Gc(StoreReport),
}

#[derive(Debug, Args)]
pub(crate) struct StorePut {
    /// Files
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,
    /// The name that `ls` shows, and that `get` and `rm` take
    #[arg(long)]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) open: Open,
    /// One JSON object per line and file
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StoreGet {
    /// An identity, the beginning of one, or a name
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The output (`-` is standard output)
    #[arg(value_name = "OUT")]
    pub(crate) output: String,
    /// The output's format, with an optional dialect; by default the extension says it
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<String>,
    /// Let steps run that lose something: all, or those of some kinds (precision, range, timezone, nulls, names, order,
    /// dropped, metadata)
    #[arg(long, value_name = "KIND,…", num_args = 0..=1, require_equals = true, default_missing_value = "", value_parser = parse_kinds)]
    pub(crate) allow_lossy: Option<LossKinds>,
    /// Replace an existing output
    #[arg(long)]
    pub(crate) force: bool,
    /// A format's option (`pentaglot formats` lists them)
    #[arg(short = 'O', value_name = "KEY=VALUE", value_parser = parse_option)]
    pub(crate) options: Vec<(String, String)>,
    /// The report as a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StoreList {
    /// One JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StoreRemove {
    /// Identities, beginnings of them, or names
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// One JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StoreReport {
    /// As a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
