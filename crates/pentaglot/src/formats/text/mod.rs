//! The text formats: [`csv`], [`json_lines`] and [`json`], and what they share.
//!
//! They carry no types, so `sample` looks at the first bytes before anything is read, and types are inferred from them.

#[cfg(feature = "csv")]
pub mod csv;
#[cfg(feature = "json")]
pub mod json;
#[cfg(any(feature = "json", feature = "json_lines"))]
mod json_infer;
#[cfg(any(feature = "json", feature = "json_lines"))]
mod json_layout;
#[cfg(feature = "json_lines")]
pub mod json_lines;
#[cfg(any(feature = "json", feature = "json_lines"))]
mod json_outline;
#[cfg(any(feature = "json", feature = "json_lines"))]
mod json_plan;
#[cfg(any(feature = "json", feature = "json_lines"))]
mod json_rows;
mod kinds;
mod pieces;
mod sample;

/// For each chosen column its place among those that are decoded, which come in the order of the file.
fn file_order(chosen: &[usize]) -> Vec<usize> {
    let mut sorted = chosen.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    chosen.iter().filter_map(|index| sorted.binary_search(index).ok()).collect()
}
