//! Pages of lists: the arguments that every list takes, and its cursors.

use tollgate_sdk::{NextCall, ToolError};

use super::cut;
use crate::arguments::clip;
use crate::caller::Caller;
use crate::error::{Reason, Refusals};

/// Rows of a page, if the caller sets no limit.
const DEFAULT_LIMIT: u32 = 20;

/// Requested page of a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page<'a> {
    pub limit: u32,
    /// Last row of the previous page.
    pub cursor: Option<&'a String>,
    /// Argument with the cursor, under the name that the caller used.
    field: &'static str,
    pub tool: &'static str,
}

/// The caller of a list, the checks of the call so far, and the page.
pub(super) type Started<'a> = Result<(Caller, Refusals, Page<'a>), ToolError>;

impl<'a> Page<'a> {
    /// Page of a list. `after` is the earlier name of `cursor`.
    pub(super) fn of(
        tool: &'static str,
        limit: Option<u32>,
        cursor: Option<&'a String>,
        after: Option<&'a String>,
    ) -> Page<'a> {
        let (field, cursor) = match cursor {
            Some(_) => ("cursor", cursor),
            None => ("after", after),
        };
        Page {
            limit: limit.unwrap_or(DEFAULT_LIMIT),
            cursor,
            field,
            tool,
        }
    }

    /// Cuts rows that were read with one extra. Returns the cursor of the next page, if there is one.
    pub(super) fn cut<T, I: Clone>(self, rows: &mut Vec<T>, id: impl Fn(&T) -> &I) -> Option<I> {
        let has_more = cut(rows, self.limit);
        rows.last().filter(|_| has_more).map(|row| id(row).clone())
    }
}

impl Refusals {
    /// Requires a cursor that names something. `call` is the list without the cursor.
    pub(super) fn cursor(&mut self, page: Page<'_>, is_known: bool, call: NextCall) {
        if let (Some(cursor), false) = (page.cursor, is_known) {
            let reason = Reason::UnknownCursor {
                field: page.field,
                cursor: clip(cursor),
                tool: page.tool,
            };
            self.add_with(reason, call);
        }
    }
}

/// Defines the arguments of a list: the fields of the struct, then the page, and the caller's name and role for next
/// calls.
macro_rules! list_arguments {
    (
        $(#[$list:meta])*
        $visibility:vis struct $name:ident {
            $($(#[$filter:meta])* $field:ident: $type:ty,)*
        }
        limit: $limit:literal,
        cursor: $cursor:literal,
    ) => {
        #[derive(Debug, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        $(#[$list])*
        $visibility struct $name {
            $($(#[$filter])* $field: $type,)*
            #[doc = $limit]
            #[schemars(range(min = 1, max = 100))]
            limit: Option<u32>,
            #[doc = $cursor]
            #[schemars(length(max = $crate::arguments::MAX_REFERENCE_CHARS))]
            cursor: Option<String>,
            /// Earlier name of `cursor`, which is still accepted.
            #[schemars(length(max = $crate::arguments::MAX_REFERENCE_CHARS), extend("deprecated" = true))]
            after: Option<String>,
            /// Your name, to fill in `actor` of the suggested next calls.
            #[schemars(length(min = 1, max = $crate::arguments::MAX_REFERENCE_CHARS))]
            actor: Option<String>,
            /// Your role, to fill in `actor_role` of the suggested next calls.
            actor_role: Option<$crate::role::Role>,
        }

        impl $name {
            /// Starts the call.
            fn start(&self, cx: &::tollgate_sdk::Cx<'_>) -> $crate::tools::page::Started<'_> {
                use $crate::{caller::Caller, tools::page::Page};

                let caller = Caller::reader(cx, Self::NAME, self.actor.as_deref(), self.actor_role)?;
                let page = Page::of(Self::NAME, self.limit, self.cursor.as_ref(), self.after.as_ref());
                let mut refusals = caller.check();
                refusals.within("limit", page.limit, 1..=$crate::arguments::MAX_PAGE_ROWS);
                Ok((caller, refusals, page))
            }
        }
    };
}
pub(super) use list_arguments;
