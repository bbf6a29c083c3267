//! Scan and aggregate by `pentaglot sql` over the same rows in several formats, one and two threads; a sort that spills.
//!
//! `cargo xtask bench sql [ROWS] [ROUNDS]` builds the command with the feature `sql` first. `PENTAGLOT` names another command, `PYTHON` an
//! interpreter that has duckdb and pyarrow, without which these two are left out. The whole process is timed, start included. Each race names
//! the ratio that it is about; its first contestant is what the others are compared with.

use std::path::{Path, PathBuf};
use std::process::Command;

use harness::Race;

const QUERY: &str =
    "SELECT k, sum(price) AS p, max(qty) AS q, count(*) AS n FROM 'FILE' GROUP BY k ORDER BY k";

struct Bench {
    command: PathBuf,
    python: String,
    folder: tempfile::TempDir,
    rows: u64,
    rounds: usize,
}

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).map(|text| text.parse().expect("a number")).collect();
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/release/pentaglot");
    let bench = Bench {
        command: std::env::var_os("PENTAGLOT").map_or(default, PathBuf::from),
        python: std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned()),
        folder: tempfile::tempdir().expect("a folder"),
        rows: numbers.first().copied().unwrap_or(36_000_000),
        rounds: numbers.get(1).map_or(3, |rounds| *rounds as usize),
    };
    bench.make();
    bench.formats();
    bench.threads();
    bench.sort();
}

impl Bench {
    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    /// Runs a statement; gives what it prints.
    fn sql(&self, statement: &str, words: &[&str]) -> Vec<u8> {
        let done = Command::new(&self.command).arg("sql").arg(statement).args(words).output();
        let done = done.expect("the command starts");
        assert!(done.status.success(), "{statement}: {}", String::from_utf8_lossy(&done.stderr));
        done.stdout
    }

    fn python(&self, script: &str) -> Option<Vec<u8>> {
        let done = Command::new(&self.python).args(["-c", script]).output().ok()?;
        done.status.success().then_some(done.stdout)
    }

    fn make(&self) {
        let arrow = self.file("t.arrow");
        let rows = format!(
            "SELECT value AS id, value % 1000 AS k, CAST(value AS DOUBLE) * 0.5 AS price, \
             CAST(value % 77 AS INT) AS qty FROM generate_series(1, {})",
            self.rows
        );
        self.sql(&format!("COPY ({rows}) TO '{arrow}'"), &[]);
        for name in ["t.dbdf", "t.bson", "t.dynd", "t.ds", "t.jsonl", "t.parquet"] {
            self.sql(&format!("COPY (SELECT * FROM '{arrow}') TO '{}'", self.file(name)), &[]);
        }
        self.python(&format!(
            "import pyarrow as pa, pyarrow.feather as f\n\
             f.write_feather(pa.ipc.open_file(pa.memory_map('{arrow}')).read_all(), '{}', compression='lz4')",
            self.file("lz4.arrow")
        ));
    }

    fn race(&self, title: &str, names: &[&str], threads: &str) {
        let mut race = Race::new(format!("{title}, {threads} threads"));
        for name in names.iter().filter(|name| Path::new(&self.file(name)).exists()) {
            let query = QUERY.replace("FILE", &self.file(name));
            race.add(*name, move || checksum(&self.sql(&query, &["--threads", threads])));
        }
        check(&race.run(self.rounds));
    }

    fn formats(&self) {
        self.race("dbdf frame, at least 0.9x of uncompressed Arrow IPC", &["t.arrow", "t.dbdf"], "2");
        self.race("bsondf, at least 0.9x of Feather LZ4", &["lz4.arrow", "t.bson"], "2");
        self.race("dynd and ds, at least 2x of JSON lines", &["t.jsonl", "t.dynd", "t.ds"], "2");
        self.race("for the record: Parquet", &["t.parquet", "t.arrow", "t.dbdf", "t.bson"], "2");
        let script = format!(
            "import duckdb, json\nc = duckdb.connect()\nc.execute('SET threads = 2')\n\
             print(len(c.execute(\"\"\"{}\"\"\").fetchall()))",
            QUERY.replace("'FILE'", &format!("read_parquet('{}')", self.file("t.parquet")))
        );
        if self.python("import duckdb").is_some() {
            let mut race = Race::new("for the record: DuckDB on Parquet, 2 threads, import included");
            race.add("duckdb", || checksum(&self.python(&script).expect("duckdb runs")));
            race.run(self.rounds);
        }
    }

    fn threads(&self) {
        for name in ["t.dbdf", "t.dynd", "t.bson"] {
            let query = QUERY.replace("FILE", &self.file(name));
            let mut race = Race::new(format!("{name}: two threads at least 1.6x of one"));
            for threads in ["1", "2"] {
                let query = query.clone();
                race.add(format!("{threads} threads"), move || {
                    checksum(&self.sql(&query, &["--threads", threads]))
                });
            }
            check(&race.run(self.rounds));
        }
    }

    /// A sort of all rows in little memory; the most that the process held is printed.
    fn sort(&self) {
        let statement = format!("SELECT * FROM '{}' ORDER BY price DESC, id", self.file("t.arrow"));
        let out = self.file("sorted.arrow");
        let done = Command::new("/usr/bin/time")
            .args(["-f", "%M", self.command.to_str().expect("UTF-8"), "sql", &statement, "-o", &out])
            .args(["--max-alloc", "512M", "--progress=never"])
            .output();
        let Ok(done) = done else { return println!("sort: there is no /usr/bin/time") };
        let text = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{text}");
        let kilobytes: u64 = text.lines().last().and_then(|line| line.trim().parse().ok()).unwrap_or(0);
        println!("## sort under --max-alloc 512M: {} MB resident (at most 800)", kilobytes / 1000);
    }
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)))
}

/// All gave the same rows.
fn check(laps: &[harness::Lap]) {
    assert!(laps.windows(2).all(|pair| pair[0].checksum == pair[1].checksum), "the answers differ");
}
