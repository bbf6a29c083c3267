//! Arguments of the verbs that only read files.

use std::ops::Range;

use clap::{Args, ValueEnum};

use super::parse::*;
use super::{Changes, Open};

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
    /// The file (`-` is standard input, FILE::MEMBER a part of a container); one, and no pattern
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

#[derive(Debug, Args)]
pub(crate) struct Cat {
    /// The file (`-` is standard input, FILE::MEMBER a part of a container); one, and no pattern
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
    /// The file (`-` is standard input, FILE::MEMBER a part of a container); one, and no pattern
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
    /// The file (`-` is standard input, FILE::MEMBER a part of a container); one, and no pattern
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
    /// The file (`-` is standard input, FILE::MEMBER a part of a container); one, and no pattern
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
    /// The file (`-` is standard input, FILE::MEMBER a part of a container); one, and no pattern
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
    /// The file (`-` is standard input, FILE::MEMBER a part of a container); one, and no pattern
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
    /// The file (`-` is standard input, FILE::MEMBER a part of a container); one, and no pattern
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
    /// Only rows that match: 'COL OP LITERAL [and …]' with = != < <= > >=, or COL is [not] null
    #[arg(long = "where", value_name = "FILTER")]
    pub(crate) filter: Option<String>,
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
    /// Files, also as patterns (FILE::MEMBER is a part of a container)
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
pub(crate) struct Query {
    /// The file (`-` is standard input, FILE::MEMBER a part of a container); one, and no pattern
    pub(crate) file: String,
    /// An operation and its arguments, or - for one query a line from standard input. Bits: get I, rank I, rank0 I, select K,
    /// select0 K, pred I, succ I, inverse_select I, count, len. Wavelet matrices: get I, rank I V, select K V, inverse_select I,
    /// pred I V, succ I V, count V, positions V, range_count LO HI V, quantile LO HI K, len. Vectors: get I, len
    #[arg(required = true, allow_negative_numbers = true, value_name = "OP ARGS")]
    pub(crate) query: Vec<String>,
    #[command(flatten)]
    pub(crate) open: Open,
}

#[derive(Debug, Args)]
pub(crate) struct Index {
    /// The file; one, and no pattern
    pub(crate) file: String,
    /// Replace an existing index
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) open: Open,
}

#[derive(Debug, Args)]
pub(crate) struct Type {
    /// The type (docs/types.md); a prefix dynd:, ds:, arrow: or sds: names its language
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
