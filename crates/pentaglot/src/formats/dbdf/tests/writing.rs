//! The block types that the writer chooses, its checks and its errors.

use arrow_array::types::{Float64Type, Int32Type};
use arrow_array::{BooleanArray, Float64Array, Int16Array, Int32Array, StringArray};
use arrow_schema::{DataType as ArrowType, Field};

use super::*;
use crate::ErrorKind;
use crate::hub::{Verdict, shape};

fn matrix(values: Vec<f64>, cols: u64) -> RecordBatch {
    let schema = shape::dense_schema(ArrowType::Float64, None, cols).unwrap();
    let ArrowType::FixedSizeList(item, width) = schema.field(0).data_type().clone() else { panic!() };
    let list = arrow_array::FixedSizeListArray::new(item, width, Arc::new(Float64Array::from(values)), None);
    RecordBatch::try_new(Arc::new(schema), vec![Arc::new(list)]).unwrap()
}

fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), array.null_count() > 0))
        .collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

#[test]
fn auto_takes_the_smallest_block() {
    let one = |values: Vec<f64>, cols| write(&matrix(values, cols), &options("spec", &[])).unwrap();
    let code = |file: &[u8]| (file[43], file.len());
    // Zeros: empty, 44 bytes. -0.0 is not zero.
    assert_eq!(code(&one(vec![0.0; 12], 4)), (0, 44));
    assert_eq!(code(&one(vec![-0.0, 0.0, 0.0, 0.0], 4)).0, 3);
    // Dense is the smallest for dense data.
    assert_eq!(code(&one(vec![1.0; 12], 4)), (1, 45 + 96));
    // One of a hundred in one row: ultra-sparse 14 + 16, against sparse 18 + 4 + 12.
    let mut few = vec![0.0; 100];
    few[50] = 1.0;
    assert_eq!(code(&one(few.clone(), 100)), (3, 19 + 16 + 14 + 16));
    // Ten in a row of a hundred: sparse 18 + 4 + 120, against 14 + 160.
    few[..10].fill(2.0);
    assert_eq!(code(&one(few, 100)), (2, 19 + 16 + 18 + 4 + 11 * 12));
    // At a tie dense is chosen: one cell, dense 10 + 8 against ultra-sparse 14 + 12.
    assert_eq!(code(&one(vec![5.0], 1)), (1, 45 + 8));
}

#[test]
fn narrow_takes_the_smallest_type_that_holds_every_value() {
    let narrow = [("narrow", "true"), ("blocks", "dense")];
    let code = |values: Vec<f64>| write(&matrix(values, 2), &options("spec", &narrow)).unwrap()[44];
    assert_eq!(code(vec![0.0, 255.0]), 1);
    assert_eq!(code(vec![0.0, 256.0]), 2);
    assert_eq!(code(vec![-1.0, 127.0]), 5);
    assert_eq!(code(vec![-1.0, 128.0]), 6);
    assert_eq!(code(vec![0.0, 70_000.0]), 3);
    assert_eq!(code(vec![-0.0, 1.0]), 9);
    assert_eq!(code(vec![0.5, f64::NAN]), 9);
    assert_eq!(code(vec![0.1, 1.0]), 10);
    let back = write(&matrix(vec![0.5, f64::NAN], 2), &options("spec", &narrow)).unwrap();
    let batch = all(&*open(&back).unwrap()).unwrap();
    assert_eq!(dense_bits(&batch), dense_bits(&matrix(vec![0.5, f64::NAN], 2)));
}

#[test]
fn a_stored_zero_is_never_dropped() {
    let bytes = std::fs::read(testdata("csr_f64_2x4_explicit_zero.dbdf")).unwrap();
    let batch = all(&*open(&bytes).unwrap()).unwrap();
    for blocks in ["auto", "sparse", "ultra-sparse"] {
        let file = write(&batch, &options("spec", &[("blocks", blocks), ("narrow", "true")])).unwrap();
        assert_eq!(entries(&all(&*open(&file).unwrap()).unwrap()), entries(&batch), "{blocks}");
    }
    let error = write(&batch, &options("spec", &[("blocks", "dense")])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lossy);
    assert!(error.to_string().contains("row ") && error.to_string().contains("column "), "{error}");
}

#[test]
fn a_csr_matrix_may_be_stored_densely() {
    let bytes = std::fs::read(testdata("csr_f64_2x3_full.dbdf")).unwrap();
    let batch = all(&*open(&bytes).unwrap()).unwrap();
    let file = write(&batch, &options("spec", &[])).unwrap();
    assert_eq!((file[1], file[43]), (2, 1));
    assert_eq!(entries(&all(&*open(&file).unwrap()).unwrap()), entries(&batch));
}

#[test]
fn a_table_becomes_a_frame_of_one_block_a_column_and_band() {
    let batch = table(vec![
        ("a", Arc::new(Int32Array::from(vec![1, 0, 3, 0, 0]))),
        ("b", Arc::new(Float64Array::from(vec![0.5; 5]))),
    ]);
    let file = write(&batch, &options("spec", &[("block-rows", "3")])).unwrap();
    let document = open(&file).unwrap();
    assert_eq!(document.summary().parts.len(), 5);
    let again = all(&*document).unwrap();
    assert_eq!(again.columns(), batch.columns());
    assert_eq!(again.schema().field(0).name(), "a");
    // Runs of columns end where the type changes.
    let batch = table(vec![
        ("a", Arc::new(Int32Array::from(vec![1, 2]))),
        ("b", Arc::new(Int32Array::from(vec![3, 4]))),
        ("c", Arc::new(Float64Array::from(vec![5.0, 6.0]))),
    ]);
    let file = write(&batch, &options("spec", &[("block-cols", "9"), ("blocks", "dense")])).unwrap();
    let document = open(&file).unwrap();
    assert_eq!(document.summary().parts.len(), 3);
    assert_eq!(all(&*document).unwrap().columns(), batch.columns());
}

#[test]
fn what_has_no_place_is_refused_field_by_field() {
    let batch = table(vec![
        ("n", Arc::new(Int32Array::from(vec![1]))),
        ("s", Arc::new(StringArray::from(vec!["x"]))),
        ("d", Arc::new(arrow_array::Date32Array::from(vec![1]))),
        ("b", Arc::new(BooleanArray::from(vec![true]))),
        ("w", Arc::new(Int16Array::from(vec![7]))),
    ]);
    let plan = Dbdf.steps(&batch.schema(), &options("daphne", &[]));
    let verdicts: Vec<Verdict> = plan.steps.iter().map(|step| step.verdict).collect();
    use Verdict::*;
    assert_eq!(verdicts, [Exact, Impossible, Impossible, Widened, Widened]);
    assert_eq!(plan.check(crate::hub::LossKinds::ALL).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(Dbdf.steps(&batch.schema(), &options("spec", &[])).steps[4].verdict, Exact);
    assert_eq!(Dbdf.steps(&batch.schema(), &options("daphne01", &[])).verdict(), Impossible);
}

#[test]
fn widened_columns_keep_their_values() {
    let batch = table(vec![
        ("b", Arc::new(BooleanArray::from(vec![true, false]))),
        ("w", Arc::new(Int16Array::from(vec![-7, i16::MAX]))),
    ]);
    let file = write(&batch, &options("daphne", &[])).unwrap();
    let again = all(&*open(&file).unwrap()).unwrap();
    assert_eq!(bits(again.column(0)), [1, 0]);
    assert_eq!(again.column(1).as_primitive::<Int32Type>().values(), &[-7, 32767]);
}

#[test]
fn a_null_ends_the_run_and_names_its_place() {
    let batch = table(vec![("x", Arc::new(Float64Array::from(vec![Some(1.0), None])))]);
    assert_eq!(Dbdf.steps(&batch.schema(), &options("spec", &[])).verdict(), Verdict::Checked);
    let error = write(&batch, &options("spec", &[])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lossy);
    assert_eq!(error.to_string(), "dbdf: row 1, column \"x\": dbdf cannot hold a null");
    // The row counts over batches.
    let sound = table(vec![("x", Arc::new(Float64Array::from(vec![Some(1.0); 3])))])
        .with_schema(batch.schema())
        .unwrap();
    let error = write_batches(&[sound, batch.clone()], &batch.schema(), &options("daphne", &[])).unwrap_err();
    assert_eq!(error.to_string(), "dbdf: row 4, column \"x\": dbdf cannot hold a null");
}

#[test]
fn long_labels_are_refused_where_daphne_would_break() {
    let (fits, long) = ("x".repeat(32), "x".repeat(33));
    let batch = |name: &str| table(vec![(name, Arc::new(Int32Array::from(vec![1])) as ArrayRef)]);
    write(&batch(&fits), &options("daphne", &[])).unwrap();
    let error = write(&batch(&long), &options("daphne", &[])).unwrap_err();
    assert!(error.to_string().contains("DAPHNE's reader overruns its memory past 32 bytes"), "{error}");
    let file = write(&batch(&long), &options("spec", &[])).unwrap();
    assert_eq!(*all(&*open(&file).unwrap()).unwrap().schema().field(0).name(), long);
    let error = write(&batch(&"x".repeat(65536)), &options("spec", &[])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn the_row_count_is_patched_or_known() {
    let batch = matrix(vec![1.0; 12], 4);
    for dialect in ["spec", "daphne"] {
        let patched = write(&batch, &options(dialect, &[])).unwrap();
        let mut known = options(dialect, &[]);
        known.row_count = Some(3);
        assert_eq!(write(&batch, &known).unwrap(), patched);
        // A pipe is spooled if the count is not known, and written directly if it is.
        for count in [None, Some(3)] {
            let (reader, writer) = std::io::pipe().unwrap();
            let mut options = options(dialect, &[]);
            options.row_count = count;
            let mut writer = Dbdf.create(Sink::pipe(writer), batch.schema(), &options).unwrap();
            writer.write(&batch).unwrap();
            writer.finish().unwrap();
            let mut piped = Vec::new();
            std::io::Read::read_to_end(&mut { reader }, &mut piped).unwrap();
            assert_eq!(piped, patched);
        }
    }
}

#[test]
fn objects_without_cells_are_one_empty_block() {
    for rows in [0, 3] {
        let schema = shape::dense_schema(ArrowType::Float64, Some(rows), 0).unwrap();
        let ArrowType::FixedSizeList(item, _) = schema.field(0).data_type().clone() else { panic!() };
        let none = Arc::new(Float64Array::from(Vec::<f64>::new()));
        let list =
            arrow_array::FixedSizeListArray::try_new_with_length(item, 0, none, None, rows as usize).unwrap();
        let batch = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(list)]).unwrap();
        let file = write(&batch, &options("spec", &[])).unwrap();
        assert_eq!((file.len(), file[43]), (44, 0));
        assert_eq!(all(&*open(&file).unwrap()).unwrap().num_rows() as u64, rows);
    }
}

#[test]
fn very_wide_sparse_rows_are_tiled() {
    let cols = (1u64 << 33) + 5;
    let schema = Arc::new(shape::sparse_schema(ArrowType::Float64, Some(2), cols));
    let ArrowType::LargeList(entry) = schema.field(0).data_type().clone() else { panic!() };
    let at = arrow_array::UInt64Array::from(vec![1 << 33, 3, (1 << 32) + 1]);
    let values = Float64Array::from(vec![1.0, 2.0, 3.0]);
    let fields = shape::entry_fields(ArrowType::Float64, cols);
    let pairs = arrow_array::StructArray::new(fields, vec![Arc::new(at), Arc::new(values)], None);
    let offsets = arrow_buffer::OffsetBuffer::new(vec![0i64, 1, 3].into());
    let list = arrow_array::LargeListArray::new(entry, offsets, Arc::new(pairs), None);
    let batch = RecordBatch::try_new(schema, vec![Arc::new(list)]).unwrap();
    let file = write(&batch, &options("spec", &[])).unwrap();
    let document = open(&file).unwrap();
    let again = all(&*document).unwrap();
    assert_eq!(entries(&again).0, [0, 1, 3]);
    assert_eq!(entries(&again).1, [1 << 33, 3, (1 << 32) + 1]);
    assert!(findings(&file).is_valid());
    let plan = Dbdf.steps(&batch.schema(), &options("daphne", &[]));
    assert_eq!(plan.verdict(), Verdict::Impossible);
}

#[test]
fn a_repeated_entry_is_not_written() {
    let schema = Arc::new(shape::sparse_schema(ArrowType::Float64, Some(1), 5));
    let ArrowType::LargeList(entry) = schema.field(0).data_type().clone() else { panic!() };
    let at = arrow_array::UInt32Array::from(vec![1, 1]);
    let values: Float64Array = arrow_array::PrimitiveArray::<Float64Type>::from(vec![1.0, 2.0]);
    let fields = shape::entry_fields(ArrowType::Float64, 5);
    let pairs = arrow_array::StructArray::new(fields, vec![Arc::new(at), Arc::new(values)], None);
    let offsets = arrow_buffer::OffsetBuffer::new(vec![0i64, 2].into());
    let list = arrow_array::LargeListArray::new(entry, offsets, Arc::new(pairs), None);
    let batch = RecordBatch::try_new(schema, vec![Arc::new(list)]).unwrap();
    for dialect in ["spec", "daphne"] {
        let error = write(&batch, &options(dialect, &[])).unwrap_err();
        assert_eq!(error.to_string(), "dbdf: row 0, column \"col_1\": a second entry for the cell");
    }
}

#[test]
fn options_are_checked() {
    for (key, value) in [("blocks", "tiny"), ("block-rows", "0"), ("block-cols", "x"), ("narrow", "yes")] {
        let schema = matrix(vec![1.0], 1).schema();
        let error = Dbdf.plan(&schema, &options("spec", &[(key, value)])).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Usage, "{key}");
    }
}

#[test]
fn a_meta_names_no_type_that_daphne_lacks() {
    let table = RecordBatch::try_from_iter([
        ("a", Arc::new(arrow_array::Int32Array::from(vec![1])) as ArrayRef),
        ("b", Arc::new(arrow_array::UInt16Array::from(vec![1])) as ArrayRef),
    ])
    .unwrap();
    let error = write(&table, &options("spec", &[("meta", "true")])).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Unsupported);
    assert!(error.to_string().contains("16 bits"), "{error}");
    assert!(error.to_string().contains('b'), "{error}");
    let written = write(&table, &options("spec", &[])).unwrap();
    let error = super::super::meta_text(open(&written).unwrap().summary()).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Unsupported);
    assert_eq!(error.message(), r#"not supported: column "b": DAPHNE has no value type for uint16"#);
    write(&table, &options("daphne", &[])).unwrap();
}
