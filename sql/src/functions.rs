//! Functions that SQLite and PostgreSQL share, or that can be added to both, and whose cost is linear in their input.

/// Kind of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Scalar function: one value from its arguments.
    Scalar,
    /// Aggregate: one value from many rows, or a window function with OVER.
    Aggregate,
    /// An aggregate with one argument, a scalar function with more.
    Both,
    /// Window function, only with OVER.
    Window,
}

/// A function: its name, the number of its arguments, and its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub name: &'static str,
    pub least: usize,
    pub most: usize,
    pub used: Use,
}

const fn entry(name: &'static str, least: usize, most: usize, used: Use) -> Entry {
    Entry {
        name,
        least,
        most,
        used,
    }
}

/// All functions, sorted by name.
pub const ALL: &[Entry] = &[
    entry("abs", 1, 1, Use::Scalar),
    entry("avg", 1, 1, Use::Aggregate),
    entry("coalesce", 2, 8, Use::Scalar),
    entry("count", 0, 1, Use::Aggregate),
    entry("dense_rank", 0, 0, Use::Window),
    entry("first_value", 1, 1, Use::Window),
    entry("ifnull", 2, 2, Use::Scalar),
    entry("iif", 2, 3, Use::Scalar),
    entry("instr", 2, 2, Use::Scalar),
    entry("lag", 1, 3, Use::Window),
    entry("last_value", 1, 1, Use::Window),
    entry("lead", 1, 3, Use::Window),
    entry("length", 1, 1, Use::Scalar),
    entry("lower", 1, 1, Use::Scalar),
    entry("ltrim", 1, 2, Use::Scalar),
    entry("max", 1, 8, Use::Both),
    entry("min", 1, 8, Use::Both),
    entry("nth_value", 2, 2, Use::Window),
    entry("ntile", 1, 1, Use::Window),
    entry("nullif", 2, 2, Use::Scalar),
    entry("rank", 0, 0, Use::Window),
    entry("replace", 3, 3, Use::Scalar),
    entry("round", 1, 2, Use::Scalar),
    entry("row_number", 0, 0, Use::Window),
    entry("rtrim", 1, 2, Use::Scalar),
    entry("sign", 1, 1, Use::Scalar),
    entry("string_agg", 2, 2, Use::Aggregate),
    entry("substr", 2, 3, Use::Scalar),
    entry("substring", 2, 3, Use::Scalar),
    entry("sum", 1, 1, Use::Aggregate),
    entry("total", 1, 1, Use::Aggregate),
    entry("trim", 1, 2, Use::Scalar),
    entry("upper", 1, 1, Use::Scalar),
];

/// Function with a name, in any letter case.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.name.eq_ignore_ascii_case(name))
}

/// List of all names, for messages about an unknown one.
#[must_use]
pub fn names() -> String {
    let names: Vec<&str> = ALL.iter().map(|entry| entry.name).collect();
    names.join(", ")
}
