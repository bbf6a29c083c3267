//! A named part of a file, by its path or by a byte in it.

use super::open::Opened;
use crate::error::{Context, Error, Hint, Result};
use crate::formats::Node;

/// Parts that a message lists.
const LISTED: usize = 8;

impl Opened {
    /// A part of the file and its path: the one at the path `at`, or the smallest that contains the byte `at` (a
    /// decimal number, or a hexadecimal one after `0x`). Also accepts the paths of the parts in the summary.
    ///
    /// ```
    /// use pentaglot::{Registry, Source, job};
    /// let source = Source::from_bytes("x.csv", b"a,b\n1,2\n".to_vec());
    /// let opened = job::open_source(&Registry::default(), source, None, &job::OpenOptions::default())?;
    /// let (_path, part) = opened.part("0")?;
    /// assert_eq!(part.offset, 0);
    /// # Ok::<(), pentaglot::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Usage` if there is no such part; other errors if the parts of the file cannot be read.
    pub fn part(&self, at: &str) -> Result<(String, Node)> {
        let (root, id) = (self.document.outline(), self.format.info().id);
        let hex = at.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16));
        if let Ok(offset) = hex.unwrap_or_else(|| at.parse()) {
            let found = root.holding("", offset).in_format(id)?;
            let end = root.offset + root.bytes;
            return found
                .ok_or_else(|| Error::usage(format!("expected a byte before {end}, found {offset}")));
        }
        if let Some(found) = root.find("", at).in_format(id)? {
            return Ok((at.to_owned(), found));
        }
        // A part in the summary, whose bytes have another name in the outline.
        let Some(listed) = self.document.summary().parts.iter().find(|part| part.path == at) else {
            let parts = root.parts.iter().flat_map(|parts| parts.nodes(0).map_while(Result::ok).take(LISTED));
            let names: Vec<String> = parts.map(|part| part.name).collect();
            let error = Error::usage(format!("there is no part {at:?}"));
            return Err(match names.is_empty() {
                true => error,
                false => error.hint(Hint::Advice(format!("the first parts are {}", names.join(", ")).into())),
            });
        };
        let node = root.holding("", listed.offset).in_format(id)?.map(|(_, node)| node);
        let same = |node: &Node| node.offset == listed.offset && node.bytes == listed.bytes;
        let node = node.filter(same).unwrap_or_else(|| Node::new(at, listed.offset, listed.bytes));
        Ok((at.to_owned(), node))
    }
}
