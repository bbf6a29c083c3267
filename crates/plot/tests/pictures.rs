//! Pictures match the data: SVG is parsed and its marks are counted.

use pentaglot::{Registry, Source, job};
use pentaglot_plot::{Chart, Kind, PlotOptions, plot};
use roxmltree::Document;

fn opened(name: &str, bytes: Vec<u8>) -> job::Opened {
    let source = Source::from_bytes(name, bytes);
    job::open_source(&Registry::default(), source, None, &job::OpenOptions::default()).unwrap()
}

fn options(kind: Option<Kind>, columns: &[&str]) -> PlotOptions {
    let mut options = PlotOptions::default();
    options.kind = kind;
    options.view.columns =
        (!columns.is_empty()).then(|| columns.iter().map(|name| (*name).to_owned()).collect());
    options
}

/// The heights of all bars and the counts in their titles.
fn bars(svg: &str, side: &str) -> Vec<(f64, u64)> {
    let document = Document::parse(svg).unwrap();
    let is_bar = |node: &roxmltree::Node<'_, '_>| node.attribute("class") == Some("bar");
    let bar = |node: roxmltree::Node<'_, '_>| {
        let title = node.children().find(|child| child.has_tag_name("title")).unwrap().text().unwrap();
        let count = title.trim_end_matches(" bytes").rsplit(' ').next().unwrap();
        (node.attribute(side).unwrap().parse().unwrap(), count.parse().unwrap())
    };
    document.descendants().filter(is_bar).map(bar).collect()
}

#[test]
fn a_histogram_has_a_bar_for_each_number() {
    let text = format!("n\n{}", [1, 2, 2, 3, 3, 3, 5].map(|number| format!("{number}\n")).concat());
    let chart = plot(&opened("x.csv", text.into_bytes()), &options(None, &["n"])).unwrap();
    let found = bars(&chart.to_svg(800, 500), "height");
    assert_eq!(found.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [1, 2, 3, 1]);
    for (height, count) in &found {
        assert!((height / found[0].0 - *count as f64).abs() < 0.05, "{found:?}");
    }
}

#[test]
fn bars_are_the_counts_of_values() {
    let words = ["a", "b", "a", "<script>alert(1)</script>", "a", "b&\"c"];
    let text = format!("w\n{}", words.map(|word| format!("{word:?}\n").replace("\\\"", "\"\"")).concat());
    let chart = plot(&opened("x.csv", text.into_bytes()), &options(None, &["w"])).unwrap();
    let svg = chart.to_svg(800, 500);
    assert!(!svg.contains("<script"));
    let found = bars(&svg, "width");
    assert_eq!(found.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [3, 1, 1, 1]);
    let document = Document::parse(&svg).unwrap();
    let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
    assert!(texts.iter().any(|text| text.contains("<script>alert(1)</script>")), "{texts:?}");
}

#[test]
fn a_line_has_all_points_and_few_places_for_many() {
    for (rows, places) in [(10u32, 10..11), (100_000, 200..513)] {
        let text: String =
            (0..rows).map(|row| format!("2024-01-01T00:00:00.{:03},{}\n", row % 1000, row % 7)).collect();
        let opened = opened("x.csv", format!("t,v\n{text}").into_bytes());
        let chart = plot(&opened, &PlotOptions::default()).unwrap();
        let Chart::Line { points, x, .. } = &chart else { panic!("time and number make a line") };
        assert!(places.contains(&points.len()), "{}", points.len());
        assert!(x.is_time);
        assert!(points.iter().all(|[_, mean, low, high]| low <= mean && mean <= high));
        let svg = chart.to_svg(800, 500);
        let document = Document::parse(&svg).unwrap();
        let line = document.descendants().find(|node| node.has_tag_name("polyline")).unwrap();
        assert_eq!(line.attribute("points").unwrap().split(' ').count(), points.len());
    }
}

#[test]
fn a_spy_plot_marks_the_entries() {
    let text = b"%%MatrixMarket matrix coordinate real general\n3 4 3\n1 1 2\n2 3 1\n3 4 9\n";
    let chart = plot(&opened("x.mtx", text.to_vec()), &PlotOptions::default()).unwrap();
    let Chart::Grid { width, cells, .. } = &chart else { panic!("a matrix has a spy plot") };
    assert_eq!(*width, 4);
    let full: Vec<usize> = (0..cells.len()).filter(|index| cells[*index] > 0.0).collect();
    assert_eq!(full, [0, 6, 11]);
}

#[test]
fn areas_of_a_treemap_are_bytes() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/ticks.bson");
    let bytes = std::fs::read(file).unwrap();
    let total = bytes.len() as u64;
    let chart = plot(&opened("ticks.bson", bytes), &options(Some(Kind::Treemap), &[])).unwrap();
    let svg = chart.to_svg(800, 500);
    let (widths, heights) = (bars(&svg, "width"), bars(&svg, "height"));
    assert_eq!(widths.iter().map(|(_, bytes)| bytes).sum::<u64>(), total);
    for ((width, bytes), (height, _)) in widths.iter().zip(&heights) {
        let part = (width + 1.5) * (height + 1.5) / (768.0 * 444.0);
        assert!((part - *bytes as f64 / total as f64).abs() < 0.01, "{bytes}");
    }
}

#[test]
fn every_example_has_a_picture_in_every_form() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data");
    for name in [
        "digits.ds",
        "exons.sds",
        "ratings.dbdf",
        "ratings.mtx",
        "stations.csv",
        "stations.dynd",
        "ticks.bson",
    ] {
        let bytes = std::fs::read(format!("{folder}/{name}")).unwrap();
        let opened = opened(name, bytes);
        let chart = plot(&opened, &PlotOptions::default()).unwrap();
        Document::parse(&chart.to_svg(640, 400)).unwrap();
        let png = chart.to_png(640, 400).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        assert!(pixels.chunks(3).filter(|pixel| *pixel != [255; 3]).count() > 1000, "{name}");
        let text = chart.to_text(80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{name}:\n{text}");
        assert!(text.chars().any(|character| character > '\u{2500}'), "{name}:\n{text}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let table = opened("x.csv", b"a,b\n1,x\n".to_vec());
    for (kind, columns) in [
        (Kind::Histogram, &["b"][..]),
        (Kind::Scatter, &["a"]),
        (Kind::Scatter, &["a", "b"]),
        (Kind::Spy, &[]),
        (Kind::Sheet, &[]),
        (Kind::Runs, &[]),
        (Kind::Bar, &["c"]),
    ] {
        let error = plot(&table, &options(Some(kind), columns)).unwrap_err();
        assert_eq!(error.kind(), pentaglot::ErrorKind::Usage, "{kind}: {error}");
    }
    assert!("pie".parse::<Kind>().is_err());
}

#[test]
fn an_empty_table_has_an_empty_picture() {
    let marks = |chart: &Chart| {
        let svg = chart.to_svg(300, 200);
        Document::parse(&svg).unwrap();
        ["<rect", "<path", "<circle", "<poly"].iter().map(|mark| svg.matches(mark).count()).sum::<usize>()
    };
    let table = opened("x.csv", b"a\n1\n2\n2\n".to_vec());
    for kind in [Kind::Histogram, Kind::Line, Kind::Bar] {
        let mut options = options(Some(kind), &[]);
        let full = plot(&table, &options).unwrap();
        options.view.filter = Some("a > 5".to_owned());
        let empty = plot(&table, &options).unwrap();
        // A line of no points is drawn as one, too.
        assert!(marks(&empty) < marks(&full) || kind == Kind::Line, "{kind}");
        assert_ne!(empty.to_png(300, 200).unwrap(), full.to_png(300, 200).unwrap(), "{kind}");
        assert_ne!(empty.to_text(40), full.to_text(40), "{kind}");
    }
    let nulls = opened("x.jsonl", b"{\"a\":null}\n".to_vec());
    assert!(marks(&plot(&nulls, &options(Some(Kind::Bar), &[])).unwrap()) > 0);
}

#[test]
fn a_histogram_of_the_largest_numbers_has_their_bars() {
    let chart = plot(&opened("x.csv", b"n\n1e308\n-1e308\n".to_vec()), &options(None, &["n"])).unwrap();
    let svg = chart.to_svg(800, 500);
    assert_eq!(bars(&svg, "height").iter().map(|(_, count)| *count).collect::<Vec<_>>(), [1, 1]);
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    assert!(svg.contains("-1e308") && svg.contains("1e308"), "{svg}");
}

#[test]
fn numbers_outside_a_histogram_are_counted_in_its_title() {
    let text = b"n,m\nNaN,1\ninf,2\n,3\n".to_vec();
    let chart = plot(&opened("x.csv", text), &options(None, &["n"])).unwrap();
    assert!(chart.to_text(80).contains("(1 values, 1 missing, 1 NaN, 1 infinite)"), "{}", chart.to_text(80));
}
