//! The one table of verbs and options: parser, help, man page and completions are made from it.

use std::ops::Range;

use clap::{Args, Parser, Subcommand, ValueEnum};
use pentaglot::formats::OptionMap;
use pentaglot::hub::LossKinds;
use pentaglot::job::{ColumnChanges, OpenOptions, parse_columns};
use pentaglot::{Control, Limits};

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
#[derive(Debug, Args)]
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
    /// The type of data that does not carry its own; @FILE reads it from a file
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
    /// How many rows files have, without reading values where the file tells
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

#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// Files (`-` is standard input, FILE::MEMBER a part of a container)
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,
    #[command(flatten)]
    pub(crate) open: Open,
    /// One JSON object per line and file
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// The file
    pub(crate) file: String,
    /// The type language
    #[arg(long = "as", value_name = "LANGUAGE", default_value = "arrow")]
    pub(crate) language: SchemaLanguage,
    #[command(flatten)]
    pub(crate) open: Open,
    /// As a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaLanguage {
    Arrow,
    Ds,
    Dynd,
    DaphneMeta,
}

/// What happens to columns beside being chosen.
#[derive(Debug, Args)]
pub(crate) struct Changes {
    /// Columns that are left out, by name or by place
    #[arg(long, value_name = "A,B")]
    pub(crate) exclude: Option<String>,
    /// Types of columns: price=decimal128[10, 2],day=date32
    #[arg(long, value_name = "A=TYPE,…", value_parser = parse_casts)]
    pub(crate) cast: Option<Pairs>,
    /// New names of columns: a=b,c=d
    #[arg(long, value_name = "A=B,…", value_parser = parse_renames)]
    pub(crate) rename: Option<Pairs>,
}

/// Names with what they get.
#[derive(Debug, Clone)]
pub(crate) struct Pairs(pub(crate) Vec<(String, String)>);

#[derive(Debug, Args)]
pub(crate) struct Cat {
    /// The file
    pub(crate) file: String,
    /// Rows A..B, half-open from 0; with --where, of those that match
    #[arg(long, value_name = "A..B", value_parser = parse_rows)]
    pub(crate) rows: Option<Range<u64>>,
    /// At most so many rows
    #[arg(short = 'n', value_name = "N")]
    pub(crate) count: Option<u64>,
    /// Rows that match: 'COL OP LITERAL [and …]' with = != < <= > >=, or COL is [not] null; texts and dates in single quotes
    #[arg(long = "where", value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// Columns, by name or by place, from 0: name,0,2..4
    #[arg(long, value_name = "A,B")]
    pub(crate) columns: Option<String>,
    #[command(flatten)]
    pub(crate) changes: Changes,
    /// How rows are printed; by default a table on a terminal, else jsonl
    #[arg(long, value_name = "FORM")]
    pub(crate) output: Option<Output>,
    #[command(flatten)]
    pub(crate) open: Open,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    Table,
    Json,
    Jsonl,
    Csv,
    Arrow,
}

#[derive(Debug, Args)]
pub(crate) struct Head {
    /// The file
    pub(crate) file: String,
    /// How many rows
    #[arg(short = 'n', value_name = "N", default_value_t = 10)]
    pub(crate) count: u64,
    /// Rows that match: 'COL OP LITERAL [and …]' with = != < <= > >=, or COL is [not] null; texts and dates in single quotes
    #[arg(long = "where", value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// Columns, by name or by place, from 0: name,0,2..4
    #[arg(long, value_name = "A,B")]
    pub(crate) columns: Option<String>,
    /// How rows are printed; by default a table on a terminal, else jsonl
    #[arg(long, value_name = "FORM")]
    pub(crate) output: Option<Output>,
    #[command(flatten)]
    pub(crate) open: Open,
}

#[derive(Debug, Args)]
pub(crate) struct Tail {
    /// The file
    pub(crate) file: String,
    /// How many rows
    #[arg(short = 'n', value_name = "N", default_value_t = 10)]
    pub(crate) count: u64,
    /// Rows that match: 'COL OP LITERAL [and …]' with = != < <= > >=, or COL is [not] null; texts and dates in single quotes
    #[arg(long = "where", value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// Columns, by name or by place, from 0: name,0,2..4
    #[arg(long, value_name = "A,B")]
    pub(crate) columns: Option<String>,
    /// How rows are printed; by default a table on a terminal, else jsonl
    #[arg(long, value_name = "FORM")]
    pub(crate) output: Option<Output>,
    #[command(flatten)]
    pub(crate) open: Open,
}

#[derive(Debug, Args)]
pub(crate) struct Sample {
    /// The file
    pub(crate) file: String,
    /// How many rows
    #[arg(short = 'n', value_name = "N")]
    pub(crate) count: u64,
    /// The same seed gives the same rows; by default each run gives others
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// Rows that match: 'COL OP LITERAL [and …]' with = != < <= > >=, or COL is [not] null; texts and dates in single quotes
    #[arg(long = "where", value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// Columns, by name or by place, from 0: name,0,2..4
    #[arg(long, value_name = "A,B")]
    pub(crate) columns: Option<String>,
    /// How rows are printed; by default a table on a terminal, else jsonl
    #[arg(long, value_name = "FORM")]
    pub(crate) output: Option<Output>,
    #[command(flatten)]
    pub(crate) open: Open,
}

#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// Files
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,
    /// Which rules
    #[arg(long, default_value = "default")]
    pub(crate) profile: Profile,
    #[command(flatten)]
    pub(crate) open: Open,
    /// One JSON object per line and file
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    Default,
    Strict,
}

#[derive(Debug, Args)]
pub(crate) struct Dump {
    /// The file
    pub(crate) file: String,
    /// Begin at a part, such as block[3].values, or at what holds a byte offset
    #[arg(long, value_name = "PATH|OFFSET")]
    pub(crate) at: Option<String>,
    /// How many levels of parts are shown
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) depth: u32,
    #[command(flatten)]
    pub(crate) open: Open,
    /// One JSON object per line and part
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Convert {
    /// The inputs (`-` is standard input), also as patterns such as 'day-*.csv'; several are read one after the other as one
    #[arg(value_name = "IN", required = true, num_args = 1..)]
    pub(crate) inputs: Vec<String>,
    /// The output (`-` is standard output)
    #[arg(value_name = "OUT")]
    pub(crate) output: String,
    /// The output's format, with an optional dialect; by default the extension says it
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<String>,
    /// Adapt the data to this type; @FILE reads it from a file
    #[arg(long = "as", value_name = "TYPE", value_parser = text_or_file)]
    pub(crate) as_type: Option<String>,
    /// Columns, by name or by place, from 0: name,0,2..4
    #[arg(long, value_name = "A,B")]
    pub(crate) columns: Option<String>,
    #[command(flatten)]
    pub(crate) changes: Changes,
    /// Rows A..B, half-open from 0, counted over all inputs; with --where, of those that match
    #[arg(long, value_name = "A..B", value_parser = parse_rows)]
    pub(crate) rows: Option<Range<u64>>,
    /// Rows that match: 'COL OP LITERAL [and …]' with = != < <= > >=, or COL is [not] null; texts and dates in single quotes
    #[arg(long = "where", value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// Let steps run that lose something: all, or those of some kinds (precision, range, timezone, nulls, names, order,
    /// dropped, metadata)
    #[arg(long, value_name = "KIND,…", num_args = 0..=1, require_equals = true, default_missing_value = "", value_parser = parse_kinds)]
    pub(crate) allow_lossy: Option<LossKinds>,
    /// Read the output back before it gets its name: it must be the same data
    #[arg(long)]
    pub(crate) verify: bool,
    /// Write what was verified to this JSON file: identities, plan, versions
    #[arg(long, value_name = "FILE", requires = "verify")]
    pub(crate) receipt: Option<String>,
    /// Print the plan and stop
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Replace an existing output
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) open: Open,
    /// The plan or the report as a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Count {
    /// Files
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,
    /// Rows that match: 'COL OP LITERAL [and …]' with = != < <= > >=, or COL is [not] null; texts and dates in single quotes
    #[arg(long = "where", value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    #[command(flatten)]
    pub(crate) open: Open,
    /// One JSON object per line and file
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Describe {
    /// The file
    pub(crate) file: String,
    /// Columns, by name; of a matrix also 3,7..9
    #[arg(long, value_name = "A,B")]
    pub(crate) columns: Option<String>,
    /// Rows that match: 'COL OP LITERAL [and …]' with = != < <= > >=, or COL is [not] null; texts and dates in single quotes
    #[arg(long = "where", value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    #[command(flatten)]
    pub(crate) open: Open,
    /// As a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Plot {
    /// The file
    pub(crate) file: String,
    /// The picture, OUT.svg or OUT.png; without it, it is drawn as text
    #[arg(short = 'o', value_name = "OUT")]
    pub(crate) output: Option<String>,
    /// The kind of picture: histogram, bar, line, scatter, spy, sheet, runs, treemap; by default what suits the data
    #[arg(long, value_name = "KIND", value_parser = parse_kind)]
    pub(crate) kind: Option<pentaglot_plot::Kind>,
    /// Columns, by name; of a matrix also 3,7..9
    #[arg(long, value_name = "A,B")]
    pub(crate) columns: Option<String>,
    /// The size in pixels
    #[arg(long, value_name = "WIDTHxHEIGHT", default_value = "800x500", value_parser = crate::plot::parse_size)]
    pub(crate) size: (u32, u32),
    /// Replace an existing output
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) open: Open,
}

#[derive(Debug, Args)]
pub(crate) struct ViewFiles {
    /// Files
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,
    /// The port (0: any that is free)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) port: u16,
    /// Print the address and open no browser
    #[arg(long)]
    pub(crate) no_open: bool,
    /// Let the page save nothing
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Rows that are shown at first: 'COL OP LITERAL [and …]' with = != < <= > >=, or COL is [not] null
    #[arg(long = "where", value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    #[command(flatten)]
    pub(crate) open: Open,
}

#[derive(Debug, Args)]
pub(crate) struct Hash {
    /// Files
    #[arg(required_unless_present = "check", value_name = "FILE")]
    pub(crate) files: Vec<String>,
    /// Also the identity of each column
    #[arg(long, conflicts_with_all = ["raw", "check"])]
    pub(crate) by_column: bool,
    /// A digest of the dynd:raw bytes of a dynd value, in hex
    #[arg(long, value_name = "FUNCTION")]
    pub(crate) raw: Option<RawFunction>,
    /// Compare files with a list of lines as this verb prints them (`-` is standard input); 1 if one differs
    #[arg(long, value_name = "LIST", conflicts_with = "files")]
    pub(crate) check: Option<String>,
    #[command(flatten)]
    pub(crate) open: Open,
    /// One JSON object per line and file
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RawFunction {
    Blake3,
    Sha256,
}

#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// The first file
    pub(crate) a: String,
    /// The second file
    pub(crate) b: String,
    /// Match rows by these columns instead of by position; the second file must fit into --max-alloc
    #[arg(long, value_name = "A,B")]
    pub(crate) key: Option<String>,
    /// Floats are equal up to this difference
    #[arg(long, value_name = "X", default_value_t = 0.0, value_parser = parse_tolerance)]
    pub(crate) abs: f64,
    /// Floats are equal up to this part of the greater magnitude
    #[arg(long, value_name = "X", default_value_t = 0.0, value_parser = parse_tolerance)]
    pub(crate) rel: f64,
    /// Floats are equal up to this many steps between neighbouring floats
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) ulp: u64,
    /// How many differences of each column are shown
    #[arg(short = 'n', value_name = "N", default_value_t = 20)]
    pub(crate) count: usize,
    /// Write all differences as a table; the extension says the format
    #[arg(short = 'o', value_name = "FILE")]
    pub(crate) output: Option<String>,
    /// Replace an existing output
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) open: Open,
    /// As a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Salvage {
    /// The damaged file
    #[arg(value_name = "IN")]
    pub(crate) input: String,
    /// What is sound
    #[arg(value_name = "OUT")]
    pub(crate) output: String,
    /// The output's format, with an optional dialect; by default the extension says it
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<String>,
    /// Replace an existing output
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) open: Open,
    /// As a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Query {
    /// The file
    pub(crate) file: String,
    /// An operation and its arguments (get I, rank I, select K, …), or - for one query a line from standard input
    #[arg(required = true, value_name = "OP ARGS")]
    pub(crate) query: Vec<String>,
    #[command(flatten)]
    pub(crate) open: Open,
}

#[derive(Debug, Args)]
pub(crate) struct Index {
    /// The file
    pub(crate) file: String,
    /// Replace an existing index
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) open: Open,
}

#[derive(Debug, Args)]
#[cfg_attr(not(feature = "sql"), allow(dead_code, reason = "they are parsed in every build"))]
pub(crate) struct Sql {
    /// Statements, with ; between them. A quoted name in the place of a table is a file, FILE::MEMBER, a pattern or a folder
    #[arg(conflicts_with = "file")]
    pub(crate) statements: Option<String>,
    /// Read the statements from a file (`-` is standard input, which is read without this option, too)
    #[arg(short = 'f', long, value_name = "FILE")]
    pub(crate) file: Option<String>,
    /// How rows are printed; by default a table on a terminal, else jsonl
    #[arg(long, value_name = "FORM")]
    pub(crate) output: Option<SqlOutput>,
    /// Write the rows of the query to a file of any format
    #[arg(short = 'o', value_name = "FILE", conflicts_with = "output")]
    pub(crate) write: Option<String>,
    /// The format of that file, with an optional dialect; by default the extension says it
    #[arg(long, value_name = "FORMAT", requires = "write")]
    pub(crate) to: Option<String>,
    /// Let outputs lose something: all, or some kinds (see convert)
    #[arg(long, value_name = "KIND,…", num_args = 0..=1, require_equals = true, default_missing_value = "", value_parser = parse_kinds)]
    pub(crate) allow_lossy: Option<LossKinds>,
    /// Replace existing outputs
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SqlOutput {
    Table,
    Json,
    Jsonl,
    Csv,
    Arrow,
    Parquet,
}

#[derive(Debug, Args)]
pub(crate) struct Type {
    /// The type; a prefix dynd:, ds:, arrow: or sds: names its language
    pub(crate) text: String,
    /// The language of the text
    #[arg(long, value_name = "LANGUAGE")]
    pub(crate) from: Option<TypeLanguage>,
    /// The language to print
    #[arg(long = "as", value_name = "LANGUAGE")]
    pub(crate) language: Option<TypeLanguage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TypeLanguage {
    Dynd,
    Ds,
    Arrow,
    Sds,
}

#[derive(Debug, Args)]
pub(crate) struct Formats {
    /// One JSON object per line and format
    #[arg(long)]
    pub(crate) json: bool,
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

impl Changes {
    pub(crate) fn of_columns(&self) -> ColumnChanges {
        let pairs = |pairs: &Option<Pairs>| pairs.as_ref().map_or_else(Vec::new, |pairs| pairs.0.clone());
        let mut changes = ColumnChanges::default();
        changes.exclude = self.exclude.as_deref().map(parse_columns).unwrap_or_default();
        changes.cast = pairs(&self.cast);
        changes.rename = pairs(&self.rename);
        changes
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

fn parse_size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.trim_end_matches(['i', 'B']).char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 10),
        Some((at, 'm' | 'M')) => (&text[..at], 20),
        Some((at, 'g' | 'G')) => (&text[..at], 30),
        Some((at, 't' | 'T')) => (&text[..at], 40),
        _ => (text, 0),
    };
    let number: u64 = digits.parse().map_err(|_| "expected a size such as 512M".to_owned())?;
    number.checked_shl(shift).filter(|size| size >> shift == number).ok_or("a size past 2^64".to_owned())
}

fn parse_tolerance(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or("expected a number from 0".to_owned())
}

fn parse_option(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE".to_owned())?;
    Ok((key.to_owned(), value.to_owned()))
}

/// The text, or what a file holds: `@FILE`.
fn text_or_file(text: &str) -> Result<String, String> {
    match text.strip_prefix('@') {
        Some(path) => match std::fs::read_to_string(path) {
            Ok(content) => Ok(content.trim().to_owned()),
            Err(error) => Err(format!("cannot read {path}: {error}")),
        },
        None => Ok(text.to_owned()),
    }
}

fn parse_kinds(text: &str) -> Result<LossKinds, String> {
    if text.is_empty() {
        Ok(LossKinds::ALL)
    } else {
        text.parse().map_err(|error: pentaglot::Error| error.to_string())
    }
}

fn parse_casts(text: &str) -> Result<Pairs, String> {
    pentaglot::job::parse_casts(text).map(Pairs).map_err(|error| error.to_string())
}

fn parse_renames(text: &str) -> Result<Pairs, String> {
    pentaglot::job::parse_renames(text).map(Pairs).map_err(|error| error.to_string())
}

fn parse_rows(text: &str) -> Result<Range<u64>, String> {
    pentaglot::job::parse_rows(text).map_err(|error| error.to_string())
}

fn parse_kind(text: &str) -> Result<pentaglot_plot::Kind, String> {
    text.parse().map_err(|error: pentaglot::Error| error.to_string())
}
