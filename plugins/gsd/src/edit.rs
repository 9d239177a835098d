//! Edits of plans: what a call leaves out stays, and `clear` empties fields by name.

use crate::model::Unit;
use crate::violation::Refusals;

/// The fields of a plan while a call changes it.
#[derive(Debug)]
pub(crate) struct Edit<'a> {
    /// Prefix of the fields in messages, for example `slices[0].`.
    at: &'a str,
    unit: &'a Unit,
    clear: &'a [String],
    /// Fields that were looked at so far.
    known: Vec<&'static str>,
    /// Fields that were given and named in `clear`.
    contradicted: Vec<&'static str>,
    warnings: Vec<String>,
}

impl<'a> Edit<'a> {
    pub(crate) fn new(at: &'a str, unit: &'a Unit, clear: Option<&'a [String]>) -> Edit<'a> {
        Edit {
            at,
            unit,
            clear: clear.unwrap_or_default(),
            known: Vec::new(),
            contradicted: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// New value of a text.
    pub(crate) fn text(&mut self, field: &'static str, given: Option<&String>, old: &str) -> String {
        let given = given.map(|text| (text.trim().is_empty(), text.clone()));
        self.field(field, given, old.trim().is_empty(), || old.to_owned())
    }

    /// New value of a list.
    pub(crate) fn list<T: Clone>(
        &mut self,
        field: &'static str,
        given: Option<&Vec<T>>,
        old: &[T],
    ) -> Vec<T> {
        let given = given.map(|list| (list.is_empty(), list.clone()));
        self.field(field, given, old.is_empty(), || old.to_vec())
    }

    /// New value of a field. An empty value counts as absent, because many callers fill every field of a form.
    fn field<T: Default>(
        &mut self,
        field: &'static str,
        given: Option<(bool, T)>,
        was_empty: bool,
        old: impl FnOnce() -> T,
    ) -> T {
        self.known.push(field);
        let is_cleared = self.clear.iter().any(|name| name == field);
        match given {
            Some((false, _)) if is_cleared => {
                self.contradicted.push(field);
                T::default()
            }
            _ if is_cleared => T::default(),
            Some((false, new)) => new,
            Some((true, _)) if !was_empty => {
                self.warnings.push(format!(
                    "{}{field} of {} was not changed, because the call passed an empty value; to empty it, name it in {}clear",
                    self.at, self.unit, self.at
                ));
                old()
            }
            _ => old(),
        }
    }

    /// Checks `clear` against the fields, and returns the warnings.
    pub(crate) fn finish(self, refusals: &mut Refusals) -> Vec<String> {
        let at = self.at;
        for (index, name) in self.clear.iter().enumerate() {
            if !self.known.iter().any(|known| known == name) {
                let name: String = name.chars().take(40).collect();
                let fault = format!(
                    "is `{}`, not one of {}",
                    name.escape_debug(),
                    self.known.join(", ")
                );
                refusals.fault(&format!("{at}clear[{index}]"), fault);
            }
        }
        for field in self.contradicted {
            refusals.fault(&format!("{at}{field}"), "has a value, but is also named in clear");
        }
        self.warnings
    }
}

/// The title of a plan, which a new unit needs.
pub(crate) fn title(at: &str, given: Option<&String>, old: Option<&str>, refusals: &mut Refusals) -> String {
    match (given, old) {
        (Some(title), _) => title.clone(),
        (None, Some(old)) => old.to_owned(),
        (None, None) => {
            refusals.fault(&format!("{at}title"), "is required for a new unit");
            // A stand-in, so that one fault is not reported twice.
            "-".to_owned()
        }
    }
}
