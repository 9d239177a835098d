//! Tells the crate for which system it is built: components are compiled ahead for the same.
#![allow(clippy::print_stdout, reason = "this is how a build script speaks to cargo")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!(
        "cargo::rustc-env=TOLLGATE_TARGET={}",
        std::env::var("TARGET").unwrap_or_default()
    );
}
