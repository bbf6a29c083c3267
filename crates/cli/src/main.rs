//! The command `pentaglot`.
fn main() {}
