//! Containers of pangenome programs: those of our generator, and those of other programs if they are available.

use gbz::{GBZ, Orientation};
use simple_sds::serialize::Serialize as _;

use super::*;

/// The containers of `testdata/make_containers.py`, and those of other programs if they are available.
fn containers() -> Vec<(PathBuf, SdsKind)> {
    let own = root().join("testdata/sds");
    let folders = [fs::read_dir(own), fs::read_dir(root().join("../shared/vectors/sds-real"))];
    let paths = folders.into_iter().flatten().flatten().map(|entry| entry.unwrap().path());
    let kind = |path: &Path| match path.extension()?.to_str()? {
        "gbz" => Some(SdsKind::Gbz),
        "gbwt" => Some(SdsKind::Gbwt),
        "gg" => Some(SdsKind::Gg),
        "meta" => Some(SdsKind::GbwtMeta),
        "chains" => Some(SdsKind::Chains),
        _ => None,
    };
    let all: Vec<_> = paths.filter_map(|path| kind(&path).map(|kind| (path, kind))).collect();
    assert!(all.len() >= 5);
    all
}

#[test]
fn pangenome_files_are_walked_to_the_last_byte() {
    for (path, kind) in containers() {
        let document = Sds.open(Source::open(&path).unwrap(), &ReadOptions::default()).unwrap();
        assert_eq!(document.summary().dialect, Some(kind.name()), "{}", path.display());
        let parts = &document.summary().parts;
        let covered: u64 = parts.iter().map(|part| part.bytes).sum();
        assert_eq!(Some(covered), document.summary().bytes, "{}", path.display());
        let mut findings = Findings::new(false);
        document.validate(&mut findings).unwrap();
        assert!(findings.is_valid(), "{}: {:?}", path.display(), findings.list());
        for member in document.summary().members.clone() {
            let mut options = ReadOptions::default();
            options.member = Some(member.clone());
            let document = Sds.open(Source::open(&path).unwrap(), &options).unwrap();
            let rows: usize = document.all_rows().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
            let known = document.summary().rows.unwrap_or(rows as u64);
            assert_eq!(rows as u64, known, "{}::{member}", path.display());
        }
    }
}

#[test]
fn tags_that_are_not_text_are_found_by_validation_and_by_reading() {
    let mut bytes = std::fs::read(root().join("testdata/sds/small.gbwt")).unwrap();
    // The alphabet of the tags.
    let at = bytes.windows(4).position(|part| part == b"_acd").unwrap();
    bytes[at + 1] = 0x9e;
    let open = |member: Option<&str>| {
        let mut options = ReadOptions::default();
        options.member = member.map(str::to_owned);
        Sds.open(Source::from_bytes("x.gbwt", bytes.clone()), &options).unwrap()
    };
    let mut findings = Findings::new(false);
    open(None).validate(&mut findings).unwrap();
    let found = &findings.list()[0];
    assert_eq!((found.path.as_str(), found.rule.as_str()), ("tags[1]", "strings"));
    let read = open(Some("tags")).all_rows().unwrap().next().unwrap();
    assert!(read.unwrap_err().to_string().contains("expected UTF-8"));
}

#[test]
fn strings_of_containers_are_those_that_were_written() {
    let read = |file: &str, member: &str| {
        let mut options = ReadOptions::default();
        options.member = Some(member.to_owned());
        let source = Source::open(root().join("testdata/sds").join(file)).unwrap();
        let document = Sds.open(source, &options).unwrap();
        let batch = document.all_rows().unwrap().next().unwrap().unwrap();
        let text = |row: usize| {
            let column = |column| arrow_cast::display::array_value_to_string(column, row).unwrap();
            batch.columns().iter().map(|array| column(array.as_ref())).collect::<Vec<_>>().join("=")
        };
        (0..batch.num_rows()).map(text).collect::<Vec<_>>()
    };
    assert_eq!(read("small.gbz", "graph.sequences"), ["GATTACA", "C", "", "TTG"]);
    assert_eq!(read("small.gbwt", "tags"), ["source=testdata", "reference_samples=anna"]);
    assert_eq!(read("small.gbz", "gbwt.metadata.sample_names"), ["anna", "ben", "_gbwt_ref"]);
    assert_eq!(read("small.meta", "path_names"), ["0=0=1=0", "1=0=2=7", "2=0=4294967295=0"]);
    // The same graph in every version.
    for file in ["small.gbz", "small-2.gbz", "small-3.gbz"] {
        assert_eq!(read(file, "nodes"), ["1=GATTACA=7", "2=C=1", "4=TTG=3"]);
        assert_eq!(read(file, "edges"), ["1=+=2=+", "2=+=4=+", "2=+=4=-"]);
        assert_eq!(read(file, "paths"), ["anna=chr1=1=0", "ben=chr1=2=7", "_gbwt_ref=chr1=0=0"]);
        assert_eq!(read(file, "samples"), ["anna", "ben", "_gbwt_ref"]);
        assert_eq!(read(file, "contigs"), ["chr1"]);
    }
    for file in ["small.gbwt", "small-6.gbwt"] {
        assert_eq!(read(file, "nodes"), ["1", "2", "4"]);
        assert_eq!(read(file, "edges"), ["1=+=2=+", "2=+=4=+", "2=+=4=-"]);
        assert_eq!(read(file, "samples"), ["anna", "ben", "_gbwt_ref"]);
    }
    let lines = [
        "H\tVN:Z:1.1\tRS:Z:anna",
        "S\ts1\tGATTACAC",
        "S\ts3\tTTG",
        "L\ts1\t+\ts3\t+\t0M",
        "L\ts1\t+\ts3\t-\t0M",
        "P\tchr1\ts1+,s3+\t*",
        "W\tanna\t1\tchr1\t0\t11\t>s1>s3",
        "W\tben\t2\tchr1\t7\t18\t>s1<s3",
    ];
    assert_eq!(read("small-3.gbz", "gfa"), lines);
    let by_ids = read("nodes.gbz", "gfa");
    assert_eq!(by_ids[1..4], ["S\t1\tGATTACA", "S\t2\tC", "S\t4\tTTG"]);
    assert_eq!(by_ids.last().unwrap(), "W\tben\t2\tchr1\t7\t18\t>1>2<4");
}

#[test]
fn versions_that_we_do_not_know_are_unsupported() {
    for (name, text) in [
        ("small.gbz", "at byte 0, gbz.header: not supported: version 99 of a gbz (1 to 3 are read)"),
        ("small.gbwt", "at byte 0, gbwt.header: not supported: version 99 of a gbwt (5 to 6 are read)"),
        ("small.gg", "at byte 0, gg.header: not supported: version 99 of a gg (3 to 4 are read)"),
        ("small.meta", "at byte 0, gbwt-meta.header: not supported: version 99 of a gbwt-meta (2 is read)"),
    ] {
        let mut bytes = fs::read(root().join("testdata/sds").join(name)).unwrap();
        bytes[4] = 99;
        let error = open(bytes, None).err().unwrap();
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Unsupported, text));
    }
    // A GBZ file with a GBWT index of another version inside.
    let mut bytes = fs::read(root().join("testdata/sds/small.gbz")).unwrap();
    let at = bytes.windows(8).position(|window| window == [0x37, 0x6b, 0x37, 0x6b, 5, 0, 0, 0]).unwrap();
    bytes[at + 4] = 99;
    assert_eq!(open(bytes, None).err().unwrap().kind(), ErrorKind::Unsupported);
}

/// The rows of a member as texts, columns separated by tabs.
fn texts(bytes: &[u8], member: &str, by_nodes: bool) -> Vec<String> {
    let mut options = ReadOptions::default();
    options.member = Some(member.to_owned());
    if by_nodes {
        options.options.set("names", "nodes");
    }
    let document = Sds.open(Source::from_bytes("x", bytes.to_vec()), &options).unwrap();
    let mut rows = Vec::new();
    for batch in document.all_rows().unwrap() {
        let batch = batch.unwrap();
        let cell = |column: &arrow_array::ArrayRef, row| {
            arrow_cast::display::array_value_to_string(column, row).unwrap()
        };
        let line =
            |row| batch.columns().iter().map(|column| cell(column, row)).collect::<Vec<_>>().join("\t");
        rows.extend((0..batch.num_rows()).map(line));
    }
    rows
}

fn sign(orientation: Orientation) -> &'static str {
    if orientation == Orientation::Forward { "+" } else { "-" }
}

/// Our tables agree with the crate `gbz` about a graph.
fn compare(bytes: &[u8], graph: &GBZ, name: &str) {
    let nodes = graph.node_iter().map(|node| {
        let sequence = String::from_utf8(graph.sequence(node).unwrap().to_vec()).unwrap();
        format!("{node}\t{sequence}\t{}", sequence.len())
    });
    assert_eq!(texts(bytes, "nodes", false), nodes.collect::<Vec<_>>(), "{name}");
    let mut edges = Vec::new();
    for node in graph.node_iter() {
        for from in [Orientation::Forward, Orientation::Reverse] {
            for (to, orientation) in graph.successors(node, from).unwrap() {
                let listed = match from {
                    Orientation::Forward => to >= node,
                    Orientation::Reverse => to > node || to == node && orientation == Orientation::Forward,
                };
                if listed {
                    edges.push(format!("{node}\t{}\t{to}\t{}", sign(from), sign(orientation)));
                }
            }
        }
    }
    assert_eq!(texts(bytes, "edges", false), edges, "{name}");
    let metadata = graph.metadata().unwrap();
    let samples: Vec<String> = (0..metadata.samples()).map(|id| metadata.sample_name(id)).collect();
    assert_eq!(texts(bytes, "samples", false), samples, "{name}");
    let contigs: Vec<String> = (0..metadata.contigs()).map(|id| metadata.contig_name(id)).collect();
    assert_eq!(texts(bytes, "contigs", false), contigs, "{name}");
    let path = |path: &gbz::PathName| {
        let (sample, contig) = (metadata.sample_name(path.sample()), metadata.contig_name(path.contig()));
        format!("{sample}\t{contig}\t{}\t{}", path.phase(), path.fragment())
    };
    assert_eq!(texts(bytes, "paths", false), metadata.path_iter().map(path).collect::<Vec<_>>(), "{name}");
    // Every path visits the same nodes.
    let mut paths: Vec<String> = (0..graph.paths())
        .map(|id| {
            let visits = graph.path(id, Orientation::Forward).unwrap();
            let visits = visits.map(|(node, orientation)| match orientation {
                Orientation::Forward => format!(">{node}"),
                Orientation::Reverse => format!("<{node}"),
            });
            visits.collect()
        })
        .collect();
    let lines = texts(bytes, "gfa", true);
    let walk = |line: &String| match line.split('\t').collect::<Vec<_>>()[..] {
        ["W", .., walk] => Some(walk.to_owned()),
        ["P", _, steps, _] => Some(
            steps
                .split(',')
                .map(|step| {
                    let (node, sign) = step.split_at(step.len() - 1);
                    format!("{}{node}", if sign == "+" { '>' } else { '<' })
                })
                .collect(),
        ),
        _ => None,
    };
    let mut walks: Vec<String> = lines.iter().filter_map(walk).collect();
    paths.sort_unstable();
    walks.sort_unstable();
    assert_eq!(walks, paths, "{name}");
}

#[test]
fn graphs_say_what_the_crate_gbz_says_and_are_read_as_it_writes_them() {
    let graphs: Vec<_> = containers().into_iter().filter(|(_, kind)| *kind == SdsKind::Gbz).collect();
    assert!(graphs.len() >= 4);
    for (path, _) in graphs {
        let bytes = fs::read(&path).unwrap();
        let graph = GBZ::load(&mut bytes.as_slice()).unwrap();
        let name = path.display().to_string();
        compare(&bytes, &graph, &name);
        // It always writes version 3, with a GBWT of version 6.
        let mut written = Vec::new();
        graph.serialize(&mut written).unwrap();
        assert_eq!(written[4], 3, "{name}");
        compare(&written, &graph, &name);
        let mut findings = Findings::new(false);
        open(written, None).unwrap().validate(&mut findings).unwrap();
        assert!(findings.is_valid(), "{name}: {:?}", findings.list());
    }
}

#[test]
fn lines_are_those_of_gfa_files_beside_the_graphs() {
    let (own, others) = (root().join("testdata/sds"), root().join("../shared/vectors/sds-real"));
    let mut cases = vec![
        (own.join("small.gbz"), own.join("small.gfa"), false),
        (own.join("small-2.gbz"), own.join("small.gfa"), false),
        (own.join("small-3.gbz"), own.join("small.gfa"), false),
    ];
    // The files of other programs are used if they are available.
    if others.is_dir() {
        for (graph, by_nodes) in
            [("gbwt-rs_example", false), ("gbwt-rs_translation", false), ("gbz-base_micb-kir3dl1", true)]
        {
            let path = |end: &str| others.join(format!("{graph}.{end}"));
            cases.push((path("gbz"), path("gfa"), by_nodes));
        }
    }
    // Overlaps may be unspecified, and a segment that no path visits is not in the graph.
    let plain = |line: &str| -> Option<String> {
        let fields: Vec<&str> = line.split('\t').collect();
        match fields[..] {
            ["H", ..] | ["S", "unused", _] => None,
            ["L", .., _] | ["P", .., _] => Some(fields[..fields.len() - 1].join("\t")),
            _ => Some(line.to_owned()),
        }
    };
    for (graph, lines, by_nodes) in cases {
        let expected = fs::read_to_string(lines).unwrap();
        let bytes = fs::read(&graph).unwrap();
        let mut expected: Vec<String> = expected.lines().filter_map(plain).collect();
        let found = texts(&bytes, "gfa", by_nodes);
        let mut found: Vec<String> = found.iter().filter_map(|line| plain(line)).collect();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "{}", graph.display());
    }
}

#[test]
fn damaged_graphs_are_refused_or_found_and_never_panic() {
    for file in ["small.gbz", "small-3.gbz", "small-6.gbwt"] {
        let bytes = fs::read(root().join("testdata/sds").join(file)).unwrap();
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << (at % 8);
            let Ok(document) = open(bytes.clone(), None) else { continue };
            let mut findings = Findings::new(false);
            let _ = document.validate(&mut findings);
            for member in ["nodes", "edges", "paths", "gfa"] {
                let mut options = ReadOptions::default();
                options.member = Some(member.to_owned());
                let Ok(document) = Sds.open(Source::from_bytes("x", bytes.clone()), &options) else {
                    continue;
                };
                let Ok(rows) = document.all_rows() else { continue };
                rows.take_while(|batch| batch.is_ok()).for_each(drop);
            }
        }
    }
}

#[test]
fn counts_that_contradict_the_content_are_errors() {
    let bytes = fs::read(root().join("testdata/sds/small.gbz")).unwrap();
    let document = open(bytes.clone(), None).unwrap();
    let part = |name: &str| document.summary().parts.iter().find(|part| part.path == name).unwrap().offset;
    for (field, member) in
        [("graph.nodes", "nodes"), ("gbwt.metadata.samples", "samples"), ("gbwt.sequences", "paths")]
    {
        let mut bytes = bytes.clone();
        bytes[usize::try_from(part(field)).unwrap()] += 2;
        let mut findings = Findings::new(false);
        open(bytes.clone(), None).unwrap().validate(&mut findings).unwrap();
        assert!(
            findings.list().iter().any(|finding| finding.rule == "counts"),
            "{field}: {:?}",
            findings.list()
        );
        if field == "gbwt.sequences" {
            continue;
        }
        let mut options = ReadOptions::default();
        options.member = Some(member.to_owned());
        let read = Sds
            .open(Source::from_bytes("x", bytes), &options)
            .and_then(|document| document.all_rows().map(drop));
        assert_eq!(read.unwrap_err().kind(), ErrorKind::Malformed, "{field}");
    }
}

/// A file that a fuzzer made: it states 5e17 contigs, which have no names and so no bytes.
#[test]
fn contigs_that_take_no_bytes_are_limited() {
    let source = Source::open(root().join("testdata/sds/many-contigs.broken")).unwrap();
    let options = ReadOptions::default().with_dialect("gbz").with_member("contigs");
    let document = Sds.open(source, &options).unwrap();
    let error = document.all_rows().map(drop).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Limit, "{error}");
}
