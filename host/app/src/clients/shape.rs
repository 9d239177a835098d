//! Conversion of entries to and from a client's own format.

use serde_json::{Map, Value, json};

use super::edit::EditError;
use super::row::{Extra, Own, Row, Start, Variable};
use super::{ENTRY_NAME, Scope, Server, TOKEN_INPUT, Token};

const BEARER: &str = "Bearer ";

/// An entry in a client's own form.
pub(super) fn write(row: &Row, server: &Server) -> Result<Map<String, Value>, EditError> {
    let mut entry = Map::new();
    let mut put = |key: &str, value: Value| entry.insert(key.to_owned(), value);
    let more = match server {
        Server::Stdio { command, args } => {
            if let Some(kind) = row.stdio.kind {
                put("type", kind.into());
            }
            if row.stdio.is_list {
                let whole: Vec<&String> = std::iter::once(command).chain(args).collect();
                put(row.stdio.command, json!(whole));
            } else {
                put(row.stdio.command, json!(command));
                put("args", json!(args));
            }
            row.stdio.more
        }
        Server::Http { url, .. } => {
            let key = row.http.url.ok_or_else(|| {
                EditError::Unsupported(format!(
                    "{} only starts programs, and does not connect to an address; remove server.http from the \
                     configuration, or add another client",
                    row.title
                ))
            })?;
            if let Some(kind) = row.http.kind {
                put("type", kind.into());
            }
            put(key, json!(url));
            row.http.more
        }
    };
    for (key, extra) in more {
        let value = match extra {
            Extra::Number(number) => json!(number),
            Extra::Bool(flag) => json!(flag),
            Extra::Text(text) => json!(text),
            Extra::All => json!(["*"]),
        };
        entry.insert((*key).to_owned(), value);
    }
    if let Server::Http {
        token: Some(token), ..
    } = server
    {
        with_token(row, token, &mut entry)?;
    }
    Ok(entry)
}

fn with_token(row: &Row, token: &Token, entry: &mut Map<String, Value>) -> Result<(), EditError> {
    let text = match (token, &row.http.token) {
        (Token::Literal(token), _) => token.clone(),
        (Token::File(file), _) => match row.http.file {
            Some(form) => form.replace("FILE", file),
            None => {
                return Err(EditError::Unsupported(format!(
                    "{} does not read tokens from files; pass --bearer-env NAME instead",
                    row.title
                )));
            }
        },
        (Token::Asked, _) | (_, Variable::Asked) => format!("${{input:{TOKEN_INPUT}}}"),
        (Token::Variable(name), Variable::Text(form)) => form.replace("NAME", name),
        (Token::Variable(name), Variable::Listed(form, list)) => {
            entry.insert((*list).to_owned(), json!([name]));
            form.replace("NAME", name)
        }
        (Token::Variable(name), Variable::Key(key)) => {
            entry.insert((*key).to_owned(), json!(name));
            return Ok(());
        }
        (Token::Variable(_), Variable::None) => {
            return Err(EditError::Unsupported(format!(
                "{} does not replace variables in headers; add the entry without --bearer-env and write \
                 \"headers\": {{\"Authorization\": \"Bearer …\"}} into it",
                row.title
            )));
        }
    };
    let header = json!({ "Authorization": format!("{BEARER}{text}") });
    let nested = row
        .http
        .headers
        .iter()
        .rev()
        .fold(header, |inner, key| json!({ *key: inner }));
    entry.extend(nested.as_object().cloned().unwrap_or_default());
    Ok(())
}

/// Server of an entry. `None` if the entry has neither a program nor an address.
pub(super) fn read(row: &Row, entry: &Value) -> Option<Server> {
    let texts = |value: &Value| -> Vec<String> {
        value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|item| item.as_str().map(str::to_owned))
            .collect()
    };
    let (command, args) = match &entry[row.stdio.command] {
        Value::String(command) => (Some(command.clone()), texts(&entry["args"])),
        list => {
            let mut list = texts(list).into_iter();
            (list.next(), list.collect())
        }
    };
    if let Some(command) = command {
        return Some(Server::Stdio { command, args });
    }
    let known = ["url", "httpUrl", "serverUrl", "uri"];
    let url = row
        .http
        .url
        .into_iter()
        .chain(known)
        .find_map(|key| entry[key].as_str())?;
    Some(Server::Http {
        url: url.to_owned(),
        token: token(row, entry),
    })
}

fn token(row: &Row, entry: &Value) -> Option<Token> {
    if let Variable::Key(key) = row.http.token
        && let Some(name) = entry[key].as_str()
    {
        return Some(Token::Variable(name.to_owned()));
    }
    let headers = row
        .http
        .headers
        .iter()
        .fold(entry, |value, key| &value[*key])
        .as_object()?;
    let header = headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("authorization"))?
        .1
        .as_str()?;
    let text = header.strip_prefix(BEARER).unwrap_or(header);
    let between = |form: &str, word: &str| {
        let (before, after) = form.split_once(word)?;
        Some(text.strip_prefix(before)?.strip_suffix(after)?.trim().to_owned())
    };
    let variable = match row.http.token {
        Variable::Text(form) | Variable::Listed(form, _) => between(form, "NAME"),
        _ => None,
    };
    if text.starts_with("${input:") {
        return Some(Token::Asked);
    }
    if let Some(file) = row.http.file.and_then(|form| between(form, "FILE")) {
        return Some(Token::File(file));
    }
    Some(variable.map_or_else(|| Token::Literal(text.to_owned()), Token::Variable))
}

/// Seconds that a client waits for the server of an entry.
pub(super) fn start_sec(row: &Row, entry: &Value) -> u64 {
    match row.start {
        Start::Sec(seconds) => seconds,
        Start::Field(key, units, default) => entry[key]
            .as_u64()
            .map_or(default, |value| (value / units).max(1)),
    }
}

/// Client's own command that adds the server, if it has one that can.
pub(super) fn command(row: &Row, server: &Server, scope: Scope) -> Result<Option<Vec<String>>, EditError> {
    let mut entry = write(row, server)?;
    let scope = if scope == Scope::User { "user" } else { "project" };
    let is_project = scope == "project";
    let header = row
        .http
        .headers
        .iter()
        .try_fold(&Value::Object(entry.clone()), |value, key| value.get(*key))
        .and_then(|headers| {
            headers["Authorization"]
                .as_str()
                .map(|text| format!("Authorization: {text}"))
        });
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<String>>()
    };
    let mut line = match row.command {
        Own::None => return Ok(None),
        Own::Codex | Own::Copilot if is_project => return Ok(None),
        Own::Claude => {
            let mut line = words(&["claude", "mcp", "add-json", "--scope", scope, ENTRY_NAME]);
            line.push(Value::Object(entry).to_string());
            return Ok(Some(line));
        }
        Own::Code(_) if is_project || header.is_some() => return Ok(None),
        Own::Code(program) => {
            entry.insert("name".to_owned(), ENTRY_NAME.into());
            return Ok(Some(vec![
                program.to_owned(),
                "--add-mcp".to_owned(),
                Value::Object(entry).to_string(),
            ]));
        }
        Own::Codex => words(&["codex", "mcp", "add", ENTRY_NAME]),
        Own::Copilot => words(&["copilot", "mcp", "add"]),
        Own::Gemini(program) => {
            let timeout = entry["timeout"].to_string();
            words(&[program, "mcp", "add", "--scope", scope, "--timeout", &timeout])
        }
    };
    match (row.command, server) {
        (Own::Codex, Server::Http { url, token }) => {
            line.extend(words(&["--url", url]));
            if let Some(Token::Variable(name)) = token {
                line.extend(words(&["--bearer-token-env-var", name]));
            }
        }
        (_, Server::Http { url, .. }) => {
            line.extend(words(&["--transport", "http"]));
            line.extend(
                header
                    .into_iter()
                    .flat_map(|header| ["--header".to_owned(), header]),
            );
            line.extend(words(&[ENTRY_NAME, url]));
        }
        (Own::Codex, Server::Stdio { command, args }) => {
            line.extend(words(&["--", command]));
            line.extend(args.iter().cloned());
        }
        (Own::Copilot, Server::Stdio { command, args }) => {
            line.extend(words(&[ENTRY_NAME, "--", command]));
            line.extend(args.iter().cloned());
        }
        (_, Server::Stdio { command, args }) => {
            line.extend(words(&[ENTRY_NAME, command]));
            line.extend(args.iter().cloned());
        }
    }
    Ok(Some(line))
}
