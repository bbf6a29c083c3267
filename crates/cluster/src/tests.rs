//! Every plan survives encoding and decoding with equal results.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use ballista_core::JobId;
use ballista_core::extension::SessionConfigExt;
use ballista_scheduler::planner::{DefaultDistributedPlanner, DistributedPlanner};
use datafusion::common::Result as TheirResult;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{ExecutionPlan, displayable, execute_stream};
use datafusion::prelude::SessionConfig;
use datafusion_proto::physical_plan::AsExecutionPlan;
use datafusion_proto::protobuf::PhysicalPlanNode;
use pentaglot::hub::LossKinds;
use pentaglot::job::{Conversion, ConvertOptions, OpenOptions, target};
use pentaglot::{Registry, Result, Sink};
use pentaglot_sql::{Answer, Cluster, Engine, EngineOptions, Place};
use proptest::prelude::*;

use crate::client::scheduler_config;
use crate::codec::Codec;

/// Runs plans in this process, after they were bytes.
#[derive(Debug)]
struct Bytes {
    client: Codec,
    executor: Codec,
    /// What is done to the bytes on the way.
    change: fn(&mut [u8]),
    plans: Mutex<Vec<String>>,
}

impl Bytes {
    fn new(roots: &[String], change: fn(&mut [u8])) -> Arc<Self> {
        let place = |roots: &[String]| {
            Arc::new(Place::executor(Registry::default(), OpenOptions::default(), roots).unwrap())
        };
        let (client, executor) = (Codec::new(place(&[])), Codec::for_executor(place(roots)));
        Arc::new(Bytes { client, executor, change, plans: Mutex::default() })
    }
}

#[async_trait]
impl Cluster for Bytes {
    fn configure(&self, config: SessionConfig) -> SessionConfig {
        config.upgrade_for_ballista()
    }

    async fn execute(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
    ) -> TheirResult<SendableRecordBatchStream> {
        let mut bytes = Vec::new();
        PhysicalPlanNode::try_from_physical_plan(Arc::clone(&plan), &self.client)?.try_encode(&mut bytes)?;
        (self.change)(&mut bytes);
        let decoded =
            PhysicalPlanNode::try_decode(&bytes)?.try_into_physical_plan(&context, &self.executor)?;
        let text = |plan: &dyn ExecutionPlan| displayable(plan).indent(false).to_string();
        self.plans.lock().unwrap().push(text(decoded.as_ref()));
        assert_eq!(decoded.schema(), plan.schema());
        // Whatever is left of an exchange inside a stage would give all rows to every task.
        let config = scheduler_config(context.session_config());
        let job = JobId::new("job".to_owned());
        let stages =
            DefaultDistributedPlanner::new().plan_query_stages(&job, Arc::clone(&decoded), config.options());
        for stage in stages.map_err(|error| DataFusionError::Execution(error.to_string()))? {
            let text = text(stage.as_ref());
            assert!(!text.contains("RepartitionExec"), "{text}");
        }
        execute_stream(decoded, context)
    }

    async fn cancel(&self) {}
}

struct Test {
    folder: tempfile::TempDir,
    here: Engine,
    there: Engine,
    bytes: Arc<Bytes>,
}

impl Test {
    fn new() -> Self {
        Test::with(|_| Vec::new(), |_| {})
    }

    fn with(roots: impl Fn(&std::path::Path) -> Vec<String>, change: fn(&mut [u8])) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bytes = Bytes::new(&roots(folder.path()), change);
        let engine = |cluster: Option<Arc<dyn Cluster>>| {
            let mut options = EngineOptions::default();
            options.threads = 3;
            options.cluster = cluster;
            Engine::new(Registry::default(), options).unwrap()
        };
        Test { here: engine(None), there: engine(Some(Arc::clone(&bytes) as _)), bytes, folder }
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn convert(&self, from: &str, to: &str) {
        let path = |name: &str| self.folder.path().join(name).to_str().unwrap().to_owned();
        let mut options = ConvertOptions::default();
        options.allow_lossy = LossKinds::ALL;
        let conversion = Conversion::plan(&Registry::default(), &[path(from)], &path(to), &options);
        conversion.unwrap().run(&path(to), true).unwrap();
    }

    /// The rows of a query as CSV, sorted; `@` is the folder.
    fn lines(&self, engine: &Engine, sql: &str) -> Result<Vec<String>> {
        let sql = sql.replace('@', self.folder.path().to_str().unwrap());
        let rows = match engine.run(&sql)? {
            Answer::Rows(rows) => rows,
            Answer::Written(rows) => return Ok(vec![format!("{rows} written")]),
            Answer::Done => return Ok(Vec::new()),
        };
        let (sink, memory) = Sink::memory();
        let mut options = ConvertOptions::default();
        options.allow_lossy = LossKinds::ALL;
        Conversion::plan_opened(rows, target(&Registry::default(), "csv")?, None, &options)?
            .run_into(sink)?;
        let text = String::from_utf8(memory.take()).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        Ok(lines)
    }

    fn there(&self, sql: &str) -> Result<Vec<String>> {
        self.lines(&self.there, sql)
    }

    fn check(&self, sql: &str) {
        let (here, there) = (self.lines(&self.here, sql).unwrap(), self.there(sql).unwrap());
        assert_eq!(here, there, "{sql}");
    }
}

const FORMATS: &[&str] = &["csv", "arrow", "parquet", "bson", "ds", "dynd", "jsonl", "csv.gz"];

fn sample() -> Test {
    let test = Test::new();
    let rows = (0..900).map(|i| {
        let b = if i % 7 == 0 { String::new() } else { format!("{}.5", (i * 37) % 101) };
        format!("{i},{b},{},{}\n", ["x", "y", "zé", ""][i % 4], i % 3 == 0)
    });
    test.put("t.csv", &format!("a,b,s,f\n{}", rows.collect::<String>()));
    for format in &FORMATS[1..] {
        test.convert("t.csv", &format!("t.{format}"));
    }
    for day in 1..4 {
        let rows: String = (0..40).map(|i| format!("{},{}\n", i * day, i % 5)).collect();
        test.put(&format!("days/day={day}/x.csv"), &format!("n,k\n{rows}"));
    }
    test
}

fn filter() -> impl Strategy<Value = String> {
    let operator = prop::sample::select(vec!["=", "<>", "<", "<=", ">", ">="]);
    let leaf = prop_oneof![
        (operator.clone(), -5i64..1000).prop_map(|(op, n)| format!("a {op} {n}")),
        (operator.clone(), 0i64..110).prop_map(|(op, n)| format!("b {op} {n}.5")),
        (operator, prop::sample::select(vec!["x", "zé", "q", ""]))
            .prop_map(|(op, s)| format!("s {op} '{s}'")),
        Just("f".to_owned()),
        Just("b IS NULL".to_owned()),
        Just("s IN ('x', 'y')".to_owned()),
        Just("a % 4 = 1".to_owned()),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(l, r)| format!("({l} AND {r})")),
            (inner.clone(), inner.clone()).prop_map(|(l, r)| format!("({l} OR {r})")),
            inner.prop_map(|one| format!("(NOT {one})")),
        ]
    })
}

#[test]
fn filters_and_projections_survive() {
    let test = sample();
    let columns = prop::sample::subsequence(vec!["a", "b", "s", "f", "a + 1 AS c", "upper(s) AS u"], 1..=6);
    let shape = (columns, filter(), prop::sample::select(FORMATS.to_vec()), prop::option::of(1usize..50));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 60,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let run = runner.run(&shape, |(columns, filter, format, limit)| {
        let from = format!("FROM '@/t.{format}' WHERE {filter}");
        let limit = limit.map_or(String::new(), |limit| format!(" ORDER BY a LIMIT {limit}"));
        test.check(&format!("SELECT {} {from}{limit}", columns.join(", ")));
        test.check(&format!("SELECT s, count(*), sum(a), min(b) {from} GROUP BY s"));
        Ok(())
    });
    run.unwrap();
}

#[test]
fn every_kind_of_plan_survives() {
    let test = sample();
    test.put("r.csv", "s,w\nx,1\ny,2\n");
    for sql in [
        "SELECT day, k, sum(n) FROM '@/days' WHERE day > 1 GROUP BY day, k",
        "SELECT count(*) FROM (SELECT n FROM '@/days' LIMIT 17)",
        "SELECT t.a, u.b FROM '@/t.bson' AS t JOIN '@/t.dynd' AS u ON t.a = u.a WHERE u.b > 50",
        "SELECT t.s, count(*) FROM '@/t.arrow' AS t LEFT JOIN '@/days' AS d ON t.a = d.n GROUP BY t.s",
        "SELECT a, row_number() OVER (PARTITION BY s ORDER BY a) FROM '@/t.ds' WHERE a < 60",
        "SELECT a FROM '@/t.csv' WHERE a IN (SELECT n FROM '@/days') UNION ALL SELECT k FROM '@/days'",
        "SELECT a, (SELECT max(n) FROM '@/days') FROM '@/t.parquet' WHERE a > 890",
        "SELECT s, a FROM '@/t.parquet' ORDER BY s, a DESC LIMIT 9",
        "SELECT DISTINCT s FROM '@/t.jsonl'",
        "SELECT r.s, count(t.a) FROM '@/r.csv' AS r LEFT JOIN '@/t.csv' AS t ON t.s = r.s GROUP BY r.s",
        "SELECT u.s, count(*) FROM (SELECT s FROM '@/t.parquet' UNION ALL SELECT cast(k AS text) FROM '@/days') AS u \
         JOIN '@/days' AS d ON cast(d.n AS text) = u.s GROUP BY u.s",
    ] {
        test.check(sql);
    }
    assert!(test.bytes.plans.lock().unwrap().iter().all(|plan| plan.contains("PentaglotScan")));
    // What reads no file runs here.
    let before = test.bytes.plans.lock().unwrap().len();
    test.check("SELECT 1 + 1");
    test.check("SELECT count(*) FROM information_schema.tables");
    assert_eq!(test.bytes.plans.lock().unwrap().len(), before);
}

#[test]
fn options_of_tables_survive() {
    let test = Test::new();
    test.put("c.csv", "a;b\n1;x\n2;y\n");
    test.put("m.csv", "a,b\n1.0,2.0\n3.0,0.0\n");
    test.convert("m.csv", "m.npy");
    for engine in [&test.here, &test.there] {
        for sql in [
            "CREATE EXTERNAL TABLE c STORED AS CSV LOCATION '@/c.csv' OPTIONS (delimiter ';')",
            "CREATE EXTERNAL TABLE m STORED AS NPY LOCATION '@/m.npy' OPTIONS (as 'coo')",
            "CREATE EXTERNAL TABLE typed STORED AS CSV LOCATION '@/c.csv' OPTIONS (delimiter ';', type 'var * {a: int8, b: string}')",
        ] {
            test.lines(engine, sql).unwrap();
        }
    }
    for sql in ["SELECT sum(a), max(b) FROM c", "SELECT * FROM m", "SELECT arrow_typeof(a), a FROM typed"] {
        test.check(sql);
    }
}

#[test]
fn copies_survive() {
    let test = sample();
    let copied = test.there("COPY (SELECT * FROM '@/t.bson') TO '@/out/' STORED AS PARQUET").unwrap();
    assert_eq!(copied, ["900 written"]);
    let keyed =
        "COPY (SELECT * FROM '@/t.bson' WHERE a < 40) TO '@/keyed/' STORED AS BSONDF PARTITIONED BY (s, f)";
    assert_eq!(test.there(keyed).unwrap(), ["40 written"]);
    let sum = |sql: &str| test.lines(&test.here, sql).unwrap();
    assert_eq!(sum("SELECT sum(a) AS z, count(*) AS n FROM '@/out'")[0], "404550,900");
    assert_eq!(sum("SELECT count(*) AS n, count(DISTINCT s) AS s FROM '@/keyed'")[0], "40,3");
    let error =
        test.there("COPY (SELECT 1 AS x, 'a' AS y FROM '@/t.csv') TO '@/bad/' STORED AS MTX").unwrap_err();
    assert!(!error.to_string().is_empty());
    assert!(!test.folder.path().join("bad").exists());
}

#[test]
fn functions_on_succinct_structures_survive() {
    let test = Test::new();
    test.put("bits.csv", "b\ntrue\nfalse\ntrue\ntrue\n");
    test.convert("bits.csv", "bits.sds");
    test.put("i.csv", "i\n0\n1\n2\n3\n");
    test.check("SELECT i, sds_get('@/bits.sds', i), sds_rank('@/bits.sds', i) FROM '@/i.csv'");
}

fn made(folder: &std::path::Path, name: &str) -> String {
    let path = folder.join(name);
    std::fs::create_dir_all(&path).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn executors_open_nothing_outside_their_roots() {
    let test = Test::with(|folder| vec![made(folder, "in")], |_| {});
    test.put("in/a.csv", "x\n1\n");
    test.put("out/a.csv", "x\n2\n");
    std::os::unix::fs::symlink(test.folder.path().join("out/a.csv"), test.folder.path().join("in/link.csv"))
        .unwrap();
    test.check("SELECT x + 1 AS y FROM '@/in/a.csv'");
    for sql in ["SELECT x + 1 FROM '@/out/a.csv'", "SELECT x + 1 FROM '@/in/link.csv'"] {
        let error = test.there(sql).unwrap_err().to_string();
        assert!(
            error.contains("outside the data root") && error.contains("a.csv") | error.contains("link.csv"),
            "{error}"
        );
    }
    let error = test.there("COPY (SELECT x + 1 AS y FROM '@/in/a.csv') TO '@/elsewhere/' STORED AS CSV");
    assert!(error.unwrap_err().to_string().contains("outside the data root"));
    assert!(!test.folder.path().join("elsewhere").exists());
}

#[test]
fn other_versions_are_refused_with_both_named() {
    fn older(bytes: &mut [u8]) {
        let version = format!("{} plan ", env!("CARGO_PKG_VERSION"));
        let at = bytes.windows(version.len()).position(|window| window == version.as_bytes()).unwrap();
        bytes[at] = b'9';
    }
    let test = Test::with(|_| Vec::new(), older);
    test.put("a.csv", "x\n1\n");
    let error = test.there("SELECT x + 1 FROM '@/a.csv'").unwrap_err().to_string();
    assert!(
        error.contains("the versions differ: a plan of pentaglot 9.") && error.contains("one version"),
        "{error}"
    );
}

#[test]
fn a_file_that_changed_is_an_error_with_its_name() {
    let test = Test::new();
    test.put("a.csv", "x\n1\n");
    test.lines(&test.there, "CREATE EXTERNAL TABLE a STORED AS CSV LOCATION '@/a.csv'").unwrap();
    test.put("a.csv", "x\n1\n2\n");
    let error = test.there("SELECT x + 1 FROM a").unwrap_err().to_string();
    assert!(error.contains("a.csv: the file changed after the query was planned"), "{error}");
}
