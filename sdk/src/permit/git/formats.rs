//! Permitted output formats of git: placeholders that only print data of the repository.
//!
//! Other placeholders check signatures, for which git starts a program, or start git itself.

/// Named formats of `log`. Names from the configuration could mean anything.
const NAMED_FORMATS: &[&str] = &[
    "oneline",
    "short",
    "medium",
    "full",
    "fuller",
    "reference",
    "email",
    "mboxrd",
    "raw",
];
/// First letters of placeholders of `log`, after `%`.
const PLACEHOLDERS: &str = "HhTtPpDdSefsbBNmnaacCgwx<>%";
/// Placeholders of `log` in parentheses.
const IN_PARENTHESES: &[&str] = &["decorate"];
/// Fields of references.
const FIELDS: &[&str] = &[
    "refname",
    "objecttype",
    "objectsize",
    "objectname",
    "upstream",
    "push",
    "HEAD",
    "symref",
    "tree",
    "parent",
    "numparent",
    "object",
    "type",
    "tag",
    "author",
    "authorname",
    "authoremail",
    "authordate",
    "committer",
    "committername",
    "committeremail",
    "committerdate",
    "tagger",
    "taggername",
    "taggeremail",
    "taggerdate",
    "creator",
    "creatordate",
    "subject",
    "body",
    "contents",
    "color",
    "align",
    "if",
    "then",
    "else",
    "end",
];

/// Refuses a format of `log` that is not permitted.
pub(super) fn pretty(format: &str) -> Result<(), String> {
    let custom = format
        .strip_prefix("format:")
        .or_else(|| format.strip_prefix("tformat:"));
    let text = match custom {
        Some(text) => text,
        None if NAMED_FORMATS.contains(&format) || format.is_empty() => return Ok(()),
        None if format.contains('%') => format,
        None => {
            return Err(format!(
                "the format `{format}` is not one of git's own: {}",
                NAMED_FORMATS.join(", ")
            ));
        }
    };
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('%') {
        let bare = after.trim_start_matches(['+', '-', ' ']);
        let is_known = match bare.strip_prefix('(') {
            Some(name) => {
                let end = name.find([':', ')']).unwrap_or(name.len());
                IN_PARENTHESES.contains(&&name[..end])
            }
            None => bare
                .chars()
                .next()
                .is_none_or(|letter| PLACEHOLDERS.contains(letter)),
        };
        if !is_known {
            let shown: String = bare.chars().take(20).collect();
            return Err(format!(
                "the placeholder `%{shown}` may start a program; permitted placeholders begin with one of \
                 {PLACEHOLDERS} or (decorate"
            ));
        }
        // `%%` is one placeholder, not two.
        rest = bare.strip_prefix('%').unwrap_or(bare);
    }
    Ok(())
}

/// Refuses a format of `for-each-ref` that is not permitted.
pub(super) fn fields(format: &str) -> Result<(), String> {
    let mut rest = format;
    while let Some((_, after)) = rest.split_once('%') {
        rest = after;
        if let Some(name) = after.strip_prefix('(') {
            let end = name.find([':', ')', '=']).unwrap_or(name.len());
            field(&name[..end])?;
        } else if let Some(after) = after.strip_prefix('%') {
            rest = after;
        }
    }
    Ok(())
}

/// Refuses a sort field that is not permitted.
pub(super) fn sort(key: &str) -> Result<(), String> {
    let key = key.strip_prefix('-').unwrap_or(key);
    let key = ["version:", "v:"]
        .iter()
        .find_map(|prefix| key.strip_prefix(prefix))
        .unwrap_or(key);
    field(key.split(':').next().unwrap_or_default())
}

fn field(name: &str) -> Result<(), String> {
    let bare = name.strip_prefix('*').unwrap_or(name);
    match FIELDS.contains(&bare) {
        true => Ok(()),
        false => Err(format!(
            "the field `{name}` is not one of the fields that packs may print: {}",
            FIELDS.join(", ")
        )),
    }
}
