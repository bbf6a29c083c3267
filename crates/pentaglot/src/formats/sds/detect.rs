//! Whether a file is a succinct structure: its tag, or lengths that add up to the file's.

use super::layout::{fitting, own_words};
use super::schema::SdsKind;
use super::{containers, skeleton};
use crate::formats::{Confidence, Head};

pub(super) fn detect(head: &Head<'_>) -> Confidence {
    let Some(len) = head.len().filter(|len| *len > 0 && len.is_multiple_of(8)) else { return Confidence::No };
    let tagged = head.bytes().first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes));
    if [SdsKind::Gbz, SdsKind::Gbwt, SdsKind::Gg, SdsKind::GbwtMeta]
        .iter()
        .any(|kind| containers::tag(*kind) == tagged)
    {
        return Confidence::Certain;
    }
    // A file that is in memory as a whole must be valid; of a larger one, only the lengths are checked.
    let kind = if head.bytes().len() as u64 == len {
        fitting(&own_words(arrow_buffer::Buffer::from(head.bytes()))).ok().map(|(object, _)| object.kind())
    } else {
        skeleton::first_kind(head.source())
    };
    match kind {
        Some(
            SdsKind::Option
            | SdsKind::Pairs
            | SdsKind::String
            | SdsKind::Bytes
            | SdsKind::Vec
            | SdsKind::Chains,
        ) => Confidence::Possible,
        Some(_) => Confidence::Likely,
        None => Confidence::No,
    }
}
