//! `mongodb[+srv]://HOSTS/DB/COLLECTION?key=…&order=…&from=…&to=…&version=…`.
//!
//! The collection and our own parameters are cut off; the rest is for the driver. Hosts, password and options may come
//! from `MONGODB_URI`: all of them where the address has no hosts, the password where it has the same hosts and no password.

use mongodb::bson::oid::ObjectId;
use pentaglot::{Error, Result, redacted};

/// A table in a collection, or a place for one.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// What the driver gets.
    uri: String,
    /// What messages show.
    shown: String,
    database: String,
    collection: String,
    key: Option<String>,
    order: Option<String>,
    from: Option<String>,
    to: Option<String>,
    version: Option<ObjectId>,
}

/// The parts of a connection string; the text of each is as written.
struct Parts<'t> {
    scheme: &'t str,
    user: Option<&'t str>,
    hosts: &'t str,
    path: &'t str,
    query: &'t str,
}

impl<'t> Parts<'t> {
    fn of(text: &'t str) -> Result<Self> {
        let wrong = || {
            Error::usage(format!(
                "expected mongodb://HOSTS/DB/COLLECTION or mongodb+srv://HOST/DB/COLLECTION, found {}",
                redacted(text)
            ))
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        if !matches!(scheme, "mongodb" | "mongodb+srv") {
            return Err(wrong());
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        // A password may hold a slash only as %2F: the first slash ends the hosts.
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, hosts) = match authority.rsplit_once('@') {
            Some((user, hosts)) => (Some(user), hosts),
            None => (None, authority),
        };
        Ok(Parts { scheme, user, hosts, path, query })
    }
}

impl Address {
    /// Parses an address; `MONGODB_URI` adds what it lacks.
    pub fn parse(text: &str) -> Result<Self> {
        Address::with_environment(text, std::env::var("MONGODB_URI").ok().as_deref())
    }

    pub(crate) fn with_environment(text: &str, environment: Option<&str>) -> Result<Self> {
        let own = Parts::of(text)?;
        let base = environment.filter(|uri| !uri.is_empty()).map(Parts::of).transpose();
        let base = base.map_err(|_| {
            Error::usage("MONGODB_URI: expected an address that begins with mongodb:// or mongodb+srv://")
        })?;
        let missing = |what: &str| Error::usage(format!("{}: expected {what}, found none", redacted(text)));
        let (database, collection) = own
            .path
            .split_once('/')
            .ok_or_else(|| missing("a database and a collection (HOSTS/DB/COLLECTION)"))?;
        let (database, collection) = (decoded(database)?, decoded(collection)?);
        if database.is_empty() || collection.is_empty() {
            return Err(missing("a database and a collection (HOSTS/DB/COLLECTION)"));
        }
        let mut address = Address {
            uri: String::new(),
            shown: redacted(text).into_owned(),
            database,
            collection,
            key: None,
            order: None,
            from: None,
            to: None,
            version: None,
        };
        let mut kept = Vec::new();
        for pair in own.query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let place = match name {
                "key" => &mut address.key,
                "order" => &mut address.order,
                "from" => &mut address.from,
                "to" => &mut address.to,
                "version" => {
                    let id = ObjectId::parse_str(decoded(value)?).map_err(|_| {
                        Error::usage(format!("version: expected 24 hex digits, found {value:?}"))
                    })?;
                    address.version = Some(id);
                    continue;
                }
                _ => {
                    kept.push(pair);
                    continue;
                }
            };
            *place = Some(decoded(value)?);
        }
        address.uri = match base {
            Some(base) if own.hosts.is_empty() => joined(&base, base.user, base.path, &kept),
            Some(base) if own.user.is_none() && own.hosts == base.hosts && own.scheme == base.scheme => {
                joined(&base, base.user, base.path, &kept)
            }
            _ if own.hosts.is_empty() => return Err(missing("hosts, here or in MONGODB_URI")),
            _ => {
                let path = own.path.split('/').next().unwrap_or_default();
                let plain = Parts { query: "", ..own };
                joined(&plain, plain.user, path, &kept)
            }
        };
        Ok(address)
    }

    /// What may be shown.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    pub(crate) fn uri(&self) -> &str {
        &self.uri
    }

    /// The name of the database.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// The name of the collection.
    pub fn collection(&self) -> &str {
        &self.collection
    }

    /// The key of the table, if one is named.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    pub(crate) fn set_key(&mut self, key: &str) -> Result<()> {
        match &self.key {
            Some(own) if own != key => {
                Err(Error::usage(format!("two keys, {own:?} in the address and {key:?} behind it")))
            }
            _ => {
                self.key = Some(key.to_owned());
                Ok(())
            }
        }
    }

    pub(crate) fn order(&self) -> Option<&str> {
        self.order.as_deref()
    }

    pub(crate) fn range(&self) -> (Option<&str>, Option<&str>) {
        (self.from.as_deref(), self.to.as_deref())
    }

    pub(crate) fn version(&self) -> Option<ObjectId> {
        self.version
    }

    /// Errs if a part of the address is for reading only.
    pub(crate) fn check_output(&self) -> Result<()> {
        let names =
            [("from", self.from.is_some()), ("to", self.to.is_some()), ("version", self.version.is_some())];
        match names.iter().find(|(_, given)| *given) {
            Some((name, _)) => Err(Error::usage(format!("{name}= is for reading, and this is an output"))),
            None => Ok(()),
        }
    }
}

fn joined(parts: &Parts<'_>, user: Option<&str>, path: &str, kept: &[&str]) -> String {
    let user = user.map(|user| format!("{user}@")).unwrap_or_default();
    let options: Vec<&str> =
        parts.query.split('&').filter(|pair| !pair.is_empty()).chain(kept.iter().copied()).collect();
    let query = if options.is_empty() { String::new() } else { format!("?{}", options.join("&")) };
    format!("{}://{user}{}/{path}{query}", parts.scheme, parts.hosts)
}

/// Text without percent signs and their digits.
fn decoded(text: &str) -> Result<String> {
    let wrong = || Error::usage(format!("expected percent signs with two hex digits in {text:?}"));
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, tail) = rest.split_at_checked(2).ok_or_else(wrong)?;
        let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| wrong())?);
        rest = tail;
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}
