//! Arguments of the verbs that write or compare files.

use std::ops::Range;

use clap::{Args, Subcommand, ValueEnum};
use pentaglot::hub::LossKinds;
use pentaglot::job::{ColumnChanges, parse_columns};

use super::Open;
use super::parse::*;

/// What happens to columns beside being chosen.
#[derive(Debug, Args)]
pub(crate) struct Changes {
    /// Columns that are left out, by name or by place
    #[arg(long, value_name = "A,B")]
    pub(crate) exclude: Option<String>,
    /// Types of columns: price=decimal128[10, 2],day=date32 (docs/types.md lists the types)
    #[arg(long, value_name = "A=TYPE,…", value_parser = parse_casts)]
    pub(crate) cast: Option<Pairs>,
    /// New names of columns: a=b,c=d
    #[arg(long, value_name = "A=B,…", value_parser = parse_renames)]
    pub(crate) rename: Option<Pairs>,
}

/// Pairs of a column name and its new type or name.
#[derive(Debug, Clone)]
pub(crate) struct Pairs(pub(crate) Vec<(String, String)>);

#[derive(Debug, Args)]
#[command(override_usage = "pentaglot convert [OPTIONS] <IN>... <OUT>")]
pub(crate) struct Convert {
    /// The inputs (`-` is standard input), also as patterns such as 'day-*.csv', several of which are read one after the other as
    /// one; then the output (`-` is standard output)
    // One list, since options may be between them.
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    pub(crate) places: Vec<String>,
    /// The output's format, with an optional dialect; by default the extension says it
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<String>,
    /// Adapt the data to this type, such as 'struct{x: float64, name: ?utf8}' (docs/types.md); @FILE reads it from a file
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

impl Convert {
    /// All names but the last.
    pub(crate) fn inputs(&self) -> &[String] {
        self.places.split_last().map_or(&[], |(_, inputs)| inputs)
    }

    /// The last name.
    pub(crate) fn output(&self) -> &str {
        self.places.last().map_or("", String::as_str)
    }
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
    /// Match rows by these columns instead of by position; what exceeds --max-alloc is partitioned on disk
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
    /// Run queries over files on a cluster: the address of its scheduler (a build with the feature `cluster` has it)
    #[arg(long, value_name = "df://HOST:PORT")]
    pub(crate) cluster: Option<String>,
    /// How long a statement may take, in seconds (0: as long as it takes; by default an hour on a cluster)
    #[arg(long, value_name = "S")]
    pub(crate) deadline: Option<u64>,
}

#[derive(Debug, Args)]
#[cfg_attr(not(feature = "cluster"), allow(dead_code, reason = "they are parsed in every build"))]
pub(crate) struct Cluster {
    #[command(subcommand)]
    pub(crate) role: Role,
}

#[derive(Debug, Subcommand)]
#[cfg_attr(not(feature = "cluster"), allow(dead_code, reason = "they are parsed in every build"))]
pub(crate) enum Role {
    /// Divides queries among executors; there is one
    Scheduler(Scheduler),
    /// Runs parts of queries; there are several
    Executor(Executor),
}

#[derive(Debug, Args)]
#[cfg_attr(not(feature = "cluster"), allow(dead_code, reason = "they are parsed in every build"))]
pub(crate) struct Scheduler {
    /// The address to listen on
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    pub(crate) bind_host: String,
    /// The port to listen on (0: any that is free)
    #[arg(long, value_name = "PORT", default_value_t = 50050)]
    pub(crate) bind_port: u16,
    /// The name by which executors reach this machine, if it is not the address
    #[arg(long, value_name = "HOST")]
    pub(crate) external_host: Option<String>,
    /// Listen on an address that other machines reach, although nothing authenticates those who connect
    #[arg(long)]
    pub(crate) insecure: bool,
}

#[derive(Debug, Args)]
#[cfg_attr(not(feature = "cluster"), allow(dead_code, reason = "they are parsed in every build"))]
pub(crate) struct Executor {
    /// Where the scheduler is
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    pub(crate) scheduler_host: String,
    /// The port of the scheduler
    #[arg(long, value_name = "PORT", default_value_t = 50050)]
    pub(crate) scheduler_port: u16,
    /// The address to listen on
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    pub(crate) bind_host: String,
    /// The name by which clients and executors reach this machine, if it is not the address
    #[arg(long, value_name = "HOST")]
    pub(crate) external_host: Option<String>,
    /// The port from which rows are fetched
    #[arg(long, value_name = "PORT", default_value_t = 50051)]
    pub(crate) bind_port: u16,
    /// The port to which tasks come
    #[arg(long, value_name = "PORT", default_value_t = 50052)]
    pub(crate) bind_grpc_port: u16,
    /// The folder for intermediate results; by default a temporary one
    #[arg(long, value_name = "DIR")]
    pub(crate) work_dir: Option<String>,
    /// Read and write only below this folder or address, links followed; may be repeated; needed with --insecure
    #[arg(long, value_name = "DIR")]
    pub(crate) data_root: Vec<String>,
    /// Listen on an address that other machines reach, although nothing authenticates those who connect
    #[arg(long)]
    pub(crate) insecure: bool,
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

/// What is done to the tables of a collection; reading and writing them is for the other verbs.
#[derive(Debug, Args)]
pub(crate) struct Mongodb {
    #[command(subcommand)]
    pub(crate) work: MongodbWork,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum MongodbWork {
    /// The tables of a collection; with key= all versions of one, the oldest first
    #[command(
        after_help = "Examples:\n  pentaglot mongodb list mongodb://localhost/market/ticks\n  pentaglot mongodb list --json 'mongodb://localhost/market/ticks?key=AAPL'"
    )]
    List(MongodbPlace),
    /// Add the rows of files to a table: a new version that shares the chunks of the older one
    #[command(
        after_help = "Examples:\n  pentaglot mongodb append day-2.csv 'mongodb://localhost/market/ticks?key=AAPL'\n  pentaglot mongodb append 'day-*.parquet' 'mongodb://localhost/market/ticks?key=AAPL'"
    )]
    Append(Box<Convert>),
    /// Delete a table with all its versions; with version= one old version
    #[command(
        after_help = "Examples:\n  pentaglot mongodb delete 'mongodb://localhost/market/ticks?key=AAPL'\n  pentaglot mongodb delete 'mongodb://localhost/market/ticks?key=AAPL&version=65f000000000000000000001'"
    )]
    Delete(MongodbPlace),
    /// Delete old versions, and what interrupted writers left behind
    #[command(
        after_help = "Examples:\n  pentaglot mongodb prune mongodb://localhost/market/ticks\n  pentaglot mongodb prune --keep 3 'mongodb://localhost/market/ticks?key=AAPL'"
    )]
    Prune(MongodbPrune),
}

#[derive(Debug, Args)]
pub(crate) struct MongodbPlace {
    /// The collection: mongodb://HOSTS/DB/COLLECTION, with ?key=… one of its tables
    pub(crate) address: String,
    /// One JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MongodbPrune {
    #[command(flatten)]
    pub(crate) place: MongodbPlace,
    /// How many old versions of each key are kept
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) keep: usize,
}
