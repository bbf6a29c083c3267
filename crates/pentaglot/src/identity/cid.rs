//! Content identifiers: CIDv1, codec raw, BLAKE3, in base32.

use std::fmt;

/// Version 1, codec raw, hash function BLAKE3, 32 bytes of digest.
const PREFIX: [u8; 4] = [0x01, 0x55, 0x1e, 32];

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// A CIDv1 of raw bytes by their BLAKE3 digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cid {
    digest: [u8; 32],
}

impl Cid {
    /// The CID of the bytes that have this BLAKE3 digest.
    pub fn new(digest: [u8; 32]) -> Self {
        Cid { digest }
    }

    /// The digest.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }
}

/// Base32 in lower case without padding, after the multibase prefix `b`.
impl fmt::Display for Cid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::from("b");
        let (mut waiting, mut bits) = (0u32, 0);
        for byte in PREFIX.iter().chain(&self.digest) {
            waiting = waiting << 8 | u32::from(*byte);
            bits += 8;
            while bits >= 5 {
                bits -= 5;
                text.push(letter(waiting >> bits));
            }
        }
        if bits > 0 {
            text.push(letter(waiting << (5 - bits)));
        }
        f.pad(&text)
    }
}

fn letter(bits: u32) -> char {
    char::from(ALPHABET[(bits & 31) as usize])
}
