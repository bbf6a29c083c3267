//! PNG to plain and back.

use super::*;
use crate::error::ErrorKind;
use crate::formats::Findings;

fn image_type(width: u32, height: u32, components: &[(&str, &str)], format: &str) -> Value {
    let components: serde_json::Map<String, Value> = components
        .iter()
        .map(|(name, kind)| ((*name).to_owned(), serde_json::json!({"componentType": kind})))
        .collect();
    serde_json::json!({"type": "image", "width": width, "height": height, "components": components, "format": format})
}

fn png(width: u32, height: u32, color: png::ColorType, depth: png::BitDepth, data: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(color);
    encoder.set_depth(depth);
    if color == png::ColorType::Indexed {
        encoder.set_palette(vec![0, 0, 0, 255, 255, 255]);
    }
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(data).unwrap();
    writer.finish().unwrap();
    file
}

fn bundle(kind: &Value, images: &[&[u8]]) -> Vec<u8> {
    let rows: Vec<Value> = images
        .iter()
        .map(|bytes| serde_json::json!([base64_simd::STANDARD.encode_to_string(bytes)]))
        .collect();
    serde_json::json!({"type": {"columns": {"i": kind}}, "value": rows}).to_string().into_bytes()
}

fn decoded(kind: &Value, file: &[u8]) -> Result<Vec<u8>> {
    use arrow_array::cast::AsArray;
    let batch = read(&bundle(kind, &[file]), &[("images", "decode")])?;
    Ok(batch.column(0).as_binary::<i32>().value(0).to_vec())
}

#[test]
fn png_samples_become_plain_components() {
    use png::BitDepth::{Eight, Sixteen};
    use png::ColorType::{Grayscale, Rgb};
    let grey = png(3, 1, Grayscale, Eight, &[0, 128, 255]);
    assert_eq!(decoded(&image_type(3, 1, &[("black", "uint8")], "png"), &grey).unwrap(), [0, 128, 255]);
    let wide = image_type(3, 1, &[("black", "uint32")], "png");
    assert_eq!(decoded(&wide, &grey).unwrap(), [0, 0, 0, 0, 0, 0, 0, 128, 0, 0, 0, 255]);
    let grey = png(2, 1, Grayscale, Sixteen, &[1, 2, 0xff, 0xfe]);
    let wide = image_type(2, 1, &[("black", "uint32")], "png");
    assert_eq!(decoded(&wide, &grey).unwrap(), [0, 0, 1, 2, 0, 0, 0xff, 0xfe]);
    let colour = png(1, 2, Rgb, Eight, &[1, 2, 3, 4, 5, 6]);
    let rgb = [("red", "uint8"), ("green", "uint8"), ("blue", "uint8")];
    assert_eq!(decoded(&image_type(1, 2, &rgb, "png"), &colour).unwrap(), [1, 2, 3, 4, 5, 6]);
    let bgr = [("blue", "uint8"), ("green", "uint8"), ("red", "uint8")];
    assert_eq!(decoded(&image_type(1, 2, &bgr, "png"), &colour).unwrap(), [3, 2, 1, 6, 5, 4]);
}

#[test]
fn what_a_plain_image_cannot_be_is_refused() {
    use png::BitDepth::{Eight, One, Sixteen};
    use png::ColorType::{Grayscale, Indexed, Rgb, Rgba};
    let black = image_type(2, 1, &[("black", "uint8")], "png");
    let refuse = |file: Vec<u8>| {
        let error = decoded(&black, &file).unwrap_err();
        (error.kind(), error.rule_name())
    };
    let wrong = (ErrorKind::Malformed, "image_size");
    assert_eq!(refuse(png(2, 1, Rgba, Eight, &[0; 8])), wrong);
    assert_eq!(refuse(png(2, 1, Indexed, Eight, &[0, 1])), wrong);
    assert_eq!(refuse(png(1, 2, Grayscale, Eight, &[0; 2])), wrong);
    assert_eq!(refuse(png(2, 1, Rgb, Eight, &[0; 6])), wrong);
    assert_eq!(refuse(png(2, 1, Grayscale, Sixteen, &[0; 4])), wrong);
    let mut broken = png(2, 1, Grayscale, Eight, &[0; 2]);
    let middle = broken.len() - 20;
    broken[middle] ^= 0xff;
    assert_eq!(refuse(broken), wrong);
    // One bit is scaled to eight, as PNG requires.
    assert_eq!(decoded(&black, &png(2, 1, Grayscale, One, &[0b0100_0000])).unwrap(), [0, 255]);
    let float = image_type(2, 1, &[("black", "float32")], "png");
    assert_eq!(decoded(&float, &png(2, 1, Grayscale, Eight, &[0, 2])).unwrap(), [0, 0, 0, 0, 0x40, 0, 0, 0]);
    // No sample of 8 bits fits.
    let narrow = image_type(2, 1, &[("black", "int8")], "png");
    assert_eq!(
        decoded(&narrow, &png(2, 1, Grayscale, Eight, &[0; 2])).unwrap_err().kind(),
        ErrorKind::Unsupported
    );
}

#[test]
fn decoded_images_are_written_plain_and_plain_ones_png() {
    let rgb = [("green", "uint8"), ("red", "uint8"), ("blue", "uint8")];
    let file = png(1, 1, png::ColorType::Rgb, png::BitDepth::Eight, &[1, 2, 3]);
    let packed = bundle(&image_type(1, 1, &rgb, "png"), &[&file]);
    let decode = [("images", "decode")];
    // As in a conversion of the file: the option applies to both sides.
    let batch = read(&packed, &decode).unwrap();
    let plain = write(&batch, "json", &decode).unwrap();
    assert_eq!(plain, bundle_text(&image_type(1, 1, &rgb, "plain"), &[2, 1, 3]));
    // And back.
    let batch = read(&plain, &decode).unwrap();
    let again = write(&batch, "json", &decode).unwrap();
    let batch = read(&again, &decode).unwrap();
    assert_eq!(write(&batch, "json", &[]).unwrap(), plain);
    assert!(String::from_utf8(again).unwrap().contains(r#""format":"png""#));
    // 16 bits.
    let wide = bundle(&image_type(1, 1, &[("black", "uint32")], "plain"), &[&[0, 0, 9, 8]]);
    let packed = write(&read(&wide, &[]).unwrap(), "json", &[("images", "encode")]).unwrap();
    let batch = read(&packed, &decode).unwrap();
    assert_eq!(
        write(&batch, "json", &[]).unwrap(),
        bundle_text(&image_type(1, 1, &[("black", "uint32")], "plain"), &[0, 0, 9, 8])
    );
    let large = bundle(&image_type(1, 1, &[("black", "uint32")], "plain"), &[&[0, 1, 0, 0]]);
    let error = write(&read(&large, &[]).unwrap(), "json", &[("images", "encode")]).unwrap_err();
    assert_eq!(error.to_string(), r#"ds: row 0, column "i": a sample above 65535 does not fit a PNG image"#);
}

fn bundle_text(kind: &Value, bytes: &[u8]) -> Vec<u8> {
    let kind = serde_json::json!({"type": "tabular", "columns": {"i": kind}});
    serde_json::json!({"type": kind, "value": [[base64_simd::STANDARD.encode_to_string(bytes)]]})
        .to_string()
        .into_bytes()
}

#[test]
fn jpeg_is_carried_and_its_signature_checked() {
    let kind = image_type(1, 1, &[("black", "uint8")], "jpeg");
    let sound = bundle(&kind, &[&[0xff, 0xd8, 1, 2, 3]]);
    let batch = read(&sound, &[]).unwrap();
    assert_eq!(read(&write(&batch, "msgpack", &[]).unwrap(), &[]).unwrap(), batch);
    assert_eq!(read(&bundle(&kind, &[&[1, 2]]), &[]).unwrap_err().rule_name(), "image_size");
}

#[test]
fn validate_compares_png_images_with_their_type() {
    use png::BitDepth::{Eight, Sixteen};
    use png::ColorType::{Grayscale, Indexed, Rgb, Rgba};
    let rules = |kind: &Value, file: Vec<u8>| {
        let document =
            Ds.open(Source::from_bytes("x.ds.json", bundle(kind, &[&file])), &ReadOptions::default());
        let mut findings = Findings::new(false);
        document.unwrap().validate(&mut findings).unwrap();
        findings.list().iter().map(|finding| finding.rule.clone()).collect::<Vec<_>>()
    };
    let black = image_type(2, 1, &[("black", "uint8")], "png");
    let rgb = [("red", "uint8"), ("green", "uint8"), ("blue", "uint8")];
    let colour = image_type(2, 1, &rgb, "png");
    let sound = png(2, 1, Grayscale, Eight, &[0; 2]);
    let mut broken = sound.clone();
    let middle = broken.len() - 20;
    broken[middle] ^= 0xff;
    for (kind, file) in [
        (&black, sound.clone()),
        (&colour, png(2, 1, Rgb, Eight, &[0; 6])),
        (&colour, png(2, 1, Rgba, Eight, &[0; 8])),
        (&colour, png(2, 1, Indexed, Eight, &[0, 1])),
    ] {
        assert_eq!(rules(kind, file), [""; 0]);
    }
    for (kind, file) in [
        (&black, png(1, 2, Grayscale, Eight, &[0; 2])),
        (&black, png(2, 1, Rgb, Eight, &[0; 6])),
        (&black, png(2, 1, Grayscale, Sixteen, &[0; 4])),
        (&black, sound[..sound.len() - 16].to_vec()),
        (&black, broken),
        (&colour, sound.clone()),
    ] {
        assert_eq!(rules(kind, file), ["image_size"]);
    }
}

/// Files that Pillow wrote, and the samples that it reads from them.
fn pillow() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/ds/images.json");
    let found: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    list(&found, "images").to_vec()
}

fn pillow_type(one: &Value, component: &str) -> Value {
    let channels: Vec<(&str, &str)> =
        list(one, "channels").iter().map(|channel| (channel.as_str().unwrap(), component)).collect();
    let size = |key: &str| u32::try_from(one[key].as_u64().unwrap()).unwrap();
    image_type(size("width"), size("height"), &channels, one["format"].as_str().unwrap())
}

fn pillow_file(one: &Value) -> Vec<u8> {
    base64_simd::STANDARD.decode_to_vec(one["file"].as_str().unwrap()).unwrap()
}

#[test]
fn files_of_pillow_are_decoded_as_pillow_decodes_them() {
    let all = pillow();
    assert!(all.len() > 15);
    for one in &all {
        let name = one["name"].as_str().unwrap();
        let component = one["component"].as_str().unwrap();
        let plain = decoded(&pillow_type(one, component), &pillow_file(one));
        let plain = plain.unwrap_or_else(|error| panic!("{name}: {error}"));
        let width = if component == "uint32" { 4 } else { 1 };
        let found = plain
            .chunks_exact(width)
            .map(|sample| sample.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte)));
        let tolerance = one["tolerance"].as_u64().unwrap();
        let expected = list(one, "samples").iter().map(|sample| sample.as_u64().unwrap());
        assert_eq!(found.len(), expected.len(), "{name}");
        for (index, (found, expected)) in found.zip(expected).enumerate() {
            assert!(found.abs_diff(expected) <= tolerance, "{name}, sample {index}: {found} {expected}");
        }
        // Wider components hold the same numbers.
        let wide = decoded(&pillow_type(one, "float64"), &pillow_file(one)).unwrap();
        let wide = wide.as_chunks::<8>().0.iter().map(|number| f64::from_be_bytes(*number));
        let narrow = plain
            .chunks_exact(width)
            .map(|sample| f64::from(sample.iter().fold(0u32, |number, byte| number << 8 | u32::from(*byte))));
        assert!(wide.eq(narrow), "{name}");
    }
}

#[test]
fn damaged_files_are_errors_and_cost_nothing() {
    let names = ["rgba", "palette of 4 bits", "jpeg subsampled", "jpeg progressive"];
    for one in pillow().iter().filter(|one| names.contains(&one["name"].as_str().unwrap())) {
        let (kind, file) = (pillow_type(one, "uint8"), pillow_file(one));
        for end in (0..file.len()).step_by(7) {
            let error = decoded(&kind, &file[..end]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed, "{} cut at {end}: {error}", one["name"]);
        }
        for place in 0..file.len() {
            let mut flipped = file.clone();
            flipped[place] ^= 1 << (place % 8);
            // Some bits only change a colour.
            let _ = decoded(&kind, &flipped);
        }
    }
    // A small file that claims many pixels.
    let one = pillow().into_iter().find(|one| one["name"] == "jpeg").unwrap();
    let mut file = pillow_file(&one);
    let frame = file.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    file[frame + 5..frame + 9].copy_from_slice(&[0xff; 4]);
    let rgb = [("red", "uint8"), ("green", "uint8"), ("blue", "uint8")];
    let error = decoded(&image_type(65535, 65535, &rgb, "jpeg"), &file).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    let error = decoded(&pillow_type(&one, "uint8"), &file).unwrap_err();
    assert!(error.to_string().contains("expected an image of 24 x 16 pixels"), "{error}");
}

#[test]
fn what_png_cannot_hold_is_refused_by_the_plan() {
    let mixed = [("red", "uint8"), ("green", "uint8"), ("blue", "uint32")];
    for components in [&[("black", "float32")][..], &[("black", "int32")], &[("red", "uint8")], &mixed] {
        let kind = crate::formats::ds::Type::parse(
            &serde_json::json!({"columns": {"i": image_type(2, 1, components, "plain")}}).to_string(),
        );
        let schema = Arc::new(kind.unwrap().to_schema().unwrap());
        let plan = Ds.plan(&schema, &write_options("msgpack", &[("images", "encode")])).unwrap();
        assert_eq!(plan.plan().verdict(), crate::hub::Verdict::Impossible, "{components:?}");
    }
}
