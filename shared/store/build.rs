//! New migrations must be embedded although no Rust file changed.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
