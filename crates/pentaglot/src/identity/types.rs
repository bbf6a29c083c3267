//! The text of types in an identity: Arrow type text without nullability, widths of offsets and encodings.

use std::fmt::Write as _;

use arrow_schema::{DataType, Field};

use crate::error::{Error, Result};
use crate::hub::extension;
use crate::hub::type_text::{print_type, write_name};

/// The text of a field's type in an identity. A union has none.
///
/// ```
/// use arrow_schema::{DataType, Field};
/// use pentaglot::identity::type_text;
/// let keys = DataType::Dictionary(DataType::Int8.into(), DataType::LargeUtf8.into());
/// let field = Field::new_large_list("x", Field::new_list_field(keys, true), true);
/// assert_eq!(type_text(&field)?, "list[utf8]");
/// # Ok::<(), pentaglot::Error>(())
/// ```
pub fn type_text(field: &Field) -> Result<String> {
    let mut out = String::new();
    write_field(&mut out, field)?;
    Ok(out)
}

fn write_field(out: &mut String, field: &Field) -> Result<()> {
    match extension::name(field) {
        Some(name) => {
            // The storage type must have an identity too.
            write_storage(&mut String::new(), field.data_type())?;
            let _ = write!(out, "{name}<{}>", extension::metadata(field).unwrap_or_default());
            Ok(())
        }
        None => write_storage(out, field.data_type()),
    }
}

fn write_storage(out: &mut String, data_type: &DataType) -> Result<()> {
    match data_type {
        DataType::LargeUtf8 | DataType::Utf8View => out.push_str("utf8"),
        DataType::LargeBinary | DataType::BinaryView => out.push_str("binary"),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item) => {
            out.push_str("list[");
            write_field(out, item)?;
            out.push(']');
        }
        DataType::FixedSizeList(item, size) => {
            let _ = write!(out, "fixed_list[{size}, ");
            write_field(out, item)?;
            out.push(']');
        }
        DataType::Struct(fields) => {
            out.push_str("struct{");
            for (index, field) in fields.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write_name(out, field.name());
                out.push_str(": ");
                write_field(out, field)?;
            }
            out.push('}');
        }
        DataType::Map(entries, _) => {
            let DataType::Struct(fields) = entries.data_type() else {
                return Err(Error::unsupported("a map whose entries are not structs"));
            };
            out.push_str("map[");
            for (index, field) in fields.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write_field(out, field)?;
            }
            out.push(']');
        }
        DataType::Dictionary(_, value) => write_storage(out, value)?,
        DataType::RunEndEncoded(_, values) => write_field(out, values)?,
        DataType::Union(_, _) => {
            return Err(Error::unsupported(format!("the identity of a {}", print_type(data_type))));
        }
        plain => out.push_str(&print_type(plain)),
    }
    Ok(())
}
