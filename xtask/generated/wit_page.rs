//! Generator of `docs/wit.md`, from the documentation of the interfaces in `wit/`.

use std::fmt::Write as _;
use std::path::Path;

use wit_parser::{
    Docs, Function, Handle, Interface, Resolve, Type, TypeDef, TypeDefKind, TypeId, World, WorldItem,
    WorldKey,
};

const HEAD: &str = "<!-- Generated from wit/ by `cargo xtask docs`. -->

# The interfaces of components

Interfaces that the host offers to components, and interfaces that components export. This page is generated from the comments in
[wit/](../wit). Packs and policies in Rust use these interfaces through the SDK ([packs](writing-a-pack.md),
[policies](writing-a-policy.md)). [Other languages](languages.md) use bindings that are generated from the same files.
";

/// Page about a folder of interfaces.
pub(super) fn page(interfaces: &Path) -> anyhow::Result<String> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(interfaces)?;
    let package = &resolve.packages[package];
    let mut page = Page {
        resolve: &resolve,
        text: HEAD.to_owned(),
    };
    let _ = writeln!(page.text, "\nPackage `{}`.\n\n## Worlds", package.name);
    for world in package.worlds.values() {
        page.world(&resolve.worlds[*world]);
    }
    let mut all: Vec<_> = package.interfaces.iter().collect();
    all.sort();
    for (name, interface) in all {
        page.interface(name, &resolve.interfaces[*interface]);
    }
    Ok(page.text)
}

struct Page<'a> {
    resolve: &'a Resolve,
    text: String,
}

impl Page<'_> {
    fn world(&mut self, world: &World) {
        let _ = writeln!(self.text, "\n### world `{}`\n", world.name);
        self.docs(&world.docs);
        self.text.push('\n');
        for (what, items) in [("imports", &world.imports), ("exports", &world.exports)] {
            let names = items.iter().filter_map(|(key, item)| match (key, item) {
                (WorldKey::Interface(_), WorldItem::Interface { id, .. }) => {
                    let name = self.resolve.interfaces[*id].name.as_deref()?;
                    Some(format!("[`{name}`](#interface-{name})"))
                }
                _ => None,
            });
            let names: Vec<String> = names.collect();
            let _ = writeln!(self.text, "* {what}: {}", names.join(", "));
        }
    }

    fn interface(&mut self, name: &str, interface: &Interface) {
        let _ = writeln!(self.text, "\n## interface `{name}`\n");
        self.docs(&interface.docs);
        for (name, id) in &interface.types {
            self.definition(name, *id, interface);
        }
        for function in interface
            .functions
            .values()
            .filter(|function| !is_member(function))
        {
            self.function(&function.name, function);
        }
    }

    fn definition(&mut self, name: &str, id: TypeId, interface: &Interface) {
        let definition = &self.resolve.types[id];
        if let TypeDefKind::Type(Type::Id(other)) = &definition.kind
            && let Some(from) = self.interface_of(&self.resolve.types[*other])
        {
            let _ = writeln!(self.text, "\nUses `{name}` from [`{from}`](#interface-{from}).");
            return;
        }
        let _ = writeln!(self.text, "\n### {} `{name}`\n", definition.kind.as_str());
        self.docs(&definition.docs);
        match &definition.kind {
            TypeDefKind::Record(record) => {
                let fields = record.fields.iter();
                let fields =
                    fields.map(|field| (format!("{}: {}", field.name, self.of(&field.ty)), &field.docs));
                let fields: Vec<_> = fields.collect();
                self.rows(&fields);
            }
            TypeDefKind::Variant(variant) => {
                let cases = variant.cases.iter();
                let cases = cases.map(|case| {
                    let holds = case.ty.as_ref().map(|ty| format!("({})", self.of(ty)));
                    (format!("{}{}", case.name, holds.unwrap_or_default()), &case.docs)
                });
                let cases: Vec<_> = cases.collect();
                self.rows(&cases);
            }
            TypeDefKind::Enum(choice) => {
                let cases = choice.cases.iter();
                let cases: Vec<_> = cases.map(|case| (case.name.clone(), &case.docs)).collect();
                self.rows(&cases);
            }
            TypeDefKind::Resource => {
                let functions = interface.functions.values();
                for function in functions.filter(|function| function.kind.resource() == Some(id)) {
                    let own = function.name.rsplit('.').next().unwrap_or(&function.name);
                    self.function(&format!("{name}.{own}"), function);
                }
            }
            TypeDefKind::Type(ty) => {
                let _ = writeln!(self.text, "\n`{}`", self.of(ty));
            }
            _ => {
                let _ = writeln!(self.text, "\n`{}`", self.kind(definition));
            }
        }
    }

    /// Adds a table of fields, cases or names, each with its documentation.
    fn rows(&mut self, rows: &[(String, &Docs)]) {
        self.text.push('\n');
        for (row, docs) in rows {
            let docs = joined(docs);
            let gap = if docs.is_empty() { "" } else { ": " };
            let _ = writeln!(self.text, "* `{row}`{gap}{docs}");
        }
    }

    fn function(&mut self, name: &str, function: &Function) {
        let params = function.params.iter().filter(|param| param.name != "self");
        let params: Vec<String> = params
            .map(|param| format!("{}: {}", param.name, self.of(&param.ty)))
            .collect();
        let result = function.result.as_ref().map(|ty| format!(" -> {}", self.of(ty)));
        let _ = writeln!(
            self.text,
            "\n### `{name}`\n\n```wit\n{name}: func({}){}\n```\n",
            params.join(", "),
            result.unwrap_or_default()
        );
        self.docs(&function.docs);
    }

    fn docs(&mut self, docs: &Docs) {
        if let Some(text) = &docs.contents {
            let _ = writeln!(self.text, "{}", text.trim());
        }
    }

    fn interface_of(&self, definition: &TypeDef) -> Option<String> {
        match definition.owner {
            wit_parser::TypeOwner::Interface(id) => self.resolve.interfaces[id].name.clone(),
            _ => None,
        }
    }

    /// Type in WIT syntax.
    fn of(&self, ty: &Type) -> String {
        match ty {
            Type::Id(id) => {
                let definition = &self.resolve.types[*id];
                definition.name.clone().unwrap_or_else(|| self.kind(definition))
            }
            Type::String => "string".to_owned(),
            other => format!("{other:?}").to_lowercase(),
        }
    }

    fn kind(&self, definition: &TypeDef) -> String {
        let optional = |ty: &Option<Type>| ty.as_ref().map_or_else(|| "_".to_owned(), |ty| self.of(ty));
        match &definition.kind {
            TypeDefKind::List(ty) => format!("list<{}>", self.of(ty)),
            TypeDefKind::Option(ty) => format!("option<{}>", self.of(ty)),
            TypeDefKind::Tuple(tuple) => {
                let types: Vec<String> = tuple.types.iter().map(|ty| self.of(ty)).collect();
                format!("tuple<{}>", types.join(", "))
            }
            TypeDefKind::Result(result) => match (&result.ok, &result.err) {
                (ok, None) => format!("result<{}>", optional(ok)),
                (ok, err) => format!("result<{}, {}>", optional(ok), optional(err)),
            },
            TypeDefKind::Handle(Handle::Own(id) | Handle::Borrow(id)) => self.of(&Type::Id(*id)),
            other => other.as_str().to_owned(),
        }
    }
}

/// Returns whether a function belongs to a resource.
fn is_member(function: &Function) -> bool {
    function.kind.resource().is_some()
}

/// Documentation in one line.
fn joined(docs: &Docs) -> String {
    let text = docs.contents.as_deref().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
