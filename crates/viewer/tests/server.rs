//! Tests of the server with a client other than the page.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use pentaglot::{Control, Registry};
use pentaglot_viewer::{ViewOptions, Viewer};
use serde_json::{Value, json};

struct Server {
    port: u16,
    code: String,
    control: Control,
    token: String,
    folder: tempfile::TempDir,
}

impl Server {
    fn start(files: &[&str], read_only: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = ViewOptions::default();
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data");
        options.files = files.iter().map(|name| examples.join(name).to_str().unwrap().to_owned()).collect();
        options.read_only = read_only;
        options.folder = folder.path().to_owned();
        let control = options.open.control.clone();
        let viewer = Viewer::bind(&Registry::default(), options).unwrap();
        let (start, code) = viewer.address().split_once("/#").unwrap();
        let port = start.rsplit(':').next().unwrap().parse().unwrap();
        let code = code.to_owned();
        std::thread::spawn(|| viewer.serve());
        let mut server = Server { port, code, control, token: String::new(), folder };
        let body = json!({ "code": server.code }).to_string();
        let (status, answer) = server.ask("POST", "/api/login", &[], &body);
        assert_eq!(status, 200);
        server.token =
            serde_json::from_slice::<Value>(&answer).unwrap()["token"].as_str().unwrap().to_owned();
        server
    }

    /// A request with these headers, and `Host` unless they include it.
    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, Vec<u8>) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let mut head =
            format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| *name == "Host") {
            head += &format!("Host: 127.0.0.1:{}\r\n", self.port);
        }
        headers.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(answer[..end].to_vec()).unwrap();
        assert!(head.contains("frame-ancestors 'none'") && head.contains("Referrer-Policy: no-referrer"));
        assert!(!head.contains("Access-Control") && !head.contains("Set-Cookie"));
        (head.split(' ').nth(1).unwrap().parse().unwrap(), answer[end + 4..].to_vec())
    }

    fn get(&self, path: &str) -> Value {
        let (status, answer) = self.ask("GET", path, &[("Authorization", &self.bearer())], "");
        let answer = serde_json::from_slice(&answer).unwrap();
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let (status, answer) =
            self.ask("POST", path, &[("Authorization", &self.bearer())], &body.to_string());
        (status, serde_json::from_slice(&answer).unwrap())
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    /// The result of work in the background.
    fn done(&self, path: &str) -> Value {
        loop {
            let answer = self.get(path);
            if answer["state"] != "running" {
                return answer["result"].clone();
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.control.cancel();
    }
}

#[test]
fn strangers_are_refused() {
    let server = Server::start(&["ticks.bson"], false);
    let port = server.port;
    let bearer = server.bearer();
    let foreign = format!("evil.example:{port}");
    let own = format!("http://127.0.0.1:{port}");
    for (status, method, path, headers) in [
        (200, "GET", "/", &[][..]),
        (200, "GET", "/", &[("Origin", own.as_str())]),
        (403, "GET", "/", &[("Host", "evil.example")]),
        (403, "GET", "/", &[("Host", foreign.as_str())]),
        (403, "GET", "/page.js", &[("Origin", "http://evil.example")]),
        (403, "GET", "/", &[("Origin", "null")]),
        (403, "GET", "/api/files", &[("Authorization", bearer.as_str()), ("Origin", "https://127.0.0.1")]),
        (404, "GET", "/index.html", &[]),
        (404, "GET", "/examples/data/ticks.bson", &[]),
        (404, "GET", "/..%2f..%2fetc/passwd", &[]),
        (401, "GET", "/api/files", &[]),
        (401, "GET", "/api/bytes?file=0&offset=0&length=10", &[]),
        (401, "GET", "/api/files", &[("Authorization", "Bearer x")]),
        (401, "POST", "/api/save", &[]),
        (401, "GET", "/api/files", &[("Authorization", bearer.as_str()), ("Authorization", bearer.as_str())]),
        (405, "PUT", "/api/files", &[("Authorization", bearer.as_str())]),
        (404, "GET", "/api/save", &[("Authorization", bearer.as_str())]),
        (404, "POST", "/api/files", &[("Authorization", bearer.as_str())]),
        (400, "GET", "/api/rows?file=1", &[("Authorization", bearer.as_str())]),
        (400, "GET", "/api/rows?file=../x", &[("Authorization", bearer.as_str())]),
    ] {
        assert_eq!(server.ask(method, path, headers, "").0, status, "{method} {path} {headers:?}");
    }
    let again = json!({ "code": server.code }).to_string();
    assert_eq!(server.ask("POST", "/api/login", &[], &again).0, 403, "the code works once");
    assert_ne!(server.code, server.token);
}

#[test]
fn saving_makes_new_files_in_one_folder_only() {
    let server = Server::start(&["ticks.bson"], false);
    let save = |name: &str| server.post("/api/save?file=0", &json!({ "to": "parquet", "name": name }));
    let (status, answer) = save("x.parquet");
    assert_eq!((status, answer["rows"].as_u64()), (200, Some(240)), "{answer}");
    let path = server.folder.path().join("x.parquet");
    let before = std::fs::read(&path).unwrap();
    assert_eq!(save("x.parquet").0, 400);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    for name in ["../y.parquet", "/tmp/y.parquet", "a/b.parquet", "", ".."] {
        assert_eq!(save(name).0, 400, "{name}");
    }
    #[cfg(unix)]
    {
        let target = server.folder.path().join("target.parquet");
        std::os::unix::fs::symlink(&target, server.folder.path().join("link.parquet")).unwrap();
        assert_eq!(save("link.parquet").0, 400);
        assert!(!target.exists());
    }
    assert_eq!(server.post("/api/save?file=0", &json!({ "to": "npy", "name": "x.npy" })).0, 500, "no matrix");
    assert!(!server.folder.path().join("x.npy").exists());
    let (status, plan) = server.post("/api/plan?file=0", &json!({ "to": "csv" }));
    assert_eq!((status, plan["steps"].as_array().unwrap().len() >= 4), (200, true));
    let reading = Server::start(&["ticks.bson"], true);
    let (status, answer) = reading.post("/api/save?file=0", &json!({ "to": "parquet", "name": "x.parquet" }));
    assert_eq!(status, 400, "{answer}");
    assert_eq!(std::fs::read_dir(reading.folder.path()).unwrap().count(), 0);
}

#[test]
fn what_the_page_asks_for_is_there() {
    let server =
        Server::start(&["ticks.bson", "ratings.mtx", "exons.sds", "broken.dbdf", "nowhere.csv"], false);
    let about = server.get("/api/files");
    assert_eq!(about["files"][0]["rows"], 240);
    assert_eq!(about["files"][1]["form"], "sparse");
    assert!(about["files"][4]["error"].is_string());
    let (status, view) = server.post(
        "/api/view?file=0",
        &json!({ "filter": "symbol = 'AAPL'", "sort": "quantity", "descending": true }),
    );
    assert_eq!((status, view["rows"].as_u64()), (200, Some(84)), "{view}");
    let path = format!("/api/rows?file=0&view={}&from=0&to=5&first=0&last=4", view["view"]);
    let (status, bytes) = server.ask("GET", &path, &[("Authorization", &server.bearer())], "");
    assert_eq!(status, 200);
    let reader = arrow_ipc::reader::StreamReader::try_new(bytes.as_slice(), None).unwrap();
    let batch = reader.map(Result::unwrap).next().unwrap();
    assert_eq!((batch.num_rows(), batch.num_columns()), (5, 5));
    let texts: &pentaglot::arrow::array::StringArray = batch.column(2).as_any().downcast_ref().unwrap();
    assert!(texts.iter().all(|text| text == Some("AAPL")));
    let figures = server.done("/api/describe?file=0&column=price");
    assert_eq!(figures["columns"][0]["distinct"], 30);
    assert_eq!(server.done("/api/describe?file=1")["nonzeros"], 9);
    assert_eq!(server.done("/api/validate?file=3")["findings"][0]["offset"], 53);
    assert_eq!(server.get("/api/query?file=2&query=rank%20300")["answer"], "21");
    let spy = server.get("/api/spy?file=1&top=2&bottom=5&left=1&right=6&entries=1");
    assert_eq!((&spy["rows"], &spy["cols"]), (&3.0.into(), &5.0.into()));
    let entries = spy["entries"].as_array().unwrap();
    assert!(
        entries.iter().all(|entry| entry[0].as_u64() >= Some(2) && entry[1].as_u64() >= Some(1)),
        "{spy}"
    );
    let place = server.get("/api/locate?file=1&offset=3");
    assert!(place["node"]["offset"].is_u64());
    assert_eq!(server.get("/api/cell?file=0&row=0&column=1")["value"], "AAPL");
}

#[test]
fn a_file_that_does_not_open_has_its_bytes_as_a_part() {
    let server = Server::start(&["broken.dbdf"], false);
    let outline = server.get("/api/outline?file=0");
    assert_eq!((&outline["node"]["name"], &outline["node"]["offset"]), (&"file".into(), &0.into()));
    let place = server.get("/api/locate?file=0&offset=53");
    assert!(place["node"]["bytes"].as_u64() > Some(53), "{place}");
    // As far as it is sound, where the format can tell.
    let whole = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/ticks.bson"));
    let (whole, folder) = (whole.unwrap(), tempfile::tempdir().unwrap());
    let cut = folder.path().join("cut.bson");
    std::fs::write(&cut, &whole[..whole.len() - 20]).unwrap();
    let server = Server::start(&[cut.to_str().unwrap()], false);
    assert!(server.get("/api/files")["files"][0]["error"].is_string());
    assert!(!server.get("/api/outline?file=0")["parts"].as_array().unwrap().is_empty());
}

#[test]
fn files_and_the_condition_are_checked_before_the_server_starts() {
    let check = |file: &str, filter: Option<&str>| {
        let mut options = ViewOptions::default();
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data");
        options.files = vec![examples.join(file).to_str().unwrap().to_owned()];
        options.filter = filter.map(str::to_owned);
        Viewer::bind(&Registry::default(), options).unwrap().check()
    };
    assert_eq!(check("nowhere.csv", None).unwrap_err().kind(), pentaglot::ErrorKind::Io);
    assert_eq!(check("ticks.bson", Some("nope > 1")).unwrap_err().kind(), pentaglot::ErrorKind::Usage);
    check("ticks.bson", Some("quantity > 1")).unwrap();
    check("broken.dbdf", None).unwrap();
}

#[test]
fn a_sort_is_stable_and_names_a_column_that_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.csv");
    let rows: String = (0..500).map(|row| format!("{},{row}\n", row % 3)).collect();
    std::fs::write(&path, format!("key,row\n{rows}")).unwrap();
    let server = Server::start(&[path.to_str().unwrap()], false);
    let (status, answer) = server.post("/api/view?file=0", &json!({ "sort": "nope" }));
    assert_eq!((status, &answer["error"]), (400, &"there is no column \"nope\" to sort by".into()));
    for descending in [false, true] {
        let (_, view) = server.post("/api/view?file=0", &json!({ "sort": "key", "descending": descending }));
        let path = format!("/api/rows?file=0&view={}&from=0&to=500&first=0&last=2", view["view"]);
        let (_, bytes) = server.ask("GET", &path, &[("Authorization", &server.bearer())], "");
        let reader = arrow_ipc::reader::StreamReader::try_new(bytes.as_slice(), None).unwrap();
        let batch = reader.map(Result::unwrap).next().unwrap();
        let texts = |column: usize| -> Vec<i64> {
            let texts: &pentaglot::arrow::array::StringArray =
                batch.column(column).as_any().downcast_ref().unwrap();
            texts.iter().map(|text| text.unwrap().parse().unwrap()).collect()
        };
        let found: Vec<(i64, i64)> = texts(1).into_iter().zip(texts(2)).collect();
        let mut expected = found.clone();
        expected.sort_by_key(|(key, row)| (if descending { -key } else { *key }, *row));
        assert_eq!(found, expected);
    }
}
