//! Identifiers and statuses of milestones, slices and tasks.

use std::fmt;

use tollgate_sdk::text_enum;

/// Makes the identifier of a unit: a letter and a number of two or three digits.
macro_rules! unit_id {
    ($(#[$meta:meta])* $name:ident, $letter:literal, $what:literal) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        pub(crate) struct $name(String);

        impl $name {
            /// Reads an identifier. `None` if the text is not one.
            pub(crate) fn parse(text: &str) -> Option<$name> {
                let digits = text.strip_prefix($letter)?;
                let fits = matches!(digits.len(), 2 | 3) && digits.bytes().all(|byte| byte.is_ascii_digit());
                fits.then(|| $name(text.to_owned()))
            }

            /// The number in the identifier, by which units are sorted.
            pub(crate) fn ordinal(&self) -> u32 {
                self.0.get(1..).and_then(|digits| digits.parse().ok()).unwrap_or_default()
            }

            pub(crate) fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                $name::parse(&text).ok_or_else(|| {
                    serde::de::Error::custom(format_args!(
                        concat!("`{}` is not like ", $letter, "01"),
                        text.escape_debug()
                    ))
                })
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "pattern": concat!("^", $letter, "[0-9]{2,3}$"),
                    "description": concat!($what, " id, for example ", $letter, "01."),
                })
            }
        }

        impl tollgate_sdk::ToValue for $name {
            fn to_value(&self) -> tollgate_sdk::Value {
                tollgate_sdk::Value::Text(self.0.clone())
            }
        }

        impl tollgate_sdk::FromValue for $name {
            fn from_value(value: &tollgate_sdk::Value) -> Option<Self> {
                match value {
                    tollgate_sdk::Value::Text(text) => $name::parse(text),
                    _ => None,
                }
            }
        }
    };
}

unit_id!(
    /// A milestone, such as `M01`.
    MilestoneId, "M", "Milestone"
);
unit_id!(
    /// A slice within its milestone, such as `S01`.
    SliceId, "S", "Slice"
);
unit_id!(
    /// A task within its slice, such as `T01`.
    TaskId, "T", "Task"
);

text_enum! {
    /// Status of a milestone.
    pub(crate) enum MilestoneStatus {
        Active = "active",
        Complete = "complete",
        Parked = "parked",
    }
}

text_enum! {
    /// Status of a slice or a task.
    pub(crate) enum Status {
        Pending = "pending",
        InProgress = "in_progress",
        Complete = "complete",
        Skipped = "skipped",
    }
}

impl Status {
    /// Returns whether no work is left: complete or skipped.
    pub(crate) const fn is_closed(self) -> bool {
        matches!(self, Status::Complete | Status::Skipped)
    }
}

text_enum! {
    /// Risk of a slice.
    #[derive(Default)]
    pub(crate) enum Risk {
        Low = "low",
        #[default]
        Medium = "medium",
        High = "high",
    }
}

text_enum! {
    /// Verdict of a milestone's validation.
    pub(crate) enum Verdict {
        Pass = "pass",
        NeedsAttention = "needs_attention",
        Fail = "fail",
    }
}

text_enum! {
    /// Cause of an event: an agent's call, or the system as a consequence.
    pub(crate) enum Actor {
        Agent = "agent",
        System = "system",
    }
}

text_enum! {
    /// Severity of an audit entry.
    pub(crate) enum Severity {
        Info = "info",
        Warn = "warn",
        Error = "error",
    }
}

/// Ids of a slice and its milestone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlicePath<'a> {
    pub milestone: &'a MilestoneId,
    pub slice: &'a SliceId,
}

/// Ids of a task, its slice and its milestone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskPath<'a> {
    pub milestone: &'a MilestoneId,
    pub slice: &'a SliceId,
    pub task: &'a TaskId,
}

impl MilestoneId {
    /// Path of a slice of the milestone.
    pub(crate) const fn slice<'a>(&'a self, slice: &'a SliceId) -> SlicePath<'a> {
        SlicePath {
            milestone: self,
            slice,
        }
    }
}

impl<'a> SlicePath<'a> {
    /// Path of a task of the slice.
    pub(crate) const fn task(self, task: &'a TaskId) -> TaskPath<'a> {
        let SlicePath { milestone, slice } = self;
        TaskPath {
            milestone,
            slice,
            task,
        }
    }
}

/// Key of a milestone, slice or task, from the milestone down.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Unit {
    pub milestone: MilestoneId,
    pub slice: Option<SliceId>,
    pub task: Option<TaskId>,
}

impl Unit {
    pub(crate) fn milestone(milestone: &MilestoneId) -> Unit {
        Unit {
            milestone: milestone.clone(),
            slice: None,
            task: None,
        }
    }

    pub(crate) fn slice(milestone: &MilestoneId, slice: &SliceId) -> Unit {
        Unit {
            milestone: milestone.clone(),
            slice: Some(slice.clone()),
            task: None,
        }
    }

    pub(crate) fn task(milestone: &MilestoneId, slice: &SliceId, task: &TaskId) -> Unit {
        Unit {
            milestone: milestone.clone(),
            slice: Some(slice.clone()),
            task: Some(task.clone()),
        }
    }

    /// Reads a key such as `M01`, `M01/S01` or `M01/S01/T01`. `None` if the text is not one.
    pub(crate) fn parse(key: &str) -> Option<Unit> {
        let mut ids = key.split('/');
        let milestone = MilestoneId::parse(ids.next()?)?;
        let slice = ids
            .next()
            .map(|id| SliceId::parse(id).ok_or(()))
            .transpose()
            .ok()?;
        let task = ids
            .next()
            .map(|id| TaskId::parse(id).ok_or(()))
            .transpose()
            .ok()?;
        ids.next().is_none().then_some(Unit {
            milestone,
            slice,
            task,
        })
    }

    /// The slice that contains a task.
    pub(crate) fn parent_slice(&self) -> Option<Unit> {
        self.task.as_ref()?;
        Some(Unit {
            task: None,
            ..self.clone()
        })
    }
}

/// The key: `M01/S01/T01`.
impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.milestone)?;
        if let Some(slice) = &self.slice {
            write!(f, "/{slice}")?;
        }
        if let Some(task) = &self.task {
            write!(f, "/{task}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_letter_and_two_or_three_digits() {
        for text in ["T01", "T00", "T99", "T001", "T999"] {
            assert!(TaskId::parse(text).is_some(), "{text}");
        }
        for text in [
            "", "T", "T1", "T0001", "S01", "t01", "T0a", "T٠١", "T01 ", "T-1", "T+1", "../T01", "T01\n",
        ] {
            assert!(TaskId::parse(text).is_none(), "{text}");
        }
        assert_eq!(TaskId::parse("T007").map(|id| id.ordinal()), Some(7));
    }

    #[test]
    fn a_key_is_read_as_it_is_written() {
        for key in ["M01", "M01/S01", "M010/S001/T999"] {
            assert_eq!(
                Unit::parse(key).map(|unit| unit.to_string()).as_deref(),
                Some(key)
            );
        }
        for key in [
            "",
            "/",
            "M01/",
            "M01/T01",
            "M01/S01/T01/",
            "M01/S01/T01/T02",
            "S01",
        ] {
            assert_eq!(Unit::parse(key), None, "{key}");
        }
    }
}
