//! A small HTTP server on loopback that answers, or fails to, as a test tells it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// A request, as far as tests look at it.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// How many requests came before.
    pub(crate) number: usize,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The range that is asked for, of so many bytes.
    pub(crate) fn range(&self, len: usize) -> Option<Range<usize>> {
        let (start, end) = self.header("range")?.strip_prefix("bytes=")?.split_once('-')?;
        let end = end.parse::<usize>().map_or(len, |last| len.min(last + 1));
        Some(start.parse().ok()?..end)
    }
}

/// An answer: a status line, headers, a body of which perhaps only the first bytes are sent.
pub(crate) struct Answer {
    pub(crate) status: &'static str,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Send only so many bytes of the body and close the connection.
    pub(crate) cut: Option<usize>,
}

impl Answer {
    pub(crate) fn status(status: &'static str) -> Self {
        Answer { status, headers: Vec::new(), body: Vec::new(), cut: None }
    }

    /// What a good server sends for bytes of this version.
    pub(crate) fn of(request: &Request, bytes: &[u8], tag: &str) -> Self {
        let mut answer = Answer::status("200 OK");
        answer.headers.push(("ETag".to_owned(), tag.to_owned()));
        match request.range(bytes.len()) {
            Some(range) if range.start >= range.end => Answer::status("416 Range Not Satisfiable"),
            Some(range) => {
                let text = format!("bytes {}-{}/{}", range.start, range.end - 1, bytes.len());
                answer.headers.push(("Content-Range".to_owned(), text));
                Answer { status: "206 Partial Content", body: bytes[range].to_vec(), ..answer }
            }
            None => Answer { body: bytes.to_vec(), ..answer },
        }
    }
}

/// A server that runs until the test ends.
pub(crate) struct Server {
    pub(crate) address: String,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    pub(crate) fn start(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (seen, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(answer));
        let requests = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, seen) = (Arc::clone(&answer), Arc::clone(&requests));
                std::thread::spawn(move || serve(stream, &*answer, &seen));
            }
        });
        Server { address, seen }
    }

    /// What was asked so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

/// Answers the requests of one connection.
fn serve(stream: TcpStream, answer: &dyn Fn(&Request) -> Answer, seen: &Mutex<Vec<Request>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    while let Some(request) = read_request(&mut reader, seen) {
        let Answer { status, headers, body, cut } = answer(&request);
        let mut head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n", body.len());
        headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        head.push_str("\r\n");
        let body = if request.method == "HEAD" { &[] } else { &body[..cut.unwrap_or(body.len())] };
        if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).is_err() || cut.is_some() {
            return;
        }
    }
}

fn read_request(reader: &mut impl BufRead, seen: &Mutex<Vec<Request>>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.push((name.to_owned(), value.to_owned())),
            None => break,
        }
    }
    let mut request = Request { method, target, headers, body: Vec::new(), number: 0 };
    let len = request.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    reader.take(len).read_to_end(&mut request.body).ok()?;
    let mut seen = seen.lock().unwrap();
    request.number = seen.len();
    seen.push(request.clone());
    Some(request)
}
