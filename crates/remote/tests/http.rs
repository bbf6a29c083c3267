//! Objects behind HTTP, from servers that behave and servers that do not.

mod support;

use std::sync::Arc;
use std::time::Duration;

use pentaglot::job::{self, OpenOptions, View};
use pentaglot::{Error, Registry, Remote, Source};
use pentaglot_remote::{Settings, Stores};
use support::{Answer, Request, Server};

const SECRET: &str = "hunter2";

fn stores() -> Stores {
    let mut settings = Settings::default();
    settings.timeout = Duration::from_secs(5);
    settings.retries = 2;
    Stores::new(settings)
}

/// A table of CSV that is larger than the first request.
fn csv() -> Vec<u8> {
    let rows = (0..100_000).map(|row| format!("{row},{}\n", row * 7 % 1000));
    format!("id,value\n{}", rows.collect::<String>()).into_bytes()
}

/// An address that has a password and a signature.
fn address(server: &Server) -> String {
    format!("http://me:{SECRET}@{}/dir/x.csv?sig={SECRET}", server.address)
}

/// All values of the table at an address, added up.
fn sum(name: &str) -> Result<i64, Error> {
    let registry = Registry::default().with_remote(Arc::new(stores()));
    let opened = job::open(&registry, name, &OpenOptions::default())?;
    let mut sum = 0;
    for batch in opened.rows(&View::default())? {
        let batch = batch.map_err(Error::from)?;
        let values = batch.column(1).as_any().downcast_ref::<pentaglot::arrow::array::Int64Array>().unwrap();
        sum += values.iter().flatten().sum::<i64>();
    }
    Ok(sum)
}

fn expected() -> i64 {
    (0..100_000).map(|row| row * 7 % 1000).sum()
}

fn check_secret(error: &Error) -> String {
    let text = format!("{error} {:?} {:?}", error.input(), error.output());
    assert!(!text.contains(SECRET), "{text}");
    text
}

#[test]
fn a_good_server_is_asked_for_ranges_of_one_version() {
    let server = Server::start(|request| Answer::of(request, &csv(), "\"one\""));
    assert_eq!(sum(&address(&server)).unwrap(), expected());
    let requests = server.requests();
    assert!(requests.len() > 1);
    for request in requests.iter().filter(|request| request.target.starts_with("/dir/x.csv?")) {
        assert_eq!(request.target, format!("/dir/x.csv?sig={SECRET}"));
        // me:hunter2
        assert_eq!(request.header("authorization"), Some("Basic bWU6aHVudGVyMg=="));
        if request.number > 0 && request.method == "GET" {
            assert_eq!(request.header("if-match"), Some("\"one\""));
        }
    }
}

#[test]
fn the_name_shows_no_secret() {
    let server = Server::start(|request| Answer::of(request, b"a\n1\n", "\"one\""));
    let source: Source = stores().open(&address(&server)).unwrap();
    assert_eq!(source.name(), format!("http://…@{}/dir/x.csv?…", server.address));
}

/// A version that changes after the first answer, and a server that knows no conditions.
#[test]
fn two_versions_are_never_mixed() {
    let changing = |request: &Request| {
        let tag = if request.number == 0 { "\"one\"" } else { "\"two\"" };
        Answer::of(request, &csv(), tag)
    };
    let error = sum(&address(&Server::start(changing))).unwrap_err();
    assert!(check_secret(&error).contains("changed while it was read"), "{error}");
    // A server that obeys the condition.
    let strict = |request: &Request| match request.number {
        0 => Answer::of(request, &csv(), "\"one\""),
        _ => Answer::status("412 Precondition Failed"),
    };
    let error = sum(&address(&Server::start(strict))).unwrap_err();
    assert!(check_secret(&error).contains("changed while it was read"), "{error}");
    // Weak tags never match a condition, so none is sent, but the answers are compared.
    let weak = |request: &Request| Answer::of(request, &csv(), "W/\"one\"");
    let server = Server::start(weak);
    assert_eq!(sum(&address(&server)).unwrap(), expected());
    assert!(server.requests().iter().all(|request| request.header("if-match").is_none()));
}

#[test]
fn passing_faults_are_repeated() {
    let server = Server::start(|request| match request.number {
        0 | 2 => Answer::status("500 Internal Server Error"),
        // The connection breaks in the middle of an answer.
        4 => Answer { cut: Some(1000), ..Answer::of(request, &csv(), "\"one\"") },
        _ => Answer::of(request, &csv(), "\"one\""),
    });
    assert_eq!(sum(&address(&server)).unwrap(), expected());
}

#[test]
fn lasting_faults_are_errors() {
    let server = Server::start(|_| Answer::status("503 Service Unavailable"));
    let error = sum(&address(&server)).unwrap_err();
    let text = check_secret(&error);
    assert!(text.contains("503") && !text.contains('\n'), "{text}");
    let server = Server::start(|request| match request.number {
        0 => Answer::of(request, &csv(), "\"one\""),
        _ => Answer { cut: Some(7), ..Answer::of(request, &csv(), "\"one\"") },
    });
    check_secret(&sum(&address(&server)).unwrap_err());
    // Ranges that are not those that were asked for.
    let server = Server::start(|request| match request.number {
        0 => Answer::of(request, &csv(), "\"one\""),
        _ => {
            let mut short = Answer::of(request, &csv(), "\"one\"");
            short.body.truncate(short.body.len() / 2);
            short
        }
    });
    check_secret(&sum(&address(&server)).unwrap_err());
    // Nobody answers.
    let error = sum("http://127.0.0.1:1/x.csv").unwrap_err();
    assert!(check_secret(&error).contains("cannot open"), "{error}");
}

#[test]
fn a_server_without_ranges_gives_a_stream() {
    let plain = |request: &Request| {
        let request = Request { headers: Vec::new(), ..request.clone() };
        Answer::of(&request, &csv(), "\"one\"")
    };
    assert_eq!(sum(&address(&Server::start(plain))).unwrap(), expected());
}

#[test]
fn side_files_that_are_forbidden_or_missing_are_absent() {
    for status in ["403 Forbidden", "404 Not Found"] {
        let server = Server::start(move |request| match request.target.contains(".meta") {
            true => Answer::status(status),
            false => Answer::of(request, &csv(), "\"one\""),
        });
        let source = stores().open(&address(&server)).unwrap();
        assert!(source.sibling(".meta").unwrap().is_none(), "{status}");
    }
    let server = Server::start(|_| Answer::status("404 Not Found"));
    let error = sum(&address(&server)).unwrap_err();
    assert!(check_secret(&error).contains("there is no such object"), "{error}");
}

#[test]
fn small_files_are_put() {
    let server = Server::start(|request| match request.method.as_str() {
        "HEAD" => Answer::status("404 Not Found"),
        _ => Answer::status("201 Created"),
    });
    let mut output = stores().create(&address(&server), false).unwrap();
    output.write(b"a,b\n").unwrap();
    output.commit().unwrap();
    let requests = server.requests();
    let put: Vec<_> = requests.iter().filter(|request| request.method == "PUT").collect();
    assert_eq!((put.len(), put[0].body.as_slice()), (1, b"a,b\n".as_slice()));
    let mut large = stores().create(&address(&server), false).unwrap();
    let error = large.write(&vec![0; 9 << 20]).map_err(Error::from).unwrap_err();
    assert!(check_secret(&error).contains("behind HTTP"), "{error}");
}
