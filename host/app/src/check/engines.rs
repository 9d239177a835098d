//! Differences of a component's SQL on PostgreSQL.

use tollgate_store::storage::{MigrationStep, Namespace};

use super::report::{Finding, Report};

/// Subject of the findings.
const SUBJECT: &str = "SQL on PostgreSQL";
/// Maximum number of differences in the report of one component.
const MAX_DIFFERENCES: usize = 20;

/// Notes where the migrations of a component, and the statements that its calls ran, behave differently on PostgreSQL.
/// These are not problems, because hosts can store data in SQLite.
pub(super) fn compare(namespace: &Namespace, steps: &[MigrationStep], report: &mut Report) {
    // Unreadable migrations are reported as load errors.
    let found = namespace.differences(steps).unwrap_or_default();
    for difference in found.iter().take(MAX_DIFFERENCES) {
        report.note(Finding::new(SUBJECT, difference.to_string()));
    }
    let more = found.len().saturating_sub(MAX_DIFFERENCES);
    if more > 0 {
        report.note(Finding::new(SUBJECT, format!("further differences: {more}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes about migrations that create a table and then run `statements`.
    fn notes(statements: &str) -> Vec<String> {
        let table = "CREATE TABLE shop_items (id BIGINT PRIMARY KEY, kind TEXT);";
        let steps = [MigrationStep {
            name: "0001_init".to_owned(),
            sql: format!("{table}{statements}"),
        }];
        let namespace = Namespace::of_pack("shop").with_tables(&steps).unwrap();
        let mut report = Report::default();
        compare(&namespace, &steps, &mut report);
        assert_eq!(report.problems, []);
        report.notes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn portable_sql_is_not_noted() {
        assert_eq!(notes("DELETE FROM shop_items WHERE kind = '3';"), [""; 0]);
    }

    #[test]
    fn a_difference_is_noted_with_its_place_and_a_remedy() {
        let notes = notes("DELETE FROM shop_items WHERE kind = 3;");
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(
            notes[0].starts_with("SQL on PostgreSQL: step 0001_init, statement 2 (`DELETE FROM shop_items"),
            "{}",
            notes[0]
        );
        assert!(notes[0].contains("CAST(… AS TEXT)"), "{}", notes[0]);
    }

    #[test]
    fn of_many_differences_some_are_shown_and_all_are_counted() {
        let many =
            (0..MAX_DIFFERENCES + 5).map(|number| format!("DELETE FROM shop_items WHERE kind = {number};"));
        let notes = notes(&many.collect::<String>());
        assert_eq!(notes.len(), MAX_DIFFERENCES + 1);
        assert_eq!(
            notes[MAX_DIFFERENCES],
            "SQL on PostgreSQL: further differences: 5"
        );
    }
}
