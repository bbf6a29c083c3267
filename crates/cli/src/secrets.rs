//! Addresses on the command line may contain secrets: a password, a signature in the query. They are hidden
//! from the verbs.
//!
//! Arguments that are such an address are replaced by their redacted form before they are parsed. Only the code that
//! opens a name has the table of the original addresses.

use std::collections::HashMap;
use std::ffi::OsString;

use pentaglot::redacted;

/// Maps redacted names to the original addresses.
#[derive(Debug, Default, Clone)]
pub(crate) struct Secrets {
    real: HashMap<String, String>,
}

impl Secrets {
    /// The arguments with every address redacted, and the table of the originals.
    pub(crate) fn hide(words: &[OsString]) -> (Vec<OsString>, Self) {
        let mut secrets = Secrets::default();
        let words = words.iter().map(|word| match word.to_str() {
            Some(text) if is_address(text) => secrets.hidden(text).into(),
            _ => word.clone(),
        });
        let words = words.collect();
        (words, secrets)
    }

    fn hidden(&mut self, text: &str) -> String {
        let shown = redacted(text);
        if shown == text {
            return text.to_owned();
        }
        // The name of a member is not part of the address.
        let (address, shown, member) = match shown.rsplit_once("::") {
            Some((name, member)) => {
                let address = text.strip_suffix(member).and_then(|text| text.strip_suffix("::"));
                (address.unwrap_or(text), name.to_owned(), Some(member))
            }
            None => (text, shown.to_string(), None),
        };
        // Addresses that differ only in their secrets are numbered.
        let mut name = shown.clone();
        let mut number = 2;
        while self.real.get(&name).is_some_and(|known| known != address) {
            name = format!("{shown}{number}");
            number += 1;
        }
        self.real.insert(name.clone(), address.to_owned());
        member.map_or(name.clone(), |member| format!("{name}::{member}"))
    }

    /// The address of a name.
    #[cfg_attr(
        not(any(feature = "remote", feature = "mongodb", test)),
        expect(dead_code, reason = "nothing opens addresses in this build")
    )]
    pub(crate) fn reveal<'n>(&'n self, name: &'n str) -> &'n str {
        self.real.get(name).map_or(name, String::as_str)
    }
}

/// Whether the whole argument is an address, not text that contains one.
fn is_address(text: &str) -> bool {
    let schemes = ["s3://", "gs://", "az://", "http://", "https://", "mongodb://", "mongodb+srv://"];
    schemes.iter().any(|scheme| text.starts_with(scheme))
}

/// A remote that accepts redacted names.
#[cfg(any(feature = "remote", feature = "mongodb"))]
pub(crate) struct Revealed<R> {
    pub(crate) secrets: Secrets,
    pub(crate) remote: R,
}

#[cfg(any(feature = "remote", feature = "mongodb"))]
impl<R: pentaglot::Remote> pentaglot::Remote for Revealed<R> {
    fn schemes(&self) -> &[&str] {
        self.remote.schemes()
    }

    fn open(&self, name: &str) -> pentaglot::Result<pentaglot::Source> {
        self.remote.open(self.secrets.reveal(name))
    }

    fn create(&self, name: &str, force: bool) -> pentaglot::Result<Box<dyn pentaglot::sink::Output>> {
        self.remote.create(self.secrets.reveal(name), force)
    }

    fn list(&self, pattern: &str) -> pentaglot::Result<Option<Vec<String>>> {
        let real = self.secrets.reveal(pattern);
        self.remote.list(real)
    }

    fn objects(&self, name: &str) -> pentaglot::Result<Option<Vec<pentaglot::RemoteObject>>> {
        self.remote.objects(self.secrets.reveal(name))
    }

    fn open_table(
        &self,
        name: &str,
        options: &pentaglot::formats::ReadOptions,
    ) -> pentaglot::Result<Option<pentaglot::RemoteTable>> {
        self.remote.open_table(self.secrets.reveal(name), options)
    }

    fn table_format(
        &self,
        name: &str,
    ) -> pentaglot::Result<Option<(&'static str, pentaglot::formats::OptionMap)>> {
        self.remote.table_format(self.secrets.reveal(name))
    }

    fn remove(&self, name: &str) -> pentaglot::Result<()> {
        self.remote.remove(self.secrets.reveal(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_hidden_and_found_again() {
        let given = [
            "diff",
            "https://h/x.csv?sig=one",
            "https://h/x.csv?sig=two",
            "https://me:pw@h/y.npz?k=v::member",
            "--where",
            "url = 'https://h/z?q=1'",
            "s3://b/x.csv",
        ];
        let words: Vec<OsString> = given.iter().map(OsString::from).collect();
        let (hidden, secrets) = Secrets::hide(&words);
        let hidden: Vec<&str> = hidden.iter().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(
            hidden,
            [
                "diff",
                "https://h/x.csv?…",
                "https://h/x.csv?…2",
                "https://…@h/y.npz?…::member",
                "--where",
                "url = 'https://h/z?q=1'",
                "s3://b/x.csv"
            ]
        );
        assert_eq!(secrets.reveal(hidden[1]), given[1]);
        assert_eq!(secrets.reveal(hidden[2]), given[2]);
        assert_eq!(secrets.reveal("https://…@h/y.npz?…"), "https://me:pw@h/y.npz?k=v");
        assert_eq!(secrets.reveal("s3://b/x.csv"), "s3://b/x.csv");
    }
}
