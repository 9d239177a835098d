//! The tool table: descriptions, and schemas as clients see them.

use convergence::PACK;
use expect_test::expect_file;
use serde_json::Value;

#[test]
fn everything_that_clients_see_is_described() {
    for tool in PACK.tools {
        for schema in [(tool.input_schema)(), (tool.output_schema)()] {
            assert_eq!(schema["type"], "object", "{}", tool.name);
            each_property(&schema, tool.name, &mut |path, property| {
                let known = ["name", "used", "limit", "passed", "failed", "skipped", "total"];
                let plain = ["files_changed", "insertions", "deletions"];
                let name = path.rsplit('.').next().unwrap_or_default();
                let described = property["description"].is_string();
                assert!(
                    described || known.contains(&name) || plain.contains(&name),
                    "{path}"
                );
                for key in ["oneOf", "anyOf", "allOf", "$ref"] {
                    assert_eq!(property.get(key), None, "{path} has {key}");
                }
            });
        }
    }
}

fn each_property(schema: &Value, path: &str, visit: &mut impl FnMut(&str, &Value)) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        visit(&path, property);
        each_property(property, &path, visit);
        each_property(&property["items"], &path, visit);
    }
}

#[test]
fn the_schemas_as_clients_see_them() {
    let mut text = String::new();
    for tool in PACK.tools {
        let schema = serde_json::to_string_pretty(&(tool.input_schema)()).unwrap();
        text += &format!("{} ({:?}, {:?})\n{schema}\n\n", tool.name, tool.effect, tool.tier);
    }
    let config = PACK.config_schema.unwrap()();
    text += &format!("config\n{}\n", serde_json::to_string_pretty(&config).unwrap());
    expect_file!["snapshots/input_schemas.txt"].assert_eq(&text);
}
