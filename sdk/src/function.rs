//! Macro for tools that are written as functions.

/// Declares a tool as a function. The function's name is the tool's name, its parameters are the arguments, and its doc
/// comment is the description. Write the effect (`read`, `write` or `run`) and the title between the comment and `fn`.
/// The macro generates an argument struct with the function's name, for use in [`tools!`](crate::tools). No other crate
/// is needed.
///
/// A tool with hints, a tier or its own text is a struct that implements [`Tool`](crate::Tool).
///
/// ```
/// use tollgate_sdk::{Cx, Pack, ToolError, schemars, serde, tool, tools};
///
/// /// A greeting.
/// #[derive(serde::Serialize, schemars::JsonSchema)]
/// # #[serde(crate = "tollgate_sdk::serde")]
/// # #[schemars(crate = "tollgate_sdk::schemars")]
/// struct Greeting {
///     /// Text of the greeting.
///     text: String,
/// }
///
/// tool! {
///     /// Greet a person by name.
///     read "Greet" fn hello_greet(
///         _cx: &Cx<'_>,
///         /// Name of the person to greet, for example Ada.
///         #[schemars(length(min = 1, max = 100))]
///         name: String,
///         /// Times to say it. Default 1.
///         times: Option<u8>,
///     ) -> Result<Greeting, ToolError> {
///         if name == "nobody" {
///             return Err(ToolError::new("NOBODY_THERE", "`nobody` cannot be greeted").remediation("Pass a name."));
///         }
///         let hello = "Hello, ".repeat(usize::from(times.unwrap_or(1)));
///         Ok(Greeting { text: format!("{hello}{name}") })
///     }
/// }
///
/// const PACK: Pack = Pack { name: "hello", summary: "Greetings.", tools: tools![hello_greet], ..Pack::EMPTY };
/// tollgate_sdk::export_pack!(PACK);
///
/// let session = tollgate_sdk::native::Session::new(&PACK);
/// let reply = session.call("hello_greet", r#"{"name": "Ada", "times": 2}"#).unwrap();
/// assert_eq!(reply.structured, r#"{"text":"Hello, Hello, Ada"}"#);
/// assert_eq!(session.call("hello_greet", r#"{"name": "nobody"}"#).unwrap_err().code, "NOBODY_THERE");
/// assert!(session.call("hello_greet", r#"{"name": "Ada", "often": 2}"#).is_err());
/// let entry = PACK.tool("hello_greet").unwrap();
/// assert_eq!((entry.title, entry.effect), ("Greet", tollgate_sdk::Effect::Read));
/// assert_eq!((entry.input_schema)()["description"], "Greet a person by name.");
/// ```
#[macro_export]
macro_rules! tool {
    (
        $(#[$about:meta])*
        $visibility:vis $effect:ident $title:literal fn $name:ident(
            $cx:ident: $context:ty
            $(, $(#[$of:meta])* $argument:ident: $kind:ty)*
            $(,)?
        ) -> Result<$output:ty, $error:ty> $body:block
    ) => {
        $(#[$about])*
        #[allow(non_camel_case_types)]
        #[derive($crate::reexport::serde::Deserialize, $crate::reexport::schemars::JsonSchema)]
        #[serde(crate = "tollgate_sdk::reexport::serde", deny_unknown_fields)]
        #[schemars(crate = "tollgate_sdk::reexport::schemars")]
        $visibility struct $name {
            $($(#[$of])* $argument: $kind,)*
        }

        impl $crate::Tool for $name {
            const NAME: &'static str = stringify!($name);
            const TITLE: &'static str = $title;
            const EFFECT: $crate::Effect = $crate::tool!(@effect $effect);
            type Output = $output;

            fn run(self, $cx: $context) -> Result<$output, $error> {
                let $name { $($argument),* } = self;
                $body
            }
        }
    };
    (@effect read) => { $crate::Effect::Read };
    (@effect write) => { $crate::Effect::Write };
    (@effect run) => { $crate::Effect::Run };
}
