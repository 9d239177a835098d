use std::path::Path;

use clap::ValueEnum;
use expect_test::{expect, expect_file};

use super::*;

fn stdio() -> Server {
    Server::Stdio {
        command: "/bin/tollgate".to_owned(),
        args: vec!["serve".to_owned(), "--packs".to_owned(), "a: b,#c".to_owned()],
    }
}

fn http(token: Option<Token>) -> Server {
    Server::Http {
        url: "http://127.0.0.1:8765/mcp".to_owned(),
        token,
    }
}

fn variable() -> Option<Token> {
    Some(Token::Variable("MY_TOKEN".to_owned()))
}

fn all() -> impl Iterator<Item = Client> {
    Client::value_variants().iter().copied()
}

fn places(project: &str) -> Places {
    Places::new(project.into(), "/home/ada".into(), |_| None)
}

#[test]
fn the_table_has_one_row_for_each_client_in_order() {
    let rows: Vec<Client> = table::ROWS.iter().map(|row| row.client).collect();
    assert_eq!(rows, Client::value_variants());
}

#[test]
fn each_client_has_its_own_files_and_shape() {
    let mut shapes = String::new();
    let mut errors = String::new();
    for client in all() {
        shapes += &format!("# {}\n", client.title());
        for (scope, name) in [(Scope::User, "user"), (Scope::Project, "project")] {
            if let Some(file) = client.file(scope, &places("/project")) {
                shapes += &format!("{name}: {}\n", file.display());
            }
        }
        for server in [stdio(), http(None), http(variable())] {
            match client.snippet(&server) {
                Ok(snippet) => shapes += &format!("{snippet}\n"),
                Err(err) => errors += &format!("{err}\n"),
            }
        }
    }
    if cfg!(target_os = "linux") {
        expect_file!["snapshots/shapes.txt"].assert_eq(&shapes);
    }
    expect_file!["snapshots/shapes-refused.txt"].assert_eq(&errors);
}

#[test]
fn an_entry_reads_back_as_it_was_meant() {
    for client in all() {
        for server in [stdio(), http(None), http(variable())] {
            let Ok(text) = client.snippet(&server) else {
                continue;
            };
            let entry = client.found(&text).unwrap().unwrap();
            let expected = match (&server, &client.row().http.token) {
                (Server::Http { url, token: Some(_) }, Variable::Asked) => Server::Http {
                    url: url.clone(),
                    token: Some(Token::Asked),
                },
                _ => server.clone(),
            };
            assert_eq!(entry.server, expected, "{client:?}");
            assert!(!entry.is_disabled, "{client:?}");
            assert!(entry.start_sec >= 10, "{client:?}");
        }
    }
}

#[test]
fn adding_twice_is_adding_once() {
    for client in all() {
        for server in [stdio(), http(None)] {
            let Ok(once) = client.snippet(&server) else {
                continue;
            };
            assert_eq!(client.added(&once, &server, false).unwrap(), once, "{client:?}");
        }
    }
}

#[test]
fn an_entry_that_says_something_else_stays_unless_forced() {
    let other = Server::Stdio {
        command: "/old/tollgate".to_owned(),
        args: Vec::new(),
    };
    for client in all() {
        let text = client.snippet(&other).unwrap();
        let refused = client.added(&text, &stdio(), false);
        assert!(matches!(refused, Err(EditError::Taken { .. })), "{client:?}");
        assert_eq!(
            client.added(&text, &stdio(), true).unwrap(),
            client.snippet(&stdio()).unwrap()
        );
    }
}

/// Adds the entry to a text, checks that removal gives the text back, and returns the text with the entry.
fn around(client: Client, before: &str, server: &Server) -> String {
    let after = client
        .added(before, server, false)
        .unwrap_or_else(|err| panic!("{client:?}: {err}\n{before}"));
    assert_eq!(
        &client.found(&after).unwrap().unwrap().server,
        server,
        "{client:?}\n{after}"
    );
    let left = client.removed(&after).unwrap().unwrap();
    assert_eq!(left, before, "{client:?}\n{after}");
    after
}

#[test]
fn what_else_is_in_json_stays_byte_for_byte_and_comes_back() {
    let texts = [
        "{\n  \"z\": [1, 2],\n  \"SERVERS\": {\n    \"other\": {\"command\": \"x\"}\n  },\n  \"a\": \"é\"\n}\n",
        "{\n\t// mine\n\t\"SERVERS\": {\n\t\t\"other\": { \"command\": \"x\", }, // theirs, \"tollgate\"\n\t},\n}\n",
        "{\n    // nothing yet\n}\n",
        "// head\n{\n  \"theme\": \"dark\" // why\n  /* and\n     this */\n}\n// tail\n",
        "{\n  \"theme\": \"dark\", // trailing comma\n}\n",
        "{\"SERVERS\": {}}",
        "{\"SERVERS\":{\"other\":{\"command\":\"x\"}},\"theme\":1.50}",
        "{\"theme\": \"dark\"}",
        "{}",
        "{}\n",
        "{\r\n  \"theme\": \"dark\",\r\n  \"SERVERS\": {\r\n    \"other\": 1 // theirs\r\n  }\r\n}\r\n",
        "\u{feff}{\n  \"theme\": \"dark\"\n}\n",
        "{ \"a\": 1, /* b */ \"SERVERS\": { /* none */ } }",
        "{\n  \"SERVERS\": {\n    // \"tollgate\": {},\n    \"other\": 1 /* a\n    b */\n  }\n}",
        "{\"a\": 1,\n \"b\": 2}",
    ];
    for client in all().filter(|client| client.row().format == Format::Json) {
        for text in texts {
            let text = text.replace("SERVERS", client.row().servers);
            around(client, &text, &stdio());
            if client.row().http.url.is_some() {
                around(client, &text, &http(None));
            }
        }
    }
    let asked = http(Some(Token::Asked));
    for text in texts {
        around(Client::Vscode, &text.replace("SERVERS", "servers"), &asked);
    }
    around(
        Client::Vscode,
        "{\n  \"inputs\": [\n    {\"id\": \"other\"} // theirs\n  ]\n}\n",
        &asked,
    );
}

#[test]
fn json_with_comments_keeps_them_where_they_are() {
    let text = "{\n  // my servers\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"} // theirs\n    // the last\n  }\n}\n";
    expect![[r#"
        {
          // my servers
          "mcpServers": {
            "other": {"command": "x"}, // theirs
            "tollgate": {
              "command": "/bin/tollgate",
              "args": ["serve", "--packs", "a: b,#c"]
            }
            // the last
          }
        }
    "#]]
    .assert_eq(&around(Client::Cursor, text, &stdio()));
    expect![[r#"{"theme": "dark", "mcpServers": { "tollgate": {"url": "http://127.0.0.1:8765/mcp"} }}"#]]
        .assert_eq(&around(Client::Cursor, "{\"theme\": \"dark\"}", &http(None)));
}

#[test]
fn what_else_is_in_toml_stays_byte_for_byte_and_comes_back() {
    for text in [
        "# only a comment\n",
        "# mine\nmodel = \"x\" # why\n\n[mcp_servers.other]\ncommand = \"y\"\n",
        "model = \"x\"\n\n[mcp_servers.other]\nargs = [\n  \"[mcp_servers.tollgate]\",\n]\n\n# the end\n",
        "model = \"x\"\r\n",
        "model = \"\"\"\n[mcp_servers.tollgate]\n\"\"\"\n",
        "[mcp_servers]\n",
        "mcp_servers.other.command = \"y\"\n",
        "[projects.\"/x\"]\ntrust_level = \"trusted\"\n",
    ] {
        let after = around(Client::Codex, text, &stdio());
        assert!(after.starts_with(text), "{after}");
    }
    // A table on one line is not lost either.
    let inline = "mcp_servers = { other = { command = \"y\" } }\n";
    let after = Client::Codex.added(inline, &stdio(), false).unwrap();
    assert_eq!(Client::Codex.found(&after).unwrap().unwrap().server, stdio());
    let left = Client::Codex.removed(&after).unwrap().unwrap();
    assert_eq!(
        left.parse::<::toml::Table>().unwrap(),
        inline.parse::<::toml::Table>().unwrap()
    );
}

#[test]
fn a_table_between_others_is_cut_out_with_its_own_tables_alone() {
    let text = "a = 1\n\n[mcp_servers.tollgate]\ncommand = \"x\"\n\n[mcp_servers.tollgate.env]\nA = \"b\"\n\n# theirs\n[mcp_servers.other]\ncommand = \"y\"\n";
    assert_eq!(
        Client::Codex.removed(text).unwrap().unwrap(),
        "a = 1\n\n# theirs\n[mcp_servers.other]\ncommand = \"y\"\n"
    );
}

#[test]
fn what_else_is_in_yaml_stays_byte_for_byte_and_comes_back() {
    for text in [
        "",
        "# mine\nGOOSE_MODEL: x # why\n",
        "extensions:\n  developer:\n    bundled: true # theirs\n    args: [\"a\"]\n\n# the end\nGOOSE_MODEL: x\n",
        "GOOSE_MODEL: x\nextensions:\n    memory:\n        type: builtin\n",
        "---\nextensions:\n  # none\n  other:\n    description: |\n      tollgate:\n        x\n",
        "a: 1",
    ] {
        for server in [stdio(), http(None), http(variable())] {
            let after = Client::Goose.added(text, &server, false).unwrap();
            assert_eq!(
                Client::Goose.found(&after).unwrap().unwrap().server,
                server,
                "{after}"
            );
            let left = Client::Goose.removed(&after).unwrap().unwrap();
            assert_eq!(left.trim_end(), text.trim_end(), "{after}");
        }
    }
}

#[test]
fn an_entry_that_goose_wrote_anew_is_still_read() {
    let text = "extensions:\n  tollgate:\n    enabled: false\n    type: stdio\n    name: tollgate\n    cmd: /bin/tollgate\n    args:\n    - serve\n    - --packs\n    - 'a: b,#c'\n    envs:\n      A: b\n    timeout: 45\n  other: {}\n";
    let entry = Client::Goose.found(text).unwrap().unwrap();
    assert_eq!(
        (entry.server, entry.is_disabled, entry.start_sec),
        (stdio(), true, 45)
    );
    assert_eq!(entry.env, [("A".to_owned(), "b".to_owned())]);
    assert_eq!(
        Client::Goose.removed(text).unwrap().unwrap(),
        "extensions:\n  other: {}\n"
    );
}

#[test]
fn a_file_that_held_the_entry_alone_is_empty_without_it() {
    for client in all().filter(|client| client.row().format != Format::Toml) {
        for before in ["", "\n"] {
            let text = client.added(before, &stdio(), false).unwrap();
            assert_eq!(client.removed(&text).unwrap().unwrap().trim(), "", "{client:?}");
        }
    }
    assert_eq!(
        Client::Codex
            .removed(&Client::Codex.snippet(&stdio()).unwrap())
            .unwrap()
            .unwrap(),
        ""
    );
}

#[test]
fn a_file_that_cannot_be_kept_whole_is_left_alone() {
    for text in [
        "[]",
        "1",
        "{",
        "{a: 1}",
        "{'a': 1}",
        "{\"mcpServers\": 1}",
        "{\"mcpServers\": []}",
        "{\"mcpServers\": {}, \"mcpServers\": {\"other\": 1}}",
        "{\"mcpServers\": {\"tollgate\": 1, \"tollgate\": 2}}",
        "{\"a\": 1 \"b\": 2}",
        "{} {}",
    ] {
        assert!(Client::Cursor.added(text, &stdio(), true).is_err(), "{text}");
        assert!(!matches!(Client::Cursor.removed(text), Ok(Some(_))), "{text}");
    }
    for text in ["= 1", "mcp_servers = 1", "[[mcp_servers]]\na = 1"] {
        assert!(Client::Codex.added(text, &stdio(), true).is_err(), "{text}");
    }
    for text in [
        "{\"extensions\": {}}",
        "extensions: {}\n",
        "extensions: &a\n  x: 1\n",
        "extensions:\n  tollgate: {}\n",
        "extensions:\n  a: 1\nextensions:\n  b: 1\n",
        "a: 1\n---\nextensions:\n",
        "\textensions:\n",
    ] {
        assert!(Client::Goose.added(text, &stdio(), true).is_err(), "{text}");
    }
}

#[test]
fn a_file_of_its_own_with_words_of_others_is_left_alone() {
    let text = Client::Continue.snippet(&stdio()).unwrap();
    let other = Server::Stdio {
        command: "/old".to_owned(),
        args: Vec::new(),
    };
    for others in ["# mine\n", "rules: [x]\n"] {
        let text = format!("{others}{text}");
        assert!(Client::Continue.removed(&text).is_err(), "{text}");
        assert!(Client::Continue.added(&text, &other, true).is_err(), "{text}");
    }
}

#[test]
fn fields_that_a_client_adds_are_no_difference() {
    let text = "{\"mcpServers\": {\"tollgate\": {\"command\": \"/bin/tollgate\", \"args\": [\"serve\", \"--packs\", \"a: b,#c\"], \"env\": {\"A\": \"b\"}, \"disabled\": true}}}";
    assert_eq!(Client::Cursor.added(text, &stdio(), false).unwrap(), text);
    let entry = Client::Cursor.found(text).unwrap().unwrap();
    assert!(entry.is_disabled);
    assert_eq!(entry.env, [("A".to_owned(), "b".to_owned())]);
}

#[test]
fn a_file_with_a_token_is_for_clients_that_read_files() {
    let server = http(Some(Token::File("/run/token".to_owned())));
    assert!(
        Client::Opencode
            .snippet(&server)
            .unwrap()
            .contains("Bearer {file:/run/token}")
    );
    assert!(matches!(
        Client::Cursor.snippet(&server),
        Err(EditError::Unsupported(_))
    ));
}

#[test]
fn own_commands_of_clients_say_the_same() {
    let mut lines = String::new();
    for client in all() {
        for server in [stdio(), http(variable())] {
            for scope in [Scope::User, Scope::Project] {
                if let Ok(Some(line)) = client.command(&server, scope) {
                    lines += &format!("{}\n", line.join(" | "));
                }
            }
        }
    }
    expect_file!["snapshots/commands.txt"].assert_eq(&lines);
}

#[test]
fn variables_move_files_as_they_move_the_clients() {
    let places = Places::new("/project".into(), "/home/ada".into(), |name| match name {
        "CODEX_HOME" => Some("/codex".into()),
        "XDG_CONFIG_HOME" => Some("/xdg".into()),
        "CLAUDE_CONFIG_DIR" => Some("relative".into()),
        _ => None,
    });
    let file = |client: Client| client.file(Scope::User, &places).unwrap();
    assert_eq!(file(Client::Codex), Path::new("/codex/config.toml"));
    assert_eq!(file(Client::Opencode), Path::new("/xdg/opencode/opencode.json"));
    assert_eq!(file(Client::ClaudeCode), Path::new("/home/ada/.claude.json"));
}

proptest::proptest! {
    /// Whatever the style of a file, an entry goes in and comes out again, or the file is left alone.
    #[test]
    fn any_style_of_json_comes_back(text in style()) {
        for client in [Client::Cursor, Client::Vscode, Client::Zed] {
            let text = text.replace("SERVERS", client.row().servers);
            if let Ok(after) = client.added(&text, &stdio(), false) {
                let left = client.removed(&after).unwrap().unwrap();
                // A file that is empty without the entry is removed.
                let value = |text: &str| match json::value(text).unwrap() {
                    Value::Null => serde_json::json!({}),
                    value => value,
                };
                let (left_value, before) = (value(&left), value(&text));
                let comments = |text: &str| text.matches("/*c*/").count() + text.matches("//c").count();
                assert_eq!(comments(&left), comments(&text), "{text}\n{after}\n{left}");
                let rest = |mut value: Value| {
                    if let Some(map) = value.as_object_mut() {
                        map.retain(|_, value| *value != serde_json::json!({}));
                    }
                    value
                };
                assert_eq!(rest(left_value), rest(before), "{text}\n{after}\n{left}");
            }
        }
    }
}

/// JSON objects with blanks and comments between all tokens.
fn style() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    let blank = || {
        prop_oneof![
            Just(""),
            Just(" "),
            Just("\n"),
            Just("\n  "),
            Just("/*c*/"),
            Just(" //c\n"),
            Just("\r\n\t")
        ]
    };
    let member = (blank(), blank(), blank(), 0..4_usize, blank())
        .prop_map(|(a, b, c, kind, d)| (a, b, c, ["1", "{}", "{\"x\": 1}", "[1, 2]"][kind], d));
    let names = proptest::sample::subsequence(vec!["a", "SERVERS", "other", "b"], 0..4);
    (
        names,
        proptest::collection::vec(member, 4),
        blank(),
        blank(),
        any::<bool>(),
    )
        .prop_map(|(names, members, head, tail, comma)| {
            let members: Vec<String> = names
                .iter()
                .zip(&members)
                .map(|(name, (a, b, c, value, d))| {
                    let value = if *name == "SERVERS" { "{\"o\": 1}" } else { value };
                    format!("{a}\"{name}\"{b}:{c}{value}{d}")
                })
                .collect();
            let comma = if comma && !members.is_empty() { "," } else { "" };
            format!("{head}{{{}{comma}{tail}}}", members.join(","))
        })
}
