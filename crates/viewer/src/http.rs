//! The subset of HTTP/1.1 that the page uses: requests and responses with a length, persistent connections.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Bytes of a request's line and headers together.
const HEAD_BYTES: u64 = 16 << 10;
/// Bytes of a request's body.
const BODY_BYTES: usize = 64 << 10;
/// How long a connection may be idle.
const IDLE: Duration = Duration::from_secs(60);

/// A request.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Without the query.
    pub(crate) path: String,
    /// `key=value` pairs after the `?`, decoded.
    pub(crate) query: HashMap<String, String>,
    /// Names in lower case. A repeated header has both values, separated by a comma.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn new(status: u16, content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Response { status, content_type, body: body.into() }
    }

    pub(crate) fn json(text: impl Into<Vec<u8>>) -> Self {
        Response::new(200, "application/json", text)
    }

    /// An error that the page shows.
    pub(crate) fn fault(status: u16, message: &str) -> Self {
        let body = serde_json::json!({ "error": message }).to_string();
        Response::new(status, "application/json", body)
    }
}

/// Headers of every answer.
const HEADERS: &str = "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
    Referrer-Policy: no-referrer\r\n\
    X-Content-Type-Options: nosniff\r\n\
    X-Frame-Options: DENY\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\n\
    Cross-Origin-Opener-Policy: same-origin\r\n\
    Cache-Control: no-store\r\n";

/// Answers the requests of one connection, until it ends.
pub(crate) fn serve(stream: &TcpStream, answer: impl Fn(&Request) -> Response) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(IDLE))?;
    stream.set_write_timeout(Some(IDLE))?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    loop {
        let (response, goes_on) = match read(&mut reader)? {
            None => return Ok(()),
            Some(Ok(request)) => {
                let goes_on =
                    request.headers.get("connection").is_none_or(|text| !text.eq_ignore_ascii_case("close"));
                (answer(&request), goes_on)
            }
            Some(Err(status)) => (Response::fault(status, "malformed or unsupported HTTP request"), false),
        };
        let reason = match response.status {
            200 => "OK",
            400 => "Bad Request",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            413 => "Content Too Large",
            _ => "Error",
        };
        let head = format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: {}\r\n{HEADERS}\r\n",
            response.status,
            response.content_type,
            response.body.len(),
            if goes_on { "keep-alive" } else { "close" },
        );
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&response.body);
        (&*stream).write_all(&bytes)?;
        if !goes_on {
            return Ok(());
        }
    }
}

/// The next request; `None` at the end, a status if it is malformed or not supported.
fn read(reader: &mut impl BufRead) -> io::Result<Option<Result<Request, u16>>> {
    let mut head = reader.take(HEAD_BYTES);
    let mut line = Vec::new();
    if head.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    let Some(mut request) = first_line(&line) else { return Ok(Some(Err(400))) };
    loop {
        line.clear();
        if head.read_until(b'\n', &mut line)? == 0 {
            return Ok(Some(Err(400)));
        }
        let Ok(text) = std::str::from_utf8(&line) else { return Ok(Some(Err(400))) };
        let text = text.trim_end_matches(['\r', '\n']);
        if text.is_empty() {
            break;
        }
        let Some((name, value)) = text.split_once(':') else { return Ok(Some(Err(400))) };
        let (name, value) = (name.to_ascii_lowercase(), value.trim().to_owned());
        let both = match request.headers.remove(&name) {
            Some(first) => format!("{first},{value}"),
            None => value,
        };
        request.headers.insert(name, both);
    }
    if request.headers.contains_key("transfer-encoding") {
        return Ok(Some(Err(400)));
    }
    let length = match request.headers.get("content-length").map(|text| text.parse::<usize>()) {
        None => 0,
        Some(Ok(length)) if length <= BODY_BYTES => length,
        Some(Ok(_)) => return Ok(Some(Err(413))),
        Some(Err(_)) => return Ok(Some(Err(400))),
    };
    request.body.resize(length, 0);
    reader.read_exact(&mut request.body)?;
    Ok(Some(Ok(request)))
}

/// `GET /path?query HTTP/1.1`.
fn first_line(line: &[u8]) -> Option<Request> {
    let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    if !version.starts_with("HTTP/1.") || words.next().is_some() || !target.starts_with('/') {
        return None;
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let query = pairs.map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decode(key)?, decode(value)?))
    });
    Some(Request {
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.collect::<Option<_>>()?,
        ..Request::default()
    })
}

/// Percent signs and plus signs of a query.
fn decode(text: &str) -> Option<String> {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [bytes.next()?, bytes.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Request, u16> {
        read(&mut text.as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn requests_are_taken_apart() {
        let request =
            parsed("POST /api/x?a=1%202&b=%C3%A4+c HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc")
                .unwrap();
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/api/x"));
        assert_eq!((request.query["a"].as_str(), request.query["b"].as_str()), ("1 2", "ä c"));
        assert_eq!((request.headers["host"].as_str(), request.body.as_slice()), ("h", &b"abc"[..]));
    }

    #[test]
    fn malformed_requests_are_refused() {
        for (text, status) in [
            ("GET / HTTP/2\r\n\r\n", 400),
            ("GET http://other/ HTTP/1.1\r\n\r\n", 400),
            ("GET /%zz?%zz HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", 413),
            ("POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400),
        ] {
            assert_eq!(parsed(text).unwrap_err(), status, "{text}");
        }
        let long = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(20_000));
        assert_eq!(parsed(&long).unwrap_err(), 400);
    }
}
