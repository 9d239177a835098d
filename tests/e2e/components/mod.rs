//! Components before their first call: loading, compilation, registries, checks and templates.

mod authoring;
mod check_coverage;
mod check_permissions;
mod compilation;
mod loading;
mod registries;
