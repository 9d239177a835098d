//! Refusals of units that are missing, malformed or contradictory. Such arguments fit the schema of their tool, so that
//! the reader of arguments alone would refuse them, without a field and a next call.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde_json::{Map, Value as Json};
use tollgate_sdk::{Cx, Effect, Hints, Tier, Tool, ToolError};

use crate::header::{ClaimKey, Key, SliceKey, TaskKey};
use crate::next;
use crate::tools::status::is_known;
use crate::tools::{claim, complete, plan, reopen, revise, skip, start};
use crate::violation::Violation;

/// A tool whose arguments name a unit.
pub(crate) trait NamesUnit: Tool {
    /// Key of the unit.
    type Key: Key;
}

macro_rules! names_unit {
    ($key:ty: $($tool:ty),+ $(,)?) => {$(
        impl NamesUnit for $tool {
            type Key = $key;
        }
    )+};
}
names_unit!(SliceKey: plan::PlanSlice, complete::CompleteSlice, skip::SkipSlice, revise::ReplanSlice, reopen::ReopenSlice);
names_unit!(TaskKey: plan::PlanTask, start::StartTask, complete::CompleteTask, reopen::ReopenTask);
names_unit!(ClaimKey: claim::ClaimUnit, claim::ReleaseUnit);

/// A tool, or the fault of its arguments that name the unit.
#[derive(Debug)]
pub(crate) enum Keyed<T> {
    Call(T),
    Faulty {
        fault: String,
        workspace: Option<String>,
    },
}

impl<'de, T: NamesUnit> Deserialize<'de> for Keyed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Keyed<T>, D::Error> {
        // Read as a map, by which the SDK knows structs with flattened parts.
        let arguments = deserializer.deserialize_map(Arguments(PhantomData::<T>))?;
        let arguments = Json::Object(arguments);
        let given = <T::Key as Key>::Given::deserialize(&arguments).ok();
        if let Some(fault) = given.and_then(|given| T::Key::read(given).err()) {
            let workspace = arguments
                .get("workspace")
                .and_then(Json::as_str)
                .map(str::to_owned);
            return Ok(Keyed::Faulty { fault, workspace });
        }
        T::deserialize(arguments)
            .map(Keyed::Call)
            .map_err(D::Error::custom)
    }
}

/// Reader of a tool's arguments as they are.
struct Arguments<T>(PhantomData<T>);

impl<'de, T: Tool> Visitor<'de> for Arguments<T> {
    type Value = Map<String, Json>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the arguments of {} as an object", T::NAME)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut arguments = Map::new();
        while let Some((name, value)) = map.next_entry::<String, Json>()? {
            if arguments.contains_key(&name) {
                return Err(A::Error::custom(format!("duplicate field `{name}`")));
            }
            arguments.insert(name, value);
        }
        Ok(arguments)
    }
}

impl<T: JsonSchema> JsonSchema for Keyed<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

impl<T: NamesUnit> Tool for Keyed<T> {
    const NAME: &'static str = T::NAME;
    const TITLE: &'static str = T::TITLE;
    const EFFECT: Effect = T::EFFECT;
    const TIER: Tier = T::TIER;
    const HINTS: Hints = T::HINTS;
    const ALIASES: &'static [&'static str] = T::ALIASES;
    type Output = T::Output;

    fn run(self, cx: &Cx<'_>) -> Result<T::Output, ToolError> {
        let (fault, workspace) = match self {
            Keyed::Call(tool) => return tool.run(cx),
            Keyed::Faulty { fault, workspace } => (fault, workspace),
        };
        let is_known = |name: &&str| is_known(cx, name).unwrap_or_default();
        let known = workspace.as_deref().filter(is_known);
        let refusal: ToolError = Violation::argument("unit", fault).into();
        Err(refusal.next_call(next::status(known)))
    }

    fn text(output: &T::Output) -> Option<String> {
        T::text(output)
    }
}
