//! From a name to a store and a place in it.

use std::sync::Arc;

use base64::Engine;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use pentaglot::{Error, Hint, Result, redacted};
use url::{Host, Url};

use crate::Settings;
use crate::fault::Fault;

/// The schemes of the names that lead here.
pub(crate) const SCHEMES: &[&str] = &["s3", "gs", "az", "http", "https"];

/// A name taken apart.
#[derive(Clone)]
pub struct Address {
    /// The name as messages show it.
    shown: String,
    /// What names of the same store share; it may hold secrets.
    store: String,
    kind: Kind,
    path: Path,
    secrets: Vec<String>,
}

#[derive(Clone)]
enum Kind {
    Bucket {
        scheme: String,
        bucket: String,
    },
    /// The address without path and user information, and the latter.
    Http {
        origin: Url,
        user: Option<(String, String)>,
    },
}

impl Address {
    /// Takes a name apart: `s3://bucket/key`, `https://host/path?query`.
    pub fn parse(name: &str) -> Result<Self> {
        let shown = redacted(name).into_owned();
        let wrong = |what: &str| Error::usage(format!("{shown}: {what}"));
        if let Some((scheme, bucket, key)) = bucket_and_key(name) {
            if bucket.contains('@') {
                let advice = Hint::Advice("credentials are taken from the environment".into());
                return Err(wrong("expected the name of a bucket, found user information").hint(advice));
            }
            if bucket.is_empty() {
                return Err(wrong("expected the name of a bucket, found none"));
            }
            let path =
                Path::parse(key).map_err(|error| wrong(&format!("not the name of an object: {error}")))?;
            let kind = Kind::Bucket { scheme: scheme.to_owned(), bucket: bucket.to_owned() };
            return Ok(Address {
                shown,
                store: format!("{scheme}://{bucket}"),
                kind,
                path,
                secrets: Vec::new(),
            });
        }
        let url = Url::parse(name).map_err(|error| wrong(&format!("not an address: {error}")))?;
        let path = Path::from_url_path(url.path())
            .map_err(|error| wrong(&format!("not the name of an object: {error}")))?;
        let user = (!url.username().is_empty() || url.password().is_some())
            .then(|| (decoded(url.username()), decoded(url.password().unwrap_or_default())));
        let mut secrets: Vec<String> = [url.query(), url.password(), Some(url.username())]
            .into_iter()
            .flatten()
            .filter(|secret| !secret.is_empty())
            .map(str::to_owned)
            .collect();
        secrets.extend(
            user.iter().flat_map(|(name, key)| [name.clone(), key.clone()]).filter(|s| !s.is_empty()),
        );
        let mut origin = url;
        origin.set_path("/");
        origin.set_fragment(None);
        let store = origin.to_string();
        // An address that has a host can lose its user information.
        let _ = origin.set_username("");
        let _ = origin.set_password(None);
        Ok(Address { shown, store, kind: Kind::Http { origin, user }, path, secrets })
    }

    /// The name as messages show it.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// The place in the store.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What may not be shown.
    pub(crate) fn secrets(&self) -> &[String] {
        &self.secrets
    }

    pub(crate) fn store_key(&self) -> &str {
        &self.store
    }

    /// A connection to the store. Nothing is sent yet.
    pub(crate) fn connect(&self, settings: &Settings) -> Result<Arc<dyn ObjectStore>> {
        let retry = RetryConfig {
            max_retries: settings.retries,
            retry_timeout: settings.timeout * 2,
            backoff: BackoffConfig::default(),
        };
        let client = ClientOptions::new()
            .with_timeout(settings.timeout)
            .with_connect_timeout(settings.connect_timeout);
        let connected: object_store::Result<Arc<dyn ObjectStore>> = match &self.kind {
            Kind::Bucket { scheme, bucket } => match scheme.as_str() {
                "s3" => AmazonS3Builder::from_env()
                    .with_bucket_name(bucket)
                    .with_client_options(client.with_allow_http(allows_http()))
                    .with_retry(retry)
                    .build()
                    .map(|store| Arc::new(store) as _),
                "gs" => GoogleCloudStorageBuilder::from_env()
                    .with_bucket_name(bucket)
                    .with_client_options(client)
                    .with_retry(retry)
                    .build()
                    .map(|store| Arc::new(store) as _),
                _ => MicrosoftAzureBuilder::from_env()
                    .with_container_name(bucket)
                    .with_client_options(client)
                    .with_retry(retry)
                    .build()
                    .map(|store| Arc::new(store) as _),
            },
            Kind::Http { origin, user } => {
                let mut client = client.with_allow_http(true);
                if let Some((name, key)) = user {
                    client = client.with_default_headers(authorization(name, key)?);
                }
                HttpBuilder::new()
                    .with_url(origin.as_str())
                    .with_client_options(client)
                    .with_retry(retry)
                    .build()
                    .map(|store| Arc::new(store) as _)
            }
        };
        connected.map_err(|error| Fault::new(self, error).doing("cannot connect").into())
    }
}

/// Whether S3 may be spoken without TLS: `AWS_ALLOW_HTTP` says so, or the endpoint is on this machine.
fn allows_http() -> bool {
    let allowed = std::env::var("AWS_ALLOW_HTTP")
        .is_ok_and(|text| ["1", "true"].contains(&text.to_lowercase().as_str()));
    let endpoint = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];
    let endpoint = endpoint.iter().find_map(|name| std::env::var(name).ok());
    let is_local = endpoint.and_then(|text| Url::parse(&text).ok()).is_some_and(|url| match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    });
    allowed || is_local
}

/// The header that user information means.
fn authorization(name: &str, key: &str) -> Result<HeaderMap> {
    let text = base64::engine::general_purpose::STANDARD.encode(format!("{name}:{key}"));
    let mut value = HeaderValue::from_str(&format!("Basic {text}"))
        .map_err(|_| Error::usage("user information that no header can hold"))?;
    value.set_sensitive(true);
    Ok(HeaderMap::from_iter([(AUTHORIZATION, value)]))
}

/// User information as it was meant.
fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// The scheme, bucket and key of a name in a bucket.
fn bucket_and_key(name: &str) -> Option<(&str, &str, &str)> {
    let (scheme, rest) = name.split_once("://")?;
    let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
    ["s3", "gs", "az"].contains(&scheme).then_some((scheme, bucket, key))
}

/// `s3://bucket` and the pattern of keys in it; `None` for other addresses.
pub(crate) fn bucket_and_pattern(name: &str) -> Option<(&str, &str)> {
    let (_, _, keys) = bucket_and_key(name)?;
    Some((name[..name.len() - keys.len()].trim_end_matches('/'), keys))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        let s3 = Address::parse("s3://bucket/a b/key.csv").unwrap();
        assert_eq!((s3.store_key(), s3.path().as_ref()), ("s3://bucket", "a b/key.csv"));
        let http = Address::parse("https://me:p%40ss@host:81/a%20b/x.csv?sig=1").unwrap();
        assert_eq!((http.shown(), http.path().as_ref()), ("https://…@host:81/a%20b/x.csv?…", "a b/x.csv"));
        assert!(http.secrets().contains(&"p@ss".to_owned()) && http.secrets().contains(&"sig=1".to_owned()));
        let Kind::Http { origin, user } = &http.kind else { panic!("not http") };
        assert_eq!(origin.as_str(), "https://host:81/?sig=1");
        assert_eq!(user.as_ref().unwrap().1, "p@ss");
        assert_eq!(bucket_and_pattern("s3://b/x/*.csv"), Some(("s3://b", "x/*.csv")));
        assert_eq!(bucket_and_pattern("https://h/*.csv"), None);
        for wrong in ["s3://", "s3://key:secret@bucket/x", "s3://bucket/a//b", "http://"] {
            let error = Address::parse(wrong).err().unwrap().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
