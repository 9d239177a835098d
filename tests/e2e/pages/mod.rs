//! Pages of the documentation, compared with the program.

mod envelopes;
mod security;
mod tutorial;
