//! Access control: only a browser on this machine that was given the address is allowed.

use std::sync::{Mutex, PoisonError};

use pentaglot::{Error, Result};

use crate::http::{Request, Response};

/// The code that works once, and the token that it is exchanged for.
pub(crate) struct Guard {
    /// The valid values of `Host`, and with `http://` before them of `Origin`.
    hosts: [String; 2],
    code: String,
    /// Whether the code can still be used.
    is_fresh: Mutex<bool>,
    token: String,
}

impl Guard {
    pub(crate) fn new(port: u16) -> Result<Self> {
        Ok(Guard {
            hosts: [format!("127.0.0.1:{port}"), format!("localhost:{port}")],
            code: secret()?,
            is_fresh: Mutex::new(true),
            token: secret()?,
        })
    }

    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    /// Rejects a request from another site or for another host name. Other names that resolve to this machine are
    /// rejected too, since a foreign page could use one to be of the same origin.
    pub(crate) fn check_source(&self, request: &Request) -> std::result::Result<(), Response> {
        let host = request.headers.get("host");
        if !host.is_some_and(|host| self.hosts.contains(host)) {
            return Err(Response::fault(403, "the host is not that of this server"));
        }
        let is_own = |origin: &String| self.hosts.iter().any(|host| *origin == format!("http://{host}"));
        match request.headers.get("origin") {
            Some(origin) if !is_own(origin) => {
                Err(Response::fault(403, "the origin is not that of this server"))
            }
            _ => Ok(()),
        }
    }

    /// Rejects a request without the token.
    pub(crate) fn check_token(&self, request: &Request) -> std::result::Result<(), Response> {
        let expected = format!("Bearer {}", self.token);
        match request.headers.get("authorization") {
            Some(given) if equal(given, &expected) => Ok(()),
            _ => Err(Response::fault(401, "the token is missing or wrong")),
        }
    }

    /// The token for the code, once.
    pub(crate) fn exchange(&self, code: &str) -> Option<&str> {
        let mut is_fresh = self.is_fresh.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_fresh || !equal(code, &self.code) {
            return None;
        }
        *is_fresh = false;
        Some(&self.token)
    }
}

/// 256 random bits in hexadecimal digits.
fn secret() -> Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::io("no random numbers", std::io::Error::other(error.to_string())))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Compares in constant time.
fn equal(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}
