//! Images as files of a folder, and back.

use std::path::Path;

use super::*;

/// A bundle of Pillow's files of one size, with a null, and its type.
fn bundle(names: &[&str], format: &str) -> (Vec<u8>, String) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/ds/images.json");
    let found: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let all = found["images"].as_array().unwrap();
    let files: Vec<&serde_json::Value> =
        names.iter().map(|name| all.iter().find(|one| one["name"] == **name).unwrap()).collect();
    let components: serde_json::Map<String, serde_json::Value> = files[0]["channels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|channel| (channel.as_str().unwrap().to_owned(), serde_json::json!({"componentType": "uint8"})))
        .collect();
    let image = serde_json::json!({"type": "image", "width": files[0]["width"], "height": files[0]["height"],
        "components": components, "format": format});
    let kind =
        serde_json::json!({"columns": {"n": "int64", "img": {"type": "nullable", "underlying": image}}});
    let mut rows: Vec<serde_json::Value> =
        files.iter().enumerate().map(|(row, one)| serde_json::json!([row, one["file"]])).collect();
    rows.push(serde_json::json!([rows.len(), null]));
    (serde_json::json!({"type": kind, "value": rows}).to_string().into_bytes(), kind.to_string())
}

fn run(
    bytes: &[u8],
    from: &str,
    to: &str,
    options: &[(&str, &str)],
    wanted: Option<&str>,
) -> Result<Vec<u8>> {
    let registry = Registry::default();
    let mut convert = ConvertOptions::default();
    convert.open.from = Some(from.to_owned());
    options.iter().for_each(|(key, value)| convert.open.options.set(*key, *value));
    convert.as_type = wanted.map(str::to_owned);
    let opened = open_source(&registry, Source::from_bytes("data", bytes.to_vec()), None, &convert.open)?;
    let conversion = Conversion::plan_opened(opened, target(&registry, to)?, None, &convert)?;
    let (sink, memory) = Sink::memory();
    conversion.run_into(sink)?;
    Ok(memory.take())
}

fn entries(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn images_become_files_and_come_back() {
    let place = tempfile::tempdir().unwrap();
    for (names, format, extension) in
        [(&["rgb", "palette of 4 bits"][..], "png", "png"), (&["jpeg", "jpeg progressive"], "jpeg", "jpg")]
    {
        let (bytes, kind) = bundle(names, format);
        let folder = place.path().join(format);
        let option = [("image-files", folder.to_str().unwrap())];
        let table = run(&bytes, "ds", "jsonl", &option, None).unwrap();
        let line = |row: usize| format!("{{\"n\":{row},\"img\":\"00000{row}.{extension}\"}}\n");
        let expected = format!("{}{}{{\"n\":2,\"img\":null}}\n", line(0), line(1));
        assert_eq!(String::from_utf8(table.clone()).unwrap(), expected);
        assert_eq!(entries(&folder), [format!("000000.{extension}"), format!("000001.{extension}")]);
        // Detected from the files, and with a type given.
        let original = run(&bytes, "ds", "ds:msgpack", &[], None).unwrap();
        assert_eq!(run(&table, "jsonl", "ds:msgpack", &option, Some(&kind)).unwrap(), original);
        let found = run(&table, "jsonl", "ds:msgpack", &option, None).unwrap();
        assert_eq!(run(&found, "ds", "ds:msgpack", &[], Some(&kind)).unwrap(), original);
        // A plain type decodes the files, and plain images become PNG files.
        let plain = kind.replace(&format!("\"format\":{format:?}"), "\"format\":\"plain\"");
        let decoded = run(&table, "jsonl", "ds:msgpack", &option, Some(&plain)).unwrap();
        assert_eq!(decoded, run(&bytes, "ds", "ds:msgpack", &[("images", "decode")], None).unwrap());
        let other = place.path().join(format!("{format}-plain"));
        let option = [("image-files", other.to_str().unwrap())];
        let names = run(&decoded, "ds", "ds:json", &option, None).unwrap();
        assert_eq!(entries(&other), ["000000.png", "000001.png"]);
        assert_eq!(run(&names, "ds", "ds:msgpack", &option, Some(&plain)).unwrap(), decoded);
    }
}

#[test]
fn a_folder_appears_whole_or_not_at_all() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("f");
    let option = [("image-files", folder.to_str().unwrap())];
    let (bytes, _) = bundle(&["rgb", "rgba"], "png");
    // The second image of the file is truncated, which only its reader detects.
    let text = String::from_utf8(bytes.clone()).unwrap();
    let last = text.rfind("iVBOR").unwrap();
    let broken = format!("{}!{}", &text[..last], &text[last..]);
    assert!(run(broken.as_bytes(), "ds", "jsonl", &option, None).is_err());
    assert_eq!(entries(place.path()), [""; 0]);
    // Existing files are unchanged.
    std::fs::create_dir(&folder).unwrap();
    run(&bytes, "ds", "jsonl", &option, None).unwrap();
    let before = entries(&folder);
    let error = run(&bytes, "ds", "jsonl", &option, None).unwrap_err();
    assert!(error.to_string().contains("expected a folder that does not exist or is empty"), "{error}");
    assert_eq!(entries(&folder), before);
    assert_eq!(entries(place.path()), ["f"]);
}

#[test]
fn names_stay_in_their_folder() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("f");
    let option = [("image-files", folder.to_str().unwrap())];
    let (bytes, kind) = bundle(&["rgb"], "png");
    run(&bytes, "ds", "jsonl", &option, None).unwrap();
    std::fs::copy(folder.join("000000.png"), place.path().join("outside.png")).unwrap();
    std::fs::create_dir(folder.join("below")).unwrap();
    std::fs::copy(folder.join("000000.png"), folder.join("below").join("x.png")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(place.path().join("outside.png"), folder.join("link.png")).unwrap();
    let import = |name: &str| {
        let table = format!("{}\n", serde_json::json!({"n": 1, "img": name}));
        run(table.as_bytes(), "jsonl", "ds:msgpack", &option, Some(&kind))
    };
    import("below/x.png").unwrap();
    let outside = place.path().join("outside.png");
    for name in [
        "../outside.png",
        "below/../../outside.png",
        outside.to_str().unwrap(),
        "link.png",
        "",
        ".",
        "below",
        "a\0b",
        "none.png",
    ] {
        if name == "link.png" && cfg!(not(unix)) {
            continue;
        }
        let error = import(name).unwrap_err();
        assert!(error.to_string().contains("row 0, column \"img\""), "{name:?}: {error}");
    }
    // A file that is not an image of the type.
    std::fs::write(folder.join("text.png"), "hello").unwrap();
    assert_eq!(import("text.png").unwrap_err().kind(), crate::ErrorKind::Malformed);
}
