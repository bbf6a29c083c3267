//! Rules for all messages of the library.

mod tree;

use std::fs;
use std::path::{Path, PathBuf};

use pentaglot::{Context, Error, ErrorKind, Hint};

#[test]
fn unsupported_errors_begin_alike() {
    let error = Error::unsupported("big-endian data");
    assert_eq!(error.to_string(), "not supported: big-endian data");
    // The message of one such error may be that of another.
    assert_eq!(Error::unsupported(error.message()).message(), "not supported: big-endian data");
    let wrong = literals("Error::new(ErrorKind::Unsupported");
    assert!(wrong.iter().all(|(file, _)| file.ends_with("error.rs")), "{wrong:?}");
}

#[test]
fn limits_say_what_is_needed_in_numbers() {
    let error = Error::limit("the limit", 7, "4294967295 elements per row");
    assert_eq!(error.to_string(), "needs 4294967295 elements per row, the limit is 7");
    assert_eq!((error.kind(), error.advice()), (ErrorKind::Limit, None));
    assert_eq!(Error::limit("max-alloc", 7, "9 bytes").advice(), Some(&Hint::Limit("max-alloc")));
    // `needed` is a quantity: no verb is left over from a sentence around it.
    for (file, call) in literals("Error::limit(") {
        assert!(!call.contains(" are\"") && !call.contains(" is\""), "{}: {call}", file.display());
    }
}

#[test]
fn system_errors_keep_the_words_of_the_system() {
    for code in 1..=133 {
        let words = std::io::Error::from_raw_os_error(code).to_string();
        let from_code = || std::io::Error::from_raw_os_error(code);
        let errors = [
            Error::io("cannot open", from_code()),
            Error::from(from_code()),
            Error::from(std::io::Error::from(Error::from(from_code()))),
            Err::<(), _>(from_code()).in_format("csv").unwrap_err(),
        ];
        for error in errors {
            let text = error.to_string();
            assert!(text.contains(&words) && !text.contains("uncategorized"), "{code}: {text}");
        }
    }
}

#[test]
fn the_library_names_no_flags() {
    let mut wrong = Vec::new();
    for (file, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("//") {
                continue;
            }
            // Every other piece between quotes is text.
            for literal in line.split('"').skip(1).step_by(2) {
                if names_a_flag(literal) {
                    wrong.push(format!("{}:{}: {literal}", file.display(), number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether a message speaks of `--flag` or `-O key`.
fn names_a_flag(text: &str) -> bool {
    text.contains("-O ")
        || text.match_indices("--").any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + 2..].chars().next();
            before.is_none_or(|c| c == ' ' || c == '(' || c == '`')
                && after.is_some_and(|c| c.is_ascii_lowercase())
        })
}

#[test]
fn flags_are_recognised() {
    assert!(names_a_flag("--force replaces it") && names_a_flag("try (--to csv)") && names_a_flag("-O a=b"));
    assert!(!names_a_flag("2024-01-02") && !names_a_flag("a--b") && !names_a_flag("---"));
}

/// The calls of `name` in the library's code, with their arguments.
fn literals(name: &str) -> Vec<(PathBuf, String)> {
    let mut calls = Vec::new();
    for (file, text) in sources() {
        for (at, _) in text.match_indices(name) {
            let rest = &text[at..];
            let mut depth = 0;
            let end = rest.find(|c| {
                depth += i32::from(c == '(') - i32::from(c == ')');
                c == ')' && depth == 0
            });
            calls.push((file.clone(), rest[..end.unwrap_or(rest.len())].to_owned()));
        }
    }
    assert!(!calls.is_empty(), "no call of {name}");
    calls
}

/// The files of the library without tests, and their text.
fn sources() -> Vec<(PathBuf, String)> {
    let source = tree::source();
    let is_test = |file: &Path| {
        file.components()
            .any(|step| ["tests", "testing", "tests.rs"].iter().any(|name| step.as_os_str() == *name))
    };
    let files = tree::rust_files(&source).into_iter();
    let files = files
        .map(|file| (file.strip_prefix(&source).unwrap().to_owned(), fs::read_to_string(&file).unwrap()));
    let code = |text: String| text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned();
    files.filter(|(file, _)| !is_test(file)).map(|(file, text)| (file, code(text))).collect()
}
