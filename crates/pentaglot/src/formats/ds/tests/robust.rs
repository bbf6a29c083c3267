//! Truncation at every byte and single-bit flips: never a panic, never a lost row.

use super::*;
use crate::error::ErrorKind;
use crate::formats::Findings;
use crate::testing::asked::Asked;

fn try_everything(bytes: &[u8]) -> Result<()> {
    let document = open(bytes, &[("lenient", "true"), ("images", "decode")])?;
    let rows = collect(document.as_ref(), &Asked::default());
    document.validate(&mut Findings::new(true))?;
    let mut nodes = vec![document.outline()];
    while let Some(node) = nodes.pop() {
        if let Some(parts) = &node.parts {
            nodes.extend(parts.nodes(0).take(50).filter_map(Result::ok));
        }
    }
    rows.map(drop)
}

#[test]
fn a_stream_cut_anywhere_is_an_error_unless_it_ends_between_two_rows() {
    let golden = golden();
    for vector in list(&golden, "golden") {
        let bytes = unhex(vector["msgpack_go"].as_str().unwrap_or(vector["msgpack"].as_str().unwrap()));
        let minimal = unhex(vector["msgpack"].as_str().unwrap());
        for bytes in [bytes, minimal] {
            for cut in 0..bytes.len() {
                let result = read(&bytes[..cut], &[]);
                if let Ok(batch) = &result {
                    // Only a table may end early, between two rows: writing it gives the same bytes.
                    assert!(vector["type"].as_str().unwrap().contains("\"type\":\"tabular\""));
                    assert!(write(batch, "msgpack-fixed", &[]).unwrap().len() >= cut);
                    let again = write(batch, "msgpack", &[]).unwrap();
                    assert!(through(&bytes[..cut], "msgpack").unwrap() == again);
                }
                let _ = try_everything(&bytes[..cut]);
            }
        }
    }
}

#[test]
fn a_json_bundle_cut_anywhere_is_an_error() {
    let golden = golden();
    for vector in list(&golden, "golden") {
        let Some(text) = vector["json"].as_str() else { continue };
        for cut in (0..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            assert!(read(&text.as_bytes()[..cut], &[("dialect", "json")]).is_err(), "{cut} of {text}");
            let _ = try_everything(&text.as_bytes()[..cut]);
        }
    }
}

#[test]
fn single_bit_flips_never_panic_or_allocate_much() {
    let golden = golden();
    for vector in list(&golden, "golden").iter().step_by(3) {
        let mut files = vec![unhex(vector["msgpack"].as_str().unwrap())];
        files.extend(vector["json"].as_str().map(|text| text.as_bytes().to_vec()));
        for file in files.iter().filter(|file| file.len() < 130) {
            for bit in 0..file.len() * 8 {
                let mut flipped = file.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                if let Err(error) = try_everything(&flipped) {
                    assert!(
                        !matches!(error.kind(), ErrorKind::Io | ErrorKind::Usage),
                        "{error} for {}",
                        hex(&flipped)
                    );
                }
            }
        }
    }
}

/// Returns three bytes at a time.
struct Drip(std::io::Cursor<Vec<u8>>);

impl std::io::Read for Drip {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = buffer.len().min(3);
        self.0.read(&mut buffer[..len])
    }
}

#[test]
fn streams_give_what_files_give() {
    let golden = golden();
    for vector in list(&golden, "golden") {
        let bytes = unhex(vector["msgpack"].as_str().unwrap());
        let source = Source::from_reader("stream", Drip(std::io::Cursor::new(bytes.clone())));
        let document = Ds.open(source, &ReadOptions::default()).unwrap();
        let batches = collect(document.as_ref(), &Asked::default()).unwrap();
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        let expected = read(&bytes, &[]).unwrap();
        assert_eq!(rows, expected.num_rows());
        if rows > 0 {
            let all = arrow_select::concat::concat_batches(&expected.schema(), &batches).unwrap();
            assert_eq!(write(&all, "msgpack", &[]).unwrap(), bytes);
        }
    }
}
