//! Names of components.

/// Names that belong to the host; tables of policies start with `policy_`.
pub const RESERVED_NAMES: &[&str] = &["core", "policy", "sqlite", "tollgate"];

/// True if a text can be a component's name.
pub fn is_component_name(name: &str) -> bool {
    name.len() <= 32
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// True if one name's tables could start with the other's prefix.
pub fn prefixes_clash(one: &str, other: &str) -> bool {
    let prefix = |name: &str| format!("{}_", name.replace('-', "_"));
    let (one, other) = (prefix(one), prefix(other));
    one.starts_with(&other) || other.starts_with(&one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_that_start_alike_clash() {
        assert!(prefixes_clash("task", "task-store"));
        assert!(prefixes_clash("core", "core"));
        assert!(!prefixes_clash("tasks", "task-store"));
        assert!(!prefixes_clash("corex", "core"));
    }
}
