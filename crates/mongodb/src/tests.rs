//! Addresses: what the driver gets, and what is ours. `tests/python/mongodb.py` tests the rest against a server.

use crate::Address;

fn parsed(text: &str, environment: Option<&str>) -> Address {
    Address::with_environment(text, environment).unwrap()
}

#[test]
fn the_collection_and_our_parameters_are_cut_off() {
    let address = parsed(
        "mongodb://me:p%40ss@a:1,b:2/db/ticks.day?key=A%26B&tls=false&order=time&from=1&to=2&version=0102030405060708090a0b0c",
        None,
    );
    assert_eq!(address.uri(), "mongodb://me:p%40ss@a:1,b:2/db?tls=false");
    assert_eq!((address.database(), address.collection()), ("db", "ticks.day"));
    assert_eq!((address.key(), address.order()), (Some("A&B"), Some("time")));
    assert_eq!(address.range(), (Some("1"), Some("2")));
    assert_eq!(address.version().unwrap().to_hex(), "0102030405060708090a0b0c");
    assert_eq!(address.shown(), "mongodb://…@a:1,b:2/db/ticks.day?…");
    assert!(address.check_output().is_err());
    assert_eq!(parsed("mongodb+srv://h/db/c", None).uri(), "mongodb+srv://h/db");
}

#[test]
fn hosts_and_passwords_come_from_the_environment() {
    let environment = Some("mongodb://me:pw@h:7/admin?tls=true");
    assert_eq!(
        parsed("mongodb:///db/c?key=k&w=1", environment).uri(),
        "mongodb://me:pw@h:7/admin?tls=true&w=1"
    );
    assert_eq!(parsed("mongodb://h:7/db/c", environment).uri(), "mongodb://me:pw@h:7/admin?tls=true");
    assert_eq!(parsed("mongodb://other/db/c", environment).uri(), "mongodb://other/db");
    assert_eq!(parsed("mongodb://you:x@h:7/db/c", environment).uri(), "mongodb://you:x@h:7/db");
}

#[test]
fn what_is_missing_is_named_without_secrets() {
    for (text, expected) in [
        ("mongodb://me:secret@h/db", "expected a database and a collection"),
        ("mongodb://me:secret@h/db/", "expected a database and a collection"),
        ("mongodb:///db/c", "expected hosts, here or in MONGODB_URI"),
        ("mongodb://me:secret@h/db/c?version=12", "expected 24 hex digits"),
        ("mongodb://me:secret@h/db/c?key=%zz", "percent signs"),
        ("http://me:secret@h/db/c", "expected mongodb://"),
    ] {
        let error = Address::with_environment(text, None).err().unwrap().to_string();
        assert!(error.contains(expected) && !error.contains("secret"), "{text}: {error}");
    }
}
