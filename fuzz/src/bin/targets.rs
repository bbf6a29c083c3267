//! Prints the names of all targets, one a line.

fn main() {
    pentaglot_fuzz::Target::names().iter().for_each(|name| println!("{name}"));
}
