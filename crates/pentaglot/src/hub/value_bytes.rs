//! [`value_bytes`], [`batch_bytes`]: how much values take.

use arrow_array::cast::AsArray;
use arrow_array::{Array, OffsetSizeTrait, RecordBatch};
use arrow_schema::DataType;

/// The bytes of the values of a batch.
pub(crate) fn batch_bytes(rows: &RecordBatch) -> usize {
    rows.columns().iter().map(|values| value_bytes(values)).sum()
}

/// The bytes of the values of an array. Of a slice only its own rows count, whatever its buffers hold besides.
pub(crate) fn value_bytes(array: &dyn Array) -> usize {
    match array.data_type() {
        DataType::Utf8View => view_bytes(array.as_string_view().views()),
        DataType::BinaryView => view_bytes(array.as_binary_view().views()),
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            item_bytes(list.value_offsets(), list.values())
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            item_bytes(list.value_offsets(), list.values())
        }
        DataType::Map(..) => item_bytes(array.as_map().value_offsets(), array.as_map().entries()),
        DataType::FixedSizeList(..) => value_bytes(array.as_fixed_size_list().values()),
        DataType::Struct(_) => array.as_struct().columns().iter().map(|values| value_bytes(values)).sum(),
        _ => array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size()),
    }
}

/// The lower half of a view's first eight bytes is the length of its value.
fn view_bytes(views: &[u128]) -> usize {
    views.iter().map(|view| size_of::<u128>() + *view as u32 as usize).sum()
}

fn item_bytes<O: OffsetSizeTrait>(offsets: &[O], items: &dyn Array) -> usize {
    let (Some(start), Some(end)) = (offsets.first(), offsets.last()) else { return 0 };
    let (start, end) = (start.as_usize(), end.as_usize());
    size_of_val(offsets) + value_bytes(&items.slice(start, end - start))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::{Int64Builder, ListBuilder};
    use arrow_array::{ArrayRef, Int64Array, StringArray, StringViewArray, StructArray};

    use super::*;

    #[test]
    fn only_the_rows_of_a_slice_count() {
        let long = "x".repeat(1000);
        let mut lists = ListBuilder::new(Int64Builder::new());
        (0..100).for_each(|row| lists.append_value((0..row).map(Some)));
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
        let structs = StructArray::try_from(vec![("n", Arc::clone(&numbers))]).unwrap();
        let arrays: [(ArrayRef, usize); 5] = [
            (numbers, 8),
            (Arc::new(StringArray::from(vec![long.as_str(); 100])), 1004),
            (Arc::new(StringViewArray::from(vec![long.as_str(); 100])), 1016),
            (Arc::new(lists.finish()), 10 * 8 + 4),
            (Arc::new(structs), 8),
        ];
        for (array, each) in arrays {
            let bytes = value_bytes(&array.slice(10, 1));
            // An offset more than there are rows.
            assert!((each..=each + 8).contains(&bytes), "{}: {bytes} of {each}", array.data_type());
        }
    }
}
