//! Snapshots, graphs and maps over trees in memory and on disk.

mod disk;
mod graphs;
mod harness;
mod maps;
mod random;
mod snapshots;
mod tidying;
mod truths;
