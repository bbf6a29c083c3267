//! The table of verbs and options, from which parser, help, man page and completions are generated.

mod look;
mod parse;
mod store;
mod work;

use clap::{Args, Parser, Subcommand, ValueEnum};
use pentaglot::formats::OptionMap;
use pentaglot::job::OpenOptions;
use pentaglot::{Control, Limits};

pub(crate) use look::*;
use parse::{parse_option, parse_size, text_or_file};
pub(crate) use store::*;
pub(crate) use work::*;

/// Read, check, explain and convert typed data: dbdf, ds, dynd, bsondf, sds, Arrow, Parquet, CSV, JSON lines, JSON, NumPy,
/// Matrix Market.
///
/// Exit status: 0 done, valid; 1 truncated or malformed input; 2 usage, I/O, unsupported; 3 lossy and not allowed, or a
/// value that does not fit; 4 a limit was reached; 130 interrupted.
#[derive(Debug, Parser)]
#[command(name = "pentaglot", version, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
    #[command(flatten)]
    pub(crate) global: Global,
}

/// Options that every verb takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// Memory that a run may hold at a time, such as 512M or 4G
    #[arg(long, global = true, value_name = "BYTES", value_parser = parse_size, default_value = "4G")]
    max_alloc: u64,
    /// How deep types and values may nest
    #[arg(long, global = true, value_name = "N", default_value_t = 128)]
    max_depth: u32,
    /// How many bytes one compressed byte may become
    #[arg(long, global = true, value_name = "N", default_value_t = 2048)]
    max_ratio: u64,
    /// How many bytes of a stream may be spooled to a temporary file, such as 512M or 16G
    #[arg(long, global = true, value_name = "BYTES", value_parser = parse_size, default_value = "16G")]
    max_spool: u64,
    /// How many rows that take no bytes in the file are read
    #[arg(long, global = true, value_name = "N", value_parser = parse_size, default_value = "256M")]
    max_free_rows: u64,
    /// Threads (0: as many as there are cores)
    #[arg(long, global = true, value_name = "N", default_value_t = 0)]
    pub(crate) threads: usize,
    /// Rows per batch (0: what suits the format)
    #[arg(long, global = true, value_name = "N", default_value_t = 0)]
    pub(crate) batch_rows: usize,
    /// No notes on stderr
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Say more on stderr
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    /// Colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: When,
    /// The handle on this run.
    #[arg(skip)]
    pub(crate) control: Control,
    /// A progress bar on stderr
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", num_args = 0..=1, require_equals = true, default_missing_value = "always")]
    pub(crate) progress: When,
    /// Print to the terminal without a pager
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    Auto,
    Always,
    Never,
}

/// Options of every verb that opens a file.
#[derive(Debug, Args)]
pub(crate) struct Open {
    /// The input's format, with an optional dialect: dbdf, dbdf:daphne
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<String>,
    /// The type of data that does not carry its own (docs/types.md); @FILE reads it from a file
    #[arg(long = "type", value_name = "TYPE", value_parser = text_or_file)]
    pub(crate) type_text: Option<String>,
    /// A format's option (`pentaglot formats` lists them); in.KEY and out.KEY choose a side where both have it
    #[arg(short = 'O', value_name = "KEY=VALUE", value_parser = parse_option)]
    pub(crate) options: Vec<(String, String)>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// What a file is: format, dialect (and why), shape, schema, rows, bytes by part
    #[command(
        after_help = "Examples:\n  pentaglot inspect readings.parquet\n  pentaglot inspect --json archive.npz | jq .members"
    )]
    Inspect(Inspect),
    /// A file's schema
    #[command(
        after_help = "Examples:\n  pentaglot schema readings.parquet\n  pentaglot schema table.csv --as dynd"
    )]
    Schema(Schema),
    /// A file's rows
    #[command(
        after_help = "Examples:\n  pentaglot cat table.csv --where 'size >= 10' --rows 10..20 --columns name,size\n  pentaglot cat table.csv -n 5 --exclude note --cast size=float64 --rename size=metres"
    )]
    Cat(Cat),
    /// A file's first rows
    #[command(
        after_help = "Examples:\n  pentaglot head readings.parquet\n  pentaglot head -n 3 matrix.npy --columns 0,7..9"
    )]
    Head(Head),
    /// A file's last rows
    #[command(
        after_help = "Examples:\n  pentaglot tail readings.parquet\n  pentaglot tail -n 3 log.jsonl.zst --columns time,message"
    )]
    Tail(Tail),
    /// Some rows of a file, chosen at random, in the order of the file
    #[command(
        after_help = "Examples:\n  pentaglot sample readings.parquet -n 20\n  pentaglot sample table.csv -n 1000 --seed 7 --output csv"
    )]
    Sample(Sample),
    /// Check files against every rule of their format; one finding a line
    #[command(
        after_help = "Examples:\n  pentaglot validate frame.dbdf\n  pentaglot validate --profile strict --json data/x.ds data/y.ds"
    )]
    Validate(Validate),
    /// Annotated bytes: offset, hex, name, value
    #[command(
        after_help = "Examples:\n  pentaglot dump frame.dbdf --depth 2\n  pentaglot dump frame.dbdf --at 'block[0].values'"
    )]
    Dump(Dump),
    /// Convert a file to another format
    #[command(
        after_help = "Examples:\n  pentaglot convert 'day-*.csv' year.parquet --where 'price > 100'\n  pentaglot convert matrix.npy matrix.dbdf --to dbdf:daphne --dry-run"
    )]
    Convert(Convert),
    /// How many rows files have, without reading values if the file stores the count
    #[command(
        after_help = "Examples:\n  pentaglot count 'day-*.parquet'\n  pentaglot count ticks.bson --where 'price > 200 and symbol is not null'"
    )]
    Count(Count),
    /// What the values of a file are like: figures of each column, of a matrix, of a succinct structure
    #[command(
        after_help = "Examples:\n  pentaglot describe readings.parquet\n  pentaglot describe ticks.bson --columns price --where 'volume > 100' --json"
    )]
    Describe(Describe),
    /// A picture of a file, of the kind that suits it: an SVG or PNG file, or text
    #[command(
        after_help = "Examples:\n  pentaglot plot matrix.mtx -o matrix.svg\n  pentaglot plot ticks.bson --kind line --columns time,price --size 1200x400 -o price.png"
    )]
    Plot(Plot),
    /// Look at files in the browser: rows, figures, pictures, bytes; served on 127.0.0.1 only
    #[command(
        after_help = "Examples:\n  pentaglot view readings.parquet matrix.mtx\n  pentaglot view broken.dbdf --no-open --port 8080 --read-only"
    )]
    View(ViewFiles),
    /// The content identity of files: the same typed data has the same one in every format
    #[command(
        after_help = "Examples:\n  pentaglot hash readings.parquet readings.csv\n  pentaglot hash --check identities.txt"
    )]
    Hash(Hash),
    /// What differs between two files, across formats: 0 equal, 1 different, 2 other faults
    #[command(
        after_help = "Examples:\n  pentaglot diff old.parquet new.csv --key id\n  pentaglot diff a.npy b.mtx --rel 1e-9 -o differences.parquet"
    )]
    Diff(Diff),
    /// Save what is sound in a damaged file: 0 nothing lost, 1 something lost, 2 nothing saved
    #[command(
        after_help = "Examples:\n  pentaglot salvage cut-off.ds saved.parquet\n  pentaglot salvage --json broken.parquet saved.parquet | jq .lost_rows"
    )]
    Salvage(Salvage),
    /// Store data under its identity: versions and formats share what is the same
    #[command(
        after_help = "Examples:\n  pentaglot store put readings.parquet --store data.store\n  pentaglot store get bafkr4iabbj3 readings.csv --store data.store"
    )]
    Store(Store),
    /// rank, select, … on succinct structures, opened in place
    #[command(
        after_help = "Examples:\n  pentaglot query exons.sds rank 17\n  pentaglot query graph.gbz::gbwt.da_samples get 3"
    )]
    Query(Query),
    /// Make the side index FILE.idx, for formats that need one to seek
    #[command(after_help = "Examples:\n  pentaglot index rows.ds\n  pentaglot index exons.sds --force")]
    Index(Index),
    /// SQL over files of every format; without statements on a terminal, a shell (a build with the feature `sql` has it)
    #[command(
        after_help = "Examples:\n  pentaglot sql \"SELECT sym, avg(px) FROM 'trades.bson' JOIN 'ref.parquet' USING (sym) GROUP BY sym\"\n  pentaglot sql \"COPY (SELECT * FROM 'days/*.csv') TO 'year.dbdf'\""
    )]
    Sql(Sql),
    /// The processes on which `sql --cluster` runs queries (a build with the feature `cluster` has them)
    #[command(
        after_help = "Examples:\n  pentaglot cluster scheduler\n  pentaglot cluster executor --bind-port 50061 --bind-grpc-port 50062 --data-root /data"
    )]
    Cluster(Cluster),
    /// Tables in collections of MongoDB: list, append, delete, prune (a build with the feature `mongodb` has it)
    #[command(
        after_help = "Examples:\n  pentaglot mongodb list mongodb://localhost/market/ticks\n  pentaglot mongodb append day-2.csv 'mongodb://localhost/market/ticks?key=AAPL'"
    )]
    Mongodb(Mongodb),
    /// Check a type, print its canonical text or its translation
    #[command(
        after_help = "Examples:\n  pentaglot type 'var * {x: int32, y: ?string}'\n  pentaglot type 'struct{x: int32}' --as ds"
    )]
    Type(Type),
    /// What is supported: formats, dialects, options
    #[command(after_help = "Examples:\n  pentaglot formats\n  pentaglot formats --json | jq .id")]
    Formats(Formats),
    /// A completion script for a shell
    #[command(
        after_help = "Examples:\n  pentaglot completions bash > ~/.local/share/bash-completion/completions/pentaglot\n  pentaglot completions fish | source"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// The manual page
    #[command(after_help = "Examples:\n  pentaglot man | man -l -\n  pentaglot man > pentaglot.1")]
    Man,
}

impl Global {
    pub(crate) fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        limits.max_alloc = self.max_alloc;
        limits.max_depth = self.max_depth;
        limits.max_ratio = self.max_ratio;
        limits.max_spool = self.max_spool;
        limits.max_free_rows = self.max_free_rows;
        limits
    }
}

impl Open {
    pub(crate) fn options(&self, global: &Global) -> OpenOptions {
        let mut options = OpenOptions::default();
        options.from = self.from.clone();
        options.type_text = self.type_text.clone();
        options.options = OptionMap::new(self.options.clone());
        options.budget = global.limits().budget();
        options.control = global.control.clone();
        options
    }
}
