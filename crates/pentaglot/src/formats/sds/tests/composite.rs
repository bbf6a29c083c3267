//! Files of several structures, whose type is given.

use pentaglot_succinct::{IntVector, SparseVector, Structure as _, Supports, WaveletCore, WaveletMatrix};

use super::super::type_text::SdsType;
use super::super::{Queried, Query};
use super::*;

const TYPE: &str =
    "sds:{n: u64, index: ?int, a: {name: string, b: ?{wm: wm, core: wmcore}}, rest: [pair], rows: [u64*3]}";

fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A file of [`TYPE`], with its options present or absent.
fn file(is_present: bool) -> Vec<u64> {
    let values = [3, 1, 4, 1, 5, 9, 2, 6];
    let mut words = vec![42];
    let option = |words: &mut Vec<u64>, content: Vec<u64>| {
        words.push(if is_present { content.len() as u64 } else { 0 });
        words.extend(content.into_iter().filter(|_| is_present));
    };
    option(&mut words, IntVector::from_values(5, [7, 1, 3]).unwrap().to_words(Supports::Full));
    words.extend([3, u64::from_le_bytes(*b"abc\0\0\0\0\0")]);
    let mut inner = WaveletMatrix::from_values(&values).unwrap().to_words(Supports::Full);
    inner.extend(WaveletCore::from_values(&values).to_words(Supports::Full));
    option(&mut words, inner);
    words.extend([2, 10, 20, 30, 40]);
    words.extend([2, 1, 2, 3, 4, 5, 6]);
    words
}

fn open_as(words: &[u64], kind: &str, member: Option<&str>) -> Result<Arc<dyn Document>> {
    let mut options = ReadOptions::default();
    options.type_text = Some(kind.to_owned());
    options.member = member.map(str::to_owned);
    Sds.open(Source::from_bytes("x", bytes_of(words)), &options)
}

fn rows(words: &[u64], member: &str) -> Vec<String> {
    let document = open_as(words, TYPE, Some(member)).unwrap();
    let mut rows = Vec::new();
    for batch in document.all_rows().unwrap() {
        let batch = batch.unwrap();
        let cell = |row| arrow_cast::display::array_value_to_string(batch.column(0), row).unwrap();
        rows.extend((0..batch.num_rows()).map(cell));
    }
    assert_eq!(document.summary().rows, Some(rows.len() as u64), "{member}");
    rows
}

#[test]
fn members_are_the_structures_of_the_type() {
    let (full, bare) = (file(true), file(false));
    let names = ["n", "index", "a.name", "a.b.wm", "a.b.core", "rest", "rows"];
    for words in [&full, &bare] {
        let document = open_as(words, TYPE, None).unwrap();
        assert_eq!(document.summary().members, names);
        let covered: u64 = document.summary().parts.iter().map(|part| part.bytes).sum();
        assert_eq!(covered, words.len() as u64 * 8);
        let mut findings = Findings::new(false);
        document.validate(&mut findings).unwrap();
        assert!(findings.is_valid(), "{:?}", findings.list());
        assert_eq!(rows(words, "n"), ["42"]);
        assert_eq!(rows(words, "a.name"), ["abc"]);
        assert_eq!(rows(words, "rest"), ["{_0: 10, _1: 20}", "{_0: 30, _1: 40}"]);
        assert_eq!(rows(words, "rows"), ["[1, 2, 3]", "[4, 5, 6]"]);
    }
    assert_eq!(rows(&full, "index"), ["7", "1", "3"]);
    assert_eq!(rows(&full, "a.b.core"), ["3", "1", "4", "1", "5", "9", "2", "6"]);
    assert_eq!(rows(&bare, "index"), [""; 0]);
    assert_eq!(rows(&bare, "a.b.wm"), [""; 0]);
}

#[test]
fn members_answer_queries() {
    let ask = |words: &[u64], member: &str, question: &str| {
        let kind = Some(TYPE);
        let source = Source::from_bytes("x", bytes_of(words));
        let mapped = Mapped::open_typed(&source, None, kind, None, &Budget::default()).unwrap();
        let queried = Queried::new(&Arc::new(mapped.object), Some(member)).unwrap();
        let query: Query = question.parse().unwrap();
        let mut line = Vec::new();
        queried.answer(&query).unwrap().write_line(&mut line).unwrap();
        String::from_utf8(line).unwrap().trim_end().to_owned()
    };
    let full = file(true);
    for member in ["a.b.wm", "a.b.core"] {
        for (question, answer) in [
            ("rank 4 1", "2"),
            ("select 1 1", "3"),
            ("count 1", "2"),
            ("count 7", "0"),
            ("positions 1", "1 3"),
            ("positions 7", "-"),
            ("range_count 2 8 1", "1"),
            ("range_count 5 2 1", "0"),
            ("quantile 0 8 0", "1"),
            ("quantile 2 6 3", "9"),
            ("quantile 2 6 4", "-"),
            ("get 5", "9"),
            ("inverse_select 3", "1 1"),
            ("pred 2 1", "1"),
            ("succ 2 1", "3"),
            ("len", "8"),
        ] {
            assert_eq!(ask(&full, member, question), answer, "{member}: {question}");
        }
        assert_eq!(ask(&file(false), member, "rank 4 1"), "-");
    }
    assert_eq!(ask(&full, "index", "get 2"), "3");
    assert_eq!(ask(&full, "rows", "get 1"), "4 5 6");
    assert_eq!(ask(&full, "a.name", "get 1"), "98");
    // Raw bits give the same answers as bit vectors.
    let object =
        Object::open(&Source::from_bytes("x", bytes_of(&[70, 2, 0b1011, 1])), Some(SdsKind::Raw), None);
    let queried = Queried::new(&Arc::new(object.unwrap()), None).unwrap();
    for (question, answer) in
        [("rank 3", "2"), ("select 3", "64"), ("count", "4"), ("pred 63", "3"), ("select0 0", "2")]
    {
        let answered = queried.answer(&question.parse().unwrap()).unwrap().into_text();
        assert_eq!(answered.as_deref(), Some(answer), "{question}");
    }
}

#[test]
fn types_and_files_that_do_not_agree_are_errors_with_places() {
    let full = file(true);
    let text = |words: &[u64], kind: &str, member: Option<&str>| {
        let error = open_as(words, kind, member).err().unwrap();
        format!("{:?}: {error}", error.kind())
    };
    let mut wrong = full.clone();
    wrong[1] += 1;
    assert_eq!(
        text(&wrong, TYPE, None),
        "Malformed: at byte 8, index.size: expected 5 elements, as its content has, found 6"
    );
    let mut long = full.clone();
    long.push(0);
    assert_eq!(
        text(&long, TYPE, None),
        format!(
            "Malformed: at byte {}: expected the end of the last structure, found 1 more elements",
            full.len() * 8
        )
    );
    let cut = text(&full[..full.len() - 1], TYPE, None);
    assert!(cut.starts_with("Truncated: at byte") && cut.contains("rows"), "{cut}");
    assert!(text(&full, TYPE, Some("a")).contains("there is no member \"a\""));
    for (kind, message) in [
        ("sds:{n: u65}", "at byte 4: expected"),
        ("sds:{n: u64, n: u64}", "at byte 9: expected a name that is not there yet"),
        ("sds:[u64*0]", "at byte 5: expected a number of elements from 1 on"),
        ("sds:??int", "at byte 1: expected a type that is not an option itself"),
        ("sds:{n: u64", "expected '}', found the end of the type"),
        ("sds:{}", "expected a name"),
        ("sds:u64 int", "expected the end of the type, found \"int\""),
    ] {
        let found = text(&full, kind, None);
        assert!(found.starts_with("Usage: the given type: ") && found.contains(message), "{kind}: {found}");
    }
    let mut options = ReadOptions::default();
    options.type_text = Some("sds:int".to_owned());
    options.dialect = Some("int".to_owned());
    let both = Sds.open(Source::from_bytes("x", bytes_of(&full)), &options).err().unwrap();
    assert_eq!(both.kind(), ErrorKind::Usage);
}

#[test]
fn types_print_as_they_are_parsed() {
    let limits = crate::limits::Limits::default();
    for (text, canonical) in [
        (" { n :u64 , index: ? int,} ", "{n: u64, index: ?int}"),
        ("[ u64 * 2 ]", "[pair]"),
        ("[u64*1]", "[u64]"),
        ("?{a: [u64*7], b: {c: rlwm}}", "?{a: [u64*7], b: {c: rlwm}}"),
    ] {
        let kind = SdsType::parse_within(text, &limits).unwrap();
        assert_eq!(kind.to_string(), canonical);
        assert_eq!(SdsType::parse_within(canonical, &limits).unwrap(), kind);
    }
    let deep = "?{a:".repeat(500) + "u64" + &"}".repeat(500);
    assert_eq!(SdsType::parse_within(&deep, &limits).unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn damaged_files_of_several_structures_never_panic() {
    let bytes = bytes_of(&file(true));
    for at in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        let mut options = ReadOptions::default();
        options.type_text = Some(TYPE.to_owned());
        for member in ["index", "a.b.wm", "a.b.core"] {
            options.member = Some(member.to_owned());
            let Ok(document) = Sds.open(Source::from_bytes("x", bytes.clone()), &options) else { continue };
            let Ok(rows) = document.all_rows() else { continue };
            rows.take_while(|batch| batch.is_ok()).for_each(drop);
        }
    }
}

#[test]
fn reading_has_its_own_errors() {
    // One of the high bits is missing, and a position is past the universe.
    let sparse = SparseVector::from_sorted(1000, &[3, 500, 900]).unwrap().to_words(Supports::Lean);
    let mut fewer = sparse.clone();
    let high = fewer.iter().position(|word| word.count_ones() == 3 && *word > 7).unwrap();
    fewer[high] &= fewer[high] - 1;
    let mut past = sparse;
    past[0] = 899;
    for (words, expected) in [
        (fewer, "high: expected 3 more items, found 2"),
        (past, "expected a position from 500 to below 899, found 900"),
    ] {
        let Ok(document) = open(bytes_of(&words), Some(SdsKind::Sparse)) else { continue };
        let error = document.all_rows().unwrap().find_map(|batch| batch.err()).unwrap();
        assert!(error.to_string().contains(expected), "{error}");
    }
}
