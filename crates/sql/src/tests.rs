//! The engine over files that the library writes.

use pentaglot::formats::OptionMap;
use pentaglot::job::{Conversion, ConvertOptions, OpenOptions, View};
use pentaglot::{ErrorKind, Registry, Result};

use crate::{Answer, Engine, EngineOptions};

struct Test {
    folder: tempfile::TempDir,
    engine: Engine,
}

impl Test {
    fn new() -> Self {
        let mut options = EngineOptions::default();
        options.threads = 2;
        let engine = Engine::new(Registry::default(), options).unwrap();
        Test { folder: tempfile::tempdir().unwrap(), engine }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn convert(&self, from: &str, to: &str, options: &[(&str, &str)]) {
        let mut convert = ConvertOptions::default();
        convert.open.options =
            OptionMap::new(options.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect());
        convert.allow_lossy = pentaglot::hub::LossKinds::ALL;
        let conversion = Conversion::plan(&Registry::default(), &[self.path(from)], &self.path(to), &convert);
        conversion.unwrap().run(&self.path(to), true).unwrap();
    }

    /// The rows of a query as CSV; `@` is the folder.
    fn csv(&self, sql: &str) -> Result<String> {
        let sql = sql.replace('@', self.folder.path().to_str().unwrap());
        match self.engine.run(&sql)? {
            Answer::Rows(rows) => {
                let target = pentaglot::job::target(&Registry::default(), "csv")?;
                let (sink, memory) = pentaglot::Sink::memory();
                let mut options = ConvertOptions::default();
                options.allow_lossy = pentaglot::hub::LossKinds::ALL;
                Conversion::plan_opened(rows, target, None, &options)?.run_into(sink)?;
                Ok(String::from_utf8(memory.take()).unwrap())
            }
            Answer::Written(rows) => Ok(format!("{rows} written")),
            Answer::Done => Ok(String::new()),
        }
    }

    fn lines(&self, sql: &str) -> Vec<String> {
        let text = self.csv(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        text.lines().skip(1).map(str::to_owned).collect()
    }

    fn error(&self, sql: &str) -> String {
        let error = self.csv(sql).unwrap_err();
        assert_ne!(error.kind(), ErrorKind::Cancelled);
        format!("{}{error}", error.input().map(|name| format!("{name}: ")).unwrap_or_default())
    }
}

const TRADES: &str = "sym,px,day\nA,1.5,2024-01-01\nB,2.5,2024-01-02\nA,3.5,2024-01-03\nC,,2024-01-04\n";

#[test]
fn one_query_over_every_format_of_tables() {
    let test = Test::new();
    test.put("t.csv", TRADES);
    for name in ["t.csv", "t.jsonl", "t.parquet", "t.arrow", "t.bson", "t.ds", "t.dynd", "t.csv.gz", "t.json"]
    {
        if name != "t.csv" {
            test.convert("t.csv", name, &[]);
        }
        let sums =
            test.lines(&format!("SELECT sym, sum(px), count(*) FROM '@/{name}' GROUP BY sym ORDER BY sym"));
        assert_eq!(sums, ["A,5.0,2", "B,2.5,1", "C,,1"], "{name}");
        let few = test.lines(&format!("SELECT px FROM '@/{name}' WHERE sym = 'B'"));
        assert_eq!(few, ["2.5"], "{name}");
        assert_eq!(test.lines(&format!("SELECT count(*) FROM '@/{name}'")), ["4"], "{name}");
        // Dates are numbers in ds.
        let last = if name == "t.ds" { "19726" } else { "2024-01-04" };
        let day = test.lines(&format!("SELECT day FROM '@/{name}' ORDER BY day DESC LIMIT 1"));
        assert_eq!(day, [last], "{name}");
        assert_eq!(test.lines(&format!("SELECT 1 FROM '@/{name}' LIMIT 3")).len(), 3, "{name}");
    }
}

#[test]
fn counts_read_no_data() {
    let test = Test::new();
    test.put("t.csv", TRADES);
    test.convert("t.csv", "t.arrow", &[]);
    let plan = test.lines("EXPLAIN SELECT count(*) FROM '@/t.arrow'").join("\n");
    assert!(!plan.contains("PentaglotScan"), "{plan}");
}

#[test]
fn folders_patterns_and_partition_columns() {
    let test = Test::new();
    test.put("days/year=2023/kind=a/x.csv", "n\n1\n2\n");
    test.put("days/year=2024/kind=b/x.csv", "n\n3\n");
    test.put("days/year=2024/kind=__HIVE_DEFAULT_PARTITION__/x.csv", "n\n4\n");
    assert_eq!(test.lines("SELECT sum(n), sum(year) FROM '@/days'"), ["10,8094"]);
    assert_eq!(test.lines("SELECT n FROM '@/days/' WHERE year = 2023 ORDER BY n"), ["1", "2"]);
    assert_eq!(
        test.lines("SELECT kind, count(*) FROM '@/days' GROUP BY kind ORDER BY kind"),
        ["a,2", "b,1", ",1"]
    );
    assert_eq!(test.lines("SELECT count(*) FROM '@/days/year=2024/*/x.csv'"), ["2"]);
    let plan = test.lines("EXPLAIN SELECT n FROM '@/days' WHERE year = 2023").join("\n");
    assert!(plan.contains("year=2023") && !plan.contains("year=2024/"), "{plan}");
    // Columns and types are united.
    test.put("u/a.csv", "x,y\n1,p\n");
    test.put("u/b.csv", "x,z\n2,true\n");
    assert_eq!(test.lines("SELECT x, y, z FROM '@/u' ORDER BY x"), ["1,p,", "2,,true"]);
    test.put("mixed/a.csv", "x\n1\n");
    test.put("mixed/b.jsonl", "{\"x\":1}\n");
    let error = test.error("SELECT * FROM '@/mixed'");
    assert!(error.contains("a.csv (csv) and") && error.contains("b.jsonl (jsonl)"), "{error}");
}

#[test]
fn matrices_are_tables_in_three_ways() {
    let test = Test::new();
    test.put("m.csv", "a,b\n1.0,2.0\n3.0,0.0\n5.0,6.0\n");
    test.convert("m.csv", "m.npy", &[]);
    assert_eq!(test.lines("SELECT sum(col_0), sum(col_1) FROM '@/m.npy'"), ["9.0,8.0"]);
    let create = |name: &str, form: &str| {
        test.csv(&format!(
            "CREATE EXTERNAL TABLE {name} STORED AS NPY LOCATION '@/m.npy' OPTIONS (as '{form}')"
        ))
        .unwrap()
    };
    create("coo", "coo");
    create("lists", "rows");
    assert_eq!(test.lines("SELECT sum(value), max(row) FROM coo"), ["17.0,2"]);
    assert_eq!(test.lines("SELECT count(*), sum(\"row\"[2]) FROM lists"), ["3,8.0"]);
    assert_eq!(
        test.lines("SELECT count(*) FROM coo WHERE col = 1"),
        test.lines("SELECT count(*) FROM coo WHERE col <> 0")
    );
}

#[test]
fn copy_writes_every_format_and_refuses_loss() {
    let test = Test::new();
    test.put("t.csv", TRADES);
    for name in ["c.parquet", "c.arrow", "c.bson", "c.jsonl", "c.csv.gz", "c.ds"] {
        let copied =
            test.csv(&format!("COPY (SELECT sym, px FROM '@/t.csv' WHERE px > 2) TO '@/{name}'")).unwrap();
        assert_eq!(copied, "2 written", "{name}");
        assert_eq!(test.lines(&format!("SELECT sum(px) FROM '@/{name}'")), ["6.0"], "{name}");
    }
    let error = test.error("COPY (SELECT 1 AS x) TO '@/c.parquet'");
    assert!(error.contains("exists already"), "{error}");
    test.csv("COPY (SELECT 1 AS x) TO '@/c.parquet' OPTIONS (overwrite true)").unwrap();
    assert_eq!(test.lines("SELECT * FROM '@/c.parquet'"), ["1"]);
    test.error("COPY (SELECT 1 AS x, 'a' AS y) TO '@/impossible.mtx'");
    assert!(!std::path::Path::new(&test.path("impossible.mtx")).exists());
    for values in ["CAST(NULL AS BIGINT)", "'a'"] {
        let error = test.csv(&format!("COPY (SELECT 1 AS x, {values} AS y) TO '@/no.dbdf'")).unwrap_err();
        assert_eq!(error.output(), Some(test.path("no.dbdf").as_str()), "{error}");
    }
}

#[test]
fn copy_makes_partitioned_folders() {
    let test = Test::new();
    test.put("t.csv", TRADES);
    let copied = test
        .csv("COPY (SELECT * FROM '@/t.csv') TO '@/out/' STORED AS PARQUET PARTITIONED BY (sym)")
        .unwrap();
    assert_eq!(copied, "4 written");
    assert!(std::path::Path::new(&test.path("out/sym=A/part-0.parquet")).exists());
    let back = test.lines("SELECT sym, sum(px) FROM '@/out' GROUP BY sym ORDER BY sym");
    assert_eq!(back, ["A,5.0", "B,2.5", "C,"]);
    assert!(test.error("COPY (SELECT 1 AS x) TO '@/out/' STORED AS PARQUET").contains("exists already"));
    test.csv("COPY (SELECT 1 AS x) TO '@/out/' STORED AS CSV OPTIONS (overwrite true)").unwrap();
    assert_eq!(test.lines("SELECT * FROM '@/out'"), ["1"]);
    // A failure leaves nothing.
    test.put("bad.csv", "x\n1\n");
    test.error("COPY (SELECT x / 0 AS y FROM '@/bad.csv') TO '@/broken/' STORED AS PARQUET");
    let left: Vec<_> =
        std::fs::read_dir(test.folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("broken")), "{left:?}");
}

#[test]
fn errors_are_one_line_with_the_file_and_its_byte() {
    let test = Test::new();
    test.put("broken.parquet", "PAR1 this is not");
    let error = test.error("SELECT * FROM '@/broken.parquet'");
    assert!(error.contains("broken.parquet: parquet: at byte"), "{error}");
    // Its footer is sound, a page is not: DataFusion's own reader finds it.
    test.put("whole.csv", TRADES);
    test.convert("whole.csv", "page.parquet", &[]);
    let path = test.folder.path().join("page.parquet");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4..24].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    let error = test.error("SELECT * FROM '@/page.parquet'");
    assert!(error.contains("page.parquet: parquet: ") && error.contains("at byte"), "{error}");
    let error = test.error("SELECT * FROM '@/missing.csv'");
    assert!(error.contains("missing.csv: cannot open"), "{error}");
    for bad in ["SELEC 1", "SELECT * FROM nothing", "SELECT nope FROM '@/t.csv'", "SELECT * FROM 'x://y'"] {
        test.put("t.csv", TRADES);
        let error = test.error(bad);
        assert!(!error.contains('\n'), "{error}");
    }
    test.put("cut.csv", "x\n1\nabc\"\n");
    test.put("t.csv", TRADES);
    assert_eq!(test.lines("SUMMARIZE '@/t.csv'").len(), 3);
    let exact = test.lines("SUMMARIZE SELECT 9007199254740993 AS x, named_struct('a', 1) AS s, NULL AS n");
    assert!(exact[0].starts_with("x,int64,1,0,0,1,9007199254740993,9007199254740993,"), "{exact:?}");
    assert!(
        exact[1].starts_with("s,struct{a: ?int64},1,0,0,1,,,") && exact[2] == "n,null,0,1,0,0,,,,,,,",
        "{exact:?}"
    );
    let texts = test.lines("SUMMARIZE SELECT 'a b' AS t, DATE '2024-02-29' AS d");
    assert!(texts[0].starts_with("t,utf8,1,0,0,1,a b,a b,"), "{texts:?}");
    assert!(texts[1].starts_with("d,date32,1,0,0,1,2024-02-29,2024-02-29,"), "{texts:?}");
    let unknown = "CREATE EXTERNAL TABLE m STORED AS CSV PARTITIONED BY (zz) LOCATION '@/t.csv'";
    assert!(test.error(unknown).contains("there is no partition column zz"));
    let partitioned = "COPY (SELECT 1 AS a, now() AS t) TO '@/never/' STORED AS CSV PARTITIONED BY (t)";
    assert!(test.error(partitioned).contains("column t cannot be the name of a folder"));
    // A field of a struct that is missing is missing, whatever the column of the field has there.
    test.put(
        "n.jsonl",
        "{\"s\":{\"x\":{\"z\":1}}}\n{\"s\":null}\n{\"s\":{\"x\":null}}\n{\"s\":{\"x\":{\"z\":3}}}\n",
    );
    for name in ["n.jsonl", "n.dynd", "n.parquet", "n.arrow", "n.bson"] {
        if name != "n.jsonl" {
            test.convert("n.jsonl", name, &[]);
        }
        let query = format!("SELECT count(s.x.z) AS n, sum(s['x']['z']) AS sum FROM '@/{name}'");
        assert_eq!(test.lines(&query), ["2,4"], "{name}");
    }
    assert_eq!(test.lines("DESCRIBE '@/t.csv'").len(), 3);
}

#[test]
fn functions_query_succinct_structures() {
    let test = Test::new();
    test.put("bits.csv", "b\ntrue\nfalse\ntrue\ntrue\n");
    test.convert("bits.csv", "bits.sds", &[]);
    let row = test.lines(
        "SELECT sds_get('@/bits.sds', 1), sds_rank('@/bits.sds', 3), sds_select('@/bits.sds', 1), \
         sds_pred('@/bits.sds', 1), sds_succ('@/bits.sds', 1), sds_select('@/bits.sds', 9), sds_get('@/bits.sds', -1)",
    );
    assert_eq!(row, ["0,2,2,0,2,,"]);
    let all =
        test.lines("SELECT sum(sds_get('@/bits.sds', i)) FROM (VALUES (0), (1), (2), (3), (NULL)) AS t(i)");
    assert_eq!(all, ["3"]);
    assert!(test.error("SELECT sds_get('@/none.sds', 1)").contains("none.sds"));
}

#[test]
fn functions_answer_every_row_as_a_question_alone() {
    let test = Test::new();
    let bits: String = (0..700).map(|i| format!("{}\n", i % 5 == 0 || i % 7 == 3)).collect();
    test.put("bits.csv", &format!("b\n{bits}"));
    test.convert("bits.csv", "bit.sds", &[]);
    let numbers: String = (0..500).map(|i| format!("{}\n", i * i % 91)).collect();
    test.put("n.csv", &format!("n\n{numbers}"));
    for (name, to) in
        [("int.sds", "sds:int"), ("wm.sds", "sds:wm"), ("rlwm.sds", "sds:rlwm"), ("vec.sds", "sds:vec")]
    {
        let mut options = ConvertOptions::default();
        options.allow_lossy = pentaglot::hub::LossKinds::ALL;
        options.to = Some(to.to_owned());
        let conversion =
            Conversion::plan(&Registry::default(), &[test.path("n.csv")], &test.path(name), &options);
        conversion.unwrap().run(&test.path(name), true).unwrap();
    }
    let indices: String = (0..60).map(|i| format!("{}\n", i * 13)).collect();
    test.put("i.csv", &format!("i\n{indices}"));
    for (name, operations) in [
        ("bit.sds", &["get", "rank", "select", "pred", "succ"][..]),
        ("int.sds", &["get"]),
        ("wm.sds", &["get"]),
        ("rlwm.sds", &["get"]),
        ("vec.sds", &["get"]),
    ] {
        let queries =
            pentaglot::job::Queries::open(&Registry::default(), &test.path(name), &OpenOptions::default());
        let queries = queries.unwrap();
        for operation in operations {
            let found = test.lines(&format!(
                "SELECT sds_{operation}('@/{name}', i) AS x, 1 AS one FROM '@/i.csv' ORDER BY i"
            ));
            let expected: Vec<String> = (0..60)
                .map(|i| {
                    let answer = queries.answer([*operation, &(i * 13).to_string()]).unwrap();
                    format!("{},1", answer.into_text().unwrap_or_default())
                })
                .collect();
            assert_eq!(found, expected, "{name} {operation}");
        }
    }
    assert!(test.error("SELECT sds_rank('@/int.sds', i) FROM '@/i.csv'").contains("int.sds"));
}

#[test]
fn bounds_of_columns_leave_out_files() {
    let test = Test::new();
    for part in 0..3 {
        let rows: String = (0..50)
            .map(|i| format!("{},{}.5,{}\n", part * 100 + i, i, if i == 3 { "" } else { "x" }))
            .collect();
        test.put(&format!("part{part}.csv"), &format!("k,v,s\n{rows}"));
        std::fs::create_dir_all(test.path(&format!("p/day={part}"))).unwrap();
        test.convert(&format!("part{part}.csv"), &format!("p/day={part}/x.parquet"), &[]);
    }
    for (filter, files, count) in [
        ("k >= 220", &["day=2"][..], "30"),
        ("k < 10", &["day=0"], "10"),
        ("k = 120 OR k = 3", &["day=0", "day=1"], "2"),
        ("k BETWEEN 60 AND 90", &[], "0"),
        ("k > 130 AND day < 2", &["day=1"], "19"),
        // NaN is no bound.
        ("v > 1000", &["day=0", "day=1", "day=2"], "0"),
        ("k + 1 > 1000", &["day=0", "day=1", "day=2"], "0"),
        ("s IS NULL", &["day=0", "day=1", "day=2"], "3"),
    ] {
        let plan = test.lines(&format!("EXPLAIN SELECT k FROM '@/p' WHERE {filter}")).join("\n");
        let found: Vec<&str> = ["day=0", "day=1", "day=2"]
            .into_iter()
            .filter(|day| plan.contains(&format!("{day}/x")))
            .collect();
        assert_eq!(found, files, "{filter}: {plan}");
        assert_eq!(test.lines(&format!("SELECT count(*) FROM '@/p' WHERE {filter}")), [count], "{filter}");
    }
}

#[test]
fn a_cancelled_query_ends() {
    let mut options = EngineOptions::default();
    options.open.control = pentaglot::Control::new(1);
    let control = options.open.control.clone();
    let engine = Engine::new(Registry::default(), options).unwrap();
    control.cancel();
    let error =
        match engine.run("SELECT count(*) FROM generate_series(1, 100000000000) AS t(i) WHERE i % 7 = 3") {
            Ok(Answer::Rows(rows)) => {
                let next =
                    rows.rows(&View::default()).and_then(|mut rows| rows.next().unwrap().map_err(Into::into));
                next.unwrap_err()
            }
            Ok(_) => panic!("it has rows"),
            Err(error) => error,
        };
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}

#[test]
fn parts_of_a_column_that_is_decoded_whole_do_not_count_as_all_of_it() {
    let mut test = Test::new();
    let rows: String = (0..200_000).map(|row| format!("{row},{}\n", row % 1000)).collect();
    test.put("t.csv", &format!("id,k\n{rows}"));
    test.convert("t.csv", "t.bson", &[]);
    let mut options = EngineOptions::default();
    options.threads = 2;
    options.open.budget = pentaglot::Limits::default().with_max_alloc(16 << 20).budget();
    test.engine = Engine::new(Registry::default(), options).unwrap();
    let plan = test.csv("EXPLAIN ANALYZE SELECT k, sum(id) FROM '@/t.bson' GROUP BY k").unwrap();
    let scan = plan.split("RoundRobinBatch").nth(1).expect("rows are given to two tasks in turn");
    let spilled = scan.split("spill_count=").nth(1).unwrap().split(',').next();
    assert_eq!(spilled, Some("0"), "{plan}");
}
