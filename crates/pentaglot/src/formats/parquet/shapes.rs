//! The structures of `parquet.thrift` that the `parquet` crate reads, with the fields that it reads of them.

use super::thrift::Shape::{self, Any, Binary, Bool, Double, I8, I16, I32, I64, List, Struct};

/// The footer.
pub(super) const FILE_METADATA: Shape = Struct(&[
    (1, I32),                        // version
    (SCHEMA, List(&SCHEMA_ELEMENT)), // schema
    (3, I64),                        // num_rows
    (ROW_GROUPS, List(&ROW_GROUP)),  // row_groups
    (5, List(&KEY_VALUE)),           // key_value_metadata
    (6, Binary),                     // created_by
    (7, List(&COLUMN_ORDER)),        // column_orders
    (ENCRYPTION_ALGORITHM, EMPTY),   // encryption_algorithm
    (9, Binary),                     // footer_signing_key_metadata
]);

const SCHEMA_ELEMENT: Shape = Struct(&[
    (1, I32),                   // type
    (2, I32),                   // type_length
    (3, I32),                   // repetition_type
    (4, Binary),                // name
    (SCHEMA_NUM_CHILDREN, I32), // num_children
    (6, I32),                   // converted_type
    (7, I32),                   // scale
    (8, I32),                   // precision
    (9, I32),                   // field_id
    (10, LOGICAL_TYPE),         // logicalType
]);

pub(super) const SCHEMA: i64 = 2;
pub(super) const SCHEMA_NUM_CHILDREN: i64 = 5;
pub(super) const ROW_GROUPS: i64 = 4;
pub(super) const ROW_GROUP_COLUMNS: i64 = 1;
pub(super) const CRYPTO_METADATA: i64 = 8;
pub(super) const ENCRYPTION_ALGORITHM: i64 = 8;

const LOGICAL_TYPE: Shape = Struct(&[
    (1, EMPTY),                                // STRING
    (2, EMPTY),                                // MAP
    (3, EMPTY),                                // LIST
    (4, EMPTY),                                // ENUM
    (5, Struct(&[(1, I32), (2, I32)])),        // DECIMAL
    (6, EMPTY),                                // DATE
    (7, Struct(&[(1, Bool), (2, TIME_UNIT)])), // TIME
    (8, Struct(&[(1, Bool), (2, TIME_UNIT)])), // TIMESTAMP
    (10, Struct(&[(1, I8), (2, Bool)])),       // INTEGER
    (11, EMPTY),                               // UNKNOWN
    (12, EMPTY),                               // JSON
    (13, EMPTY),                               // BSON
    (14, EMPTY),                               // UUID
    (15, EMPTY),                               // FLOAT16
    (16, Struct(&[(1, I8)])),                  // VARIANT
    (17, Struct(&[(1, Binary)])),              // GEOMETRY
    (18, Struct(&[(1, Binary), (2, I32)])),    // GEOGRAPHY
]);

const EMPTY: Shape = Struct(&[]);
const TIME_UNIT: Shape = Struct(&[(1, EMPTY), (2, EMPTY), (3, EMPTY)]);
const COLUMN_ORDER: Shape = Struct(&[(1, EMPTY), (2, EMPTY)]);
const KEY_VALUE: Shape = Struct(&[(1, Binary), (2, Binary)]);

const ROW_GROUP: Shape = Struct(&[
    (ROW_GROUP_COLUMNS, List(&COLUMN_CHUNK)),              // columns
    (2, I64),                                              // total_byte_size
    (3, I64),                                              // num_rows
    (4, List(&Struct(&[(1, I32), (2, Bool), (3, Bool)]))), // sorting_columns
    (5, I64),                                              // file_offset
    (6, I64),                                              // total_compressed_size
    (7, I16),                                              // ordinal
]);

const COLUMN_CHUNK: Shape = Struct(&[
    (1, Binary),            // file_path
    (2, I64),               // file_offset
    (3, COLUMN_METADATA),   // meta_data
    (4, I64),               // offset_index_offset
    (5, I32),               // offset_index_length
    (6, I64),               // column_index_offset
    (7, I32),               // column_index_length
    (CRYPTO_METADATA, Any), // crypto_metadata
    (9, Binary),            // encrypted_column_metadata
]);

const COLUMN_METADATA: Shape = Struct(&[
    (1, I32),                                                    // type
    (2, List(&I32)),                                             // encodings
    (3, List(&Binary)),                                          // path_in_schema
    (4, I32),                                                    // codec
    (5, I64),                                                    // num_values
    (6, I64),                                                    // total_uncompressed_size
    (7, I64),                                                    // total_compressed_size
    (8, List(&KEY_VALUE)),                                       // key_value_metadata
    (9, I64),                                                    // data_page_offset
    (10, I64),                                                   // index_page_offset
    (11, I64),                                                   // dictionary_page_offset
    (12, STATISTICS),                                            // statistics
    (13, List(&Struct(&[(1, I32), (2, I32), (3, I32)]))),        // encoding_stats
    (14, I64),                                                   // bloom_filter_offset
    (15, I32),                                                   // bloom_filter_length
    (16, Struct(&[(1, I64), (2, List(&I64)), (3, List(&I64))])), // size_statistics
    (17, Struct(&[(1, BOUNDING_BOX), (2, List(&I32))])),         // geospatial_statistics
]);

const STATISTICS: Shape = Struct(&[
    (1, Binary), // max
    (2, Binary), // min
    (3, I64),    // null_count
    (4, I64),    // distinct_count
    (5, Binary), // max_value
    (6, Binary), // min_value
    (7, Bool),   // is_max_value_exact
    (8, Bool),   // is_min_value_exact
]);

const BOUNDING_BOX: Shape = Struct(&[
    (1, Double), // xmin
    (2, Double), // xmax
    (3, Double), // ymin
    (4, Double), // ymax
    (5, Double), // zmin
    (6, Double), // zmax
    (7, Double), // mmin
    (8, Double), // mmax
]);

/// The offset index of a chunk.
pub(super) const OFFSET_INDEX: Shape = Struct(&[
    (1, List(&Struct(&[(1, I64), (2, I32), (3, I64)]))), // page_locations
    (2, List(&I64)),                                     // unencoded_byte_array_data_bytes
]);

/// The column index of a chunk.
pub(super) const COLUMN_INDEX: Shape = Struct(&[
    (1, List(&Bool)),   // null_pages
    (2, List(&Binary)), // min_values
    (3, List(&Binary)), // max_values
    (4, I32),           // boundary_order
    (5, List(&I64)),    // null_counts
    (6, List(&I64)),    // repetition_level_histograms
    (7, List(&I64)),    // definition_level_histograms
]);

/// The header of a page.
pub(super) const PAGE_HEADER: Shape = Struct(&[
    (1, I32),                                                                // type
    (2, I32),                                                                // uncompressed_page_size
    (3, I32),                                                                // compressed_page_size
    (4, I32),                                                                // crc
    (5, Struct(&[(1, I32), (2, I32), (3, I32), (4, I32), (5, STATISTICS)])), // data_page_header
    (6, EMPTY),                                                              // index_page_header
    (7, Struct(&[(1, I32), (2, I32), (3, Bool)])),                           // dictionary_page_header
    (8, DATA_PAGE_HEADER_V2),                                                // data_page_header_v2
]);

const DATA_PAGE_HEADER_V2: Shape = Struct(&[
    (1, I32),        // num_values
    (2, I32),        // num_nulls
    (3, I32),        // num_rows
    (4, I32),        // encoding
    (5, I32),        // definition_levels_byte_length
    (6, I32),        // repetition_levels_byte_length
    (7, Bool),       // is_compressed
    (8, STATISTICS), // statistics
]);
