//! Parses types.

use std::sync::Arc;

use arrow_schema::{
    DECIMAL32_MAX_PRECISION, DECIMAL64_MAX_PRECISION, DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION,
    DataType, Field, Fields, IntervalUnit, Schema, TimeUnit, UnionFields, UnionMode,
};

use crate::error::{Error, Result};
use crate::hub::{extension, shape};
use crate::limits::Limits;

/// The field `name` of the type in `text`, nullable if it begins with `?`.
///
/// ```
/// use pentaglot::hub::type_text::{parse_field, print_field};
/// let field = parse_field("x", "?struct{a: int32, 'b c': list[?utf8]}", &pentaglot::Limits::default())?;
/// assert!(field.is_nullable());
/// assert_eq!(print_field(&field), "?struct{a: int32, 'b c': list[?utf8]}");
/// # Ok::<(), pentaglot::Error>(())
/// ```
pub fn parse_field(name: &str, text: &str, limits: &Limits) -> Result<Field> {
    let mut parser = Parser { text, position: 0, depth: 0, limits };
    let field = parser.field(name)?;
    parser.end()?;
    Ok(field)
}

/// The schema in `text`: `struct{…}` is a table, another type a single value; see the [module](super) for the other
/// shapes.
///
/// ```
/// use pentaglot::hub::type_text::{parse_schema, print_schema};
/// let schema = parse_schema("struct{x: int32, y: ?utf8}", &pentaglot::Limits::default())?;
/// assert_eq!(schema.field(1).name(), "y");
/// assert_eq!(print_schema(&schema), "struct{x: int32, y: ?utf8}");
/// # Ok::<(), pentaglot::Error>(())
/// ```
pub fn parse_schema(text: &str, limits: &Limits) -> Result<Schema> {
    let mut parser = Parser { text, position: 0, depth: 0, limits };
    let schema = parser.schema()?;
    parser.end()?;
    Ok(schema)
}

/// Whether the text of a field means a table rather than a single value.
pub(super) fn is_table(field: &Field) -> bool {
    matches!(field.data_type(), DataType::Struct(_))
        && !field.is_nullable()
        && extension::name(field).is_none()
}

struct Parser<'a> {
    text: &'a str,
    position: usize,
    depth: u32,
    limits: &'a Limits,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.position..).unwrap_or_default()
    }

    fn skip_space(&mut self) {
        self.position = self.text.len() - self.rest().trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    #[cold]
    fn unexpected(&mut self, expected: &str) -> Error {
        self.skip_space();
        let word = self.rest().find(|char: char| !char.is_alphanumeric() && char != '_');
        let found = match (self.rest().chars().next(), word) {
            (None, _) => "the end of the text".to_owned(),
            (Some(char), Some(0)) => format!("`{}`", char.escape_debug()),
            _ => {
                let word: String = self.rest().get(..word.unwrap_or(self.rest().len())).into_iter().collect();
                format!("`{}`", word.chars().take(40).collect::<String>())
            }
        };
        Error::malformed(expected, found).at(self.position as u64)
    }

    fn end(&mut self) -> Result<()> {
        self.skip_space();
        if self.rest().is_empty() { Ok(()) } else { Err(self.unexpected("the end of the type")) }
    }

    fn take(&mut self, symbol: char) -> bool {
        self.skip_space();
        let there = self.rest().starts_with(symbol);
        self.position += if there { symbol.len_utf8() } else { 0 };
        there
    }

    fn expect(&mut self, symbol: char) -> Result<()> {
        if self.take(symbol) { Ok(()) } else { Err(self.unexpected(&format!("`{symbol}`"))) }
    }

    /// A bare word `[A-Za-z_][A-Za-z0-9_]*`.
    fn word(&mut self) -> Option<&'a str> {
        self.skip_space();
        let rest = self.rest();
        let end = rest.find(|char: char| !char.is_ascii_alphanumeric() && char != '_').unwrap_or(rest.len());
        let word = rest.get(..end)?;
        if word.is_empty() || word.starts_with(|char: char| char.is_ascii_digit()) {
            return None;
        }
        self.position += end;
        Some(word)
    }

    fn number<T: std::str::FromStr>(&mut self, expected: &str) -> Result<T> {
        self.skip_space();
        let rest = self.rest();
        let sign = usize::from(rest.starts_with('-'));
        let digits = rest.get(sign..).unwrap_or_default();
        let end = sign + digits.find(|char: char| !char.is_ascii_digit()).unwrap_or(digits.len());
        let number = rest.get(..end).unwrap_or_default().parse();
        let number = number.map_err(|_| self.unexpected(expected))?;
        self.position += end;
        Ok(number)
    }

    /// A name, bare or quoted.
    fn name(&mut self) -> Result<String> {
        if let Some(word) = self.word() {
            return Ok(word.to_owned());
        }
        self.quoted("a name")
    }

    fn next_char(&mut self) -> Option<char> {
        let char = self.rest().chars().next()?;
        self.position += char.len_utf8();
        Some(char)
    }

    fn quoted(&mut self, expected: &str) -> Result<String> {
        self.skip_space();
        let start = self.position as u64;
        let Some(quote @ ('\'' | '"')) = self.rest().chars().next() else {
            return Err(self.unexpected(expected));
        };
        self.position += 1;
        let mut text = String::new();
        loop {
            let place = self.position as u64;
            match self.next_char() {
                None => return Err(Error::malformed("a closing quote", "the end of the text").at(start)),
                Some(char) if char == quote => return Ok(text),
                Some('\\') => text.push(self.escape(place)?),
                Some(char) => text.push(char),
            }
        }
    }

    fn escape(&mut self, place: u64) -> Result<char> {
        match self.next_char() {
            Some(char @ ('\'' | '"' | '\\' | '/')) => Ok(char),
            Some('b') => Ok('\x08'),
            Some('f') => Ok('\x0c'),
            Some('n') => Ok('\n'),
            Some('r') => Ok('\r'),
            Some('t') => Ok('\t'),
            Some(letter @ ('u' | 'U')) => {
                let digits = if letter == 'u' { 4 } else { 8 };
                let code =
                    (0..digits).try_fold(0u32, |code, _| Some(code << 4 | self.next_char()?.to_digit(16)?));
                code.and_then(char::from_u32).ok_or_else(|| {
                    let expected = format!("{digits} hex digits of a character after `\\{letter}`");
                    Error::malformed(expected, "something else").at(place)
                })
            }
            _ => {
                let expected = r#"an escape (\' \" \\ \/ \b \f \n \r \t \uXXXX \UXXXXXXXX)"#;
                Err(Error::malformed(expected, "another").at(place))
            }
        }
    }

    fn schema(&mut self) -> Result<Schema> {
        self.skip_space();
        let start = self.position;
        let word = self.word();
        match word {
            Some("array") => Ok(shape::array_schema(self.bracketed_field()?)),
            Some("value") => Ok(shape::value_schema(self.bracketed_field()?)),
            Some(word @ ("matrix" | "sparse_matrix")) => {
                self.expect('[')?;
                let rows = if self.take('*') { None } else { Some(self.number("a number of rows, or `*`")?) };
                self.expect(',')?;
                let cols = self.number("a number of columns")?;
                self.expect(',')?;
                let value = self.data_type()?.0;
                self.expect(']')?;
                match word {
                    "matrix" => shape::dense_schema(value, rows, cols),
                    _ => Ok(shape::sparse_schema(value, rows, cols)),
                }
            }
            _ => {
                self.position = start;
                let field = self.field("")?;
                match field.data_type() {
                    DataType::Struct(fields) if is_table(&field) => Ok(Schema::new(fields.clone())),
                    _ => Ok(shape::value_schema(field)),
                }
            }
        }
    }

    fn bracketed_field(&mut self) -> Result<Field> {
        self.expect('[')?;
        let field = self.field("")?;
        self.expect(']')?;
        Ok(field)
    }

    /// A type with `?` if it is nullable, as a field of this name.
    fn field(&mut self, name: &str) -> Result<Field> {
        let nullable = self.take('?');
        if self.take('?') {
            self.position -= 1;
            return Err(self.unexpected("a type"));
        }
        let start = self.position;
        if self.word() == Some("extension") {
            self.enter()?;
            self.expect('[')?;
            let extension = self.quoted("the name of an extension in quotes")?;
            self.expect(',')?;
            self.skip_space();
            let metadata = if self.rest().starts_with(['\'', '"']) {
                let metadata = self.quoted("metadata in quotes")?;
                self.expect(',')?;
                Some(metadata)
            } else {
                None
            };
            let field = self.field(name)?;
            self.expect(']')?;
            self.depth -= 1;
            let nullable = nullable || field.is_nullable();
            return Ok(extension::with(field, &extension, metadata).with_nullable(nullable));
        }
        self.position = start;
        let (data_type, ordered) = self.data_type()?;
        Ok(Field::new(name, data_type, nullable).with_dict_is_ordered(ordered))
    }

    fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        self.limits.check_depth(self.depth).map_err(|error| error.at(self.position as u64))
    }

    /// A type, and whether it is an ordered dictionary (which Arrow stores in the field).
    fn data_type(&mut self) -> Result<(DataType, bool)> {
        self.enter()?;
        self.skip_space();
        let start = self.position;
        let word = self.word().unwrap_or_default();
        let mut ordered = false;
        let data_type = match word {
            "null" => DataType::Null,
            "bool" => DataType::Boolean,
            "int8" => DataType::Int8,
            "int16" => DataType::Int16,
            "int32" => DataType::Int32,
            "int64" => DataType::Int64,
            "uint8" => DataType::UInt8,
            "uint16" => DataType::UInt16,
            "uint32" => DataType::UInt32,
            "uint64" => DataType::UInt64,
            "float16" => DataType::Float16,
            "float32" => DataType::Float32,
            "float64" => DataType::Float64,
            "utf8" => DataType::Utf8,
            "large_utf8" => DataType::LargeUtf8,
            "utf8_view" => DataType::Utf8View,
            "binary" => DataType::Binary,
            "large_binary" => DataType::LargeBinary,
            "binary_view" => DataType::BinaryView,
            "date32" => DataType::Date32,
            "date64" => DataType::Date64,
            "fixed_binary" => {
                self.expect('[')?;
                let size = self.size()?;
                self.expect(']')?;
                DataType::FixedSizeBinary(size)
            }
            "time" => match self.bracketed_unit()? {
                unit @ (TimeUnit::Second | TimeUnit::Millisecond) => DataType::Time32(unit),
                unit => DataType::Time64(unit),
            },
            "duration" => DataType::Duration(self.bracketed_unit()?),
            "timestamp" => {
                self.expect('[')?;
                let unit = self.unit()?;
                let zone = if self.take(',') { Some(self.quoted("a time zone in quotes")?) } else { None };
                self.expect(']')?;
                DataType::Timestamp(unit, zone.map(Arc::from))
            }
            "interval" => {
                self.expect('[')?;
                let place = self.position;
                let unit = match self.word() {
                    Some("year_month") => IntervalUnit::YearMonth,
                    Some("day_time") => IntervalUnit::DayTime,
                    Some("month_day_nano") => IntervalUnit::MonthDayNano,
                    _ => {
                        self.position = place;
                        return Err(self.unexpected("year_month, day_time or month_day_nano"));
                    }
                };
                self.expect(']')?;
                DataType::Interval(unit)
            }
            "decimal32" => self.decimal(DECIMAL32_MAX_PRECISION, DataType::Decimal32)?,
            "decimal64" => self.decimal(DECIMAL64_MAX_PRECISION, DataType::Decimal64)?,
            "decimal128" => self.decimal(DECIMAL128_MAX_PRECISION, DataType::Decimal128)?,
            "decimal256" => self.decimal(DECIMAL256_MAX_PRECISION, DataType::Decimal256)?,
            "list" => DataType::List(self.item()?),
            "large_list" => DataType::LargeList(self.item()?),
            "list_view" => DataType::ListView(self.item()?),
            "large_list_view" => DataType::LargeListView(self.item()?),
            "fixed_list" => {
                self.expect('[')?;
                let size = self.size()?;
                self.expect(',')?;
                let item = self.field(Field::LIST_FIELD_DEFAULT_NAME)?;
                self.expect(']')?;
                DataType::FixedSizeList(Arc::new(item), size)
            }
            "struct" => DataType::Struct(self.struct_fields()?),
            "dict" | "ordered_dict" => {
                ordered = word == "ordered_dict";
                self.expect('[')?;
                self.skip_space();
                let place = self.position;
                let index = self.data_type()?.0;
                if !index.is_dictionary_key_type() {
                    self.position = place;
                    return Err(self.unexpected("an integer type for the indices"));
                }
                self.expect(',')?;
                let value = self.data_type()?.0;
                self.expect(']')?;
                DataType::Dictionary(Box::new(index), Box::new(value))
            }
            "map" | "sorted_map" => {
                self.expect('[')?;
                self.skip_space();
                let place = self.position;
                let key = self.field("key")?;
                if key.is_nullable() {
                    self.position = place;
                    return Err(self.unexpected("keys that are not nullable"));
                }
                self.expect(',')?;
                let value = self.field("value")?;
                self.expect(']')?;
                let entries = DataType::Struct(Fields::from(vec![key, value]));
                DataType::Map(Arc::new(Field::new("entries", entries, false)), word == "sorted_map")
            }
            "run_end" => {
                self.expect('[')?;
                self.skip_space();
                let place = self.position;
                let ends = self.data_type()?.0;
                if !ends.is_run_ends_type() {
                    self.position = place;
                    return Err(self.unexpected("int16, int32 or int64 for the run ends"));
                }
                self.expect(',')?;
                let values = self.field("values")?;
                self.expect(']')?;
                DataType::RunEndEncoded(Arc::new(Field::new("run_ends", ends, false)), Arc::new(values))
            }
            "dense_union" => DataType::Union(self.union_fields()?, UnionMode::Dense),
            "sparse_union" => DataType::Union(self.union_fields()?, UnionMode::Sparse),
            _ => {
                self.position = start;
                return Err(self.unexpected("an Arrow type"));
            }
        };
        self.depth -= 1;
        Ok((data_type, ordered))
    }

    fn size(&mut self) -> Result<i32> {
        let place = self.position;
        match self.number("a size 0..=2147483647")? {
            size @ 0.. => Ok(size),
            _ => {
                self.position = place;
                Err(self.unexpected("a size 0..=2147483647"))
            }
        }
    }

    fn unit(&mut self) -> Result<TimeUnit> {
        let place = self.position;
        match self.word() {
            Some("s") => Ok(TimeUnit::Second),
            Some("ms") => Ok(TimeUnit::Millisecond),
            Some("us") => Ok(TimeUnit::Microsecond),
            Some("ns") => Ok(TimeUnit::Nanosecond),
            _ => {
                self.position = place;
                Err(self.unexpected("a unit (s, ms, us, ns)"))
            }
        }
    }

    fn bracketed_unit(&mut self) -> Result<TimeUnit> {
        self.expect('[')?;
        let unit = self.unit()?;
        self.expect(']')?;
        Ok(unit)
    }

    fn decimal(&mut self, most: u8, make: fn(u8, i8) -> DataType) -> Result<DataType> {
        self.expect('[')?;
        self.skip_space();
        let place = self.position;
        let precision: u8 = self.number("a precision")?;
        if precision == 0 || precision > most {
            self.position = place;
            return Err(self.unexpected(&format!("a precision 1..={most}")));
        }
        self.expect(',')?;
        self.skip_space();
        let place = self.position;
        let scale: i8 = self.number("a scale")?;
        if i16::from(scale) > i16::from(precision) {
            self.position = place;
            return Err(self.unexpected("a scale that is at most the precision"));
        }
        self.expect(']')?;
        Ok(make(precision, scale))
    }

    fn item(&mut self) -> Result<Arc<Field>> {
        self.expect('[')?;
        let item = self.field(Field::LIST_FIELD_DEFAULT_NAME)?;
        self.expect(']')?;
        Ok(Arc::new(item))
    }

    fn struct_fields(&mut self) -> Result<Fields> {
        self.expect('{')?;
        let mut fields = Vec::new();
        if self.take('}') {
            return Ok(Fields::empty());
        }
        loop {
            let name = self.name()?;
            self.expect(':')?;
            fields.push(self.field(&name)?);
            if self.take('}') {
                return Ok(Fields::from(fields));
            }
            if !self.take(',') {
                return Err(self.unexpected("`,` or `}`"));
            }
        }
    }

    fn union_fields(&mut self) -> Result<UnionFields> {
        self.skip_space();
        let start = self.position as u64;
        self.expect('{')?;
        let mut ids: Vec<i8> = Vec::new();
        let mut fields = Vec::new();
        while !self.take('}') {
            if !ids.is_empty() {
                self.expect(',')?;
            }
            ids.push(self.number("a type id")?);
            let name = self.name()?;
            self.expect(':')?;
            fields.push(self.field(&name)?);
        }
        UnionFields::try_new(ids, fields)
            .map_err(|_| Error::malformed("type ids 0..=127, each once", "others").at(start))
    }
}
