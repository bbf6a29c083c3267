//! SQL over every format of [`pentaglot`], by Apache DataFusion.
//!
//! ```
//! use pentaglot_sql::{Answer, Engine, EngineOptions};
//! let engine = Engine::new(pentaglot::Registry::default(), EngineOptions::default())?;
//! let Answer::Rows(rows) = engine.run("SELECT 6 * 7 AS answer")? else { panic!("a query has rows") };
//! let batch = rows.rows(&pentaglot::job::View::default())?.next().unwrap()?;
//! assert_eq!(batch.num_rows(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A quoted name in the place of a table is a file, a member of one, a pattern, a folder or an address: `resolve` finds
//! its files, `table` makes one table of them, `scan` reads it, several parts at a time. `COPY` (`copy`) goes through the
//! plan of a conversion, so that what would be lost is refused before anything is written. Nodes of these plans can run in other
//! processes ([`Cluster`], [`wire`], [`Place`]).

mod answer;
mod copy;
mod engine;
mod fault;
mod functions;
mod nested;
mod parts;
mod place;
mod prune;
mod reader;
mod resolve;
mod scan;
mod statements;
mod summarize;
mod table;
#[cfg(test)]
mod tests;
mod their_files;
pub mod wire;
mod writer;

pub use engine::{Answer, Cluster, Engine, EngineOptions};
pub use place::Place;
pub use statements::split as split_statements;
