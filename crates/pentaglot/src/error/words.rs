//! The words of messages: how values, bytes, lists and paths are quoted, and what errors of other crates become.

use std::fmt;

use super::Error;

/// Characters of a value that a message quotes.
const EXCERPT: usize = 200;

/// A value as a message quotes it: cut if it is long.
pub(crate) fn excerpt(value: impl fmt::Display) -> String {
    let mut text = value.to_string();
    if let Some((end, _)) = text.char_indices().nth(EXCERPT) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Bytes as a message quotes them: `50 41 52 31`.
pub(crate) fn hex(bytes: &[u8]) -> String {
    match bytes {
        [] => "no bytes".to_owned(),
        bytes => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "),
    }
}

/// What decoders of other crates put before their messages.
const PREFIXES: [&str; 8] = [
    "Parquet error: ",
    "Parquet argument error: ",
    "Invalid argument error: ",
    "Ipc error: ",
    "Arrow: ",
    "External: ",
    "EOF: ",
    "eof ",
];

/// The error for bytes that a decoder of another crate refuses: what is expected and found is said in our words, its
/// message is only the detail.
#[cold]
pub(crate) fn undecodable(message: &str) -> Error {
    let lower = message.to_ascii_lowercase();
    if lower.contains("utf-8") || lower.contains("invalid utf8") {
        return Error::malformed("UTF-8", "other bytes");
    }
    let mut detail = message.lines().next().unwrap_or_default();
    while let Some(rest) = PREFIXES.iter().find_map(|prefix| detail.strip_prefix(prefix)) {
        detail = rest;
    }
    let detail = detail.trim().trim_end_matches('.');
    let mut letters = detail.chars();
    let detail = match letters.next() {
        // An abbreviation keeps its capitals.
        Some(first) if !letters.as_str().starts_with(char::is_uppercase) => {
            format!(" ({}{})", first.to_lowercase(), letters.as_str())
        }
        Some(_) => format!(" ({detail})"),
        None => String::new(),
    };
    Error::malformed("content that decodes", format_args!("damaged bytes{detail}"))
}

/// `1 row`, `2 rows`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Names as a message lists them: the first few, and how many more there are.
pub(crate) fn list(names: impl IntoIterator<Item = impl fmt::Display>) -> String {
    const SHOWN: usize = 12;
    let mut shown = Vec::new();
    let mut more = 0usize;
    for name in names {
        if shown.len() < SHOWN {
            let name = name.to_string();
            shown.push(if name.len() > 60 { name.chars().take(40).chain(['…']).collect() } else { name });
        } else {
            more += 1;
        }
    }
    let text = shown.join(", ");
    if more == 0 { text } else { format!("{text} and {more} more") }
}

/// Characters of a path that a message shows.
const PATH: usize = 160;

/// A path as a message shows it: of a long one, such as that of deeply nested lists, the beginning and the end.
pub(super) fn shortened(path: String) -> String {
    let count = path.chars().count();
    if count <= PATH {
        return path;
    }
    let (start, end) = (path.chars().take(PATH / 2), path.chars().skip(count - PATH / 4));
    start.chain(['…']).chain(end).collect()
}

/// What an I/O error says. Readers of text report other bytes as one.
pub(super) fn io_words(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::InvalidData if error.to_string().contains("UTF-8") => {
            "expected UTF-8, found other bytes".to_owned()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::ArrowError;

    use super::*;

    #[test]
    fn long_values_lists_and_paths_are_cut() {
        let error = Error::malformed("a number", "ä".repeat(300));
        assert_eq!(error.message().chars().count(), "expected a number, found ".len() + 201);
        assert_eq!(list(["a", "b"]), "a, b");
        assert!(list(0..1000).ends_with(", 10, 11 and 988 more"));
        assert!(list(["x".repeat(1000)]).len() < 60);
        let deep = (0..200).fold(Error::usage("x"), |error, _| error.index(0)).field("a");
        assert_eq!(deep.path().len(), 601);
        assert!(deep.to_string().starts_with("a[0][0]") && deep.to_string().ends_with("[0][0]: x"));
        assert_eq!(deep.to_string().chars().count(), PATH / 2 + 1 + PATH / 4 + ": x".len());
    }

    #[test]
    fn bytes_are_quoted_in_hexadecimal() {
        assert_eq!(hex(b"PAR1"), "50 41 52 31");
        assert_eq!(hex(&[]), "no bytes");
    }

    #[test]
    fn messages_of_other_decoders_are_a_detail() {
        for (message, expected) in [
            ("Parquet error: Unexpected Encoding -1656", "damaged bytes (unexpected Encoding -1656)"),
            (
                "Parquet argument error: External: Src size is incorrect.\nmore",
                "damaged bytes (src size is incorrect)",
            ),
            ("EOF: ", "damaged bytes"),
            ("LZ4 block", "damaged bytes (LZ4 block)"),
        ] {
            assert_eq!(
                undecodable(message).to_string(),
                format!("expected content that decodes, found {expected}")
            );
        }
        let error = undecodable("invalid utf-8 sequence of 1 bytes from index 57");
        assert_eq!(error.to_string(), "expected UTF-8, found other bytes");
        let error = Error::from(ArrowError::InvalidArgumentError("x".to_owned()));
        assert_eq!(error.to_string(), "expected content that decodes, found damaged bytes (x)");
    }

    #[test]
    fn text_that_is_not_utf_8_is_called_so() {
        let error = std::io::read_to_string(&b"\xff"[..]).unwrap_err();
        assert_eq!(
            Error::io("cannot read", error).to_string(),
            "cannot read: expected UTF-8, found other bytes"
        );
    }
}
