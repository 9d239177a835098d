//! Frameworks of JavaScript, by the dependencies of the package around a file.

use std::collections::BTreeMap;

use super::Run;
use crate::language::{self, Language};
use crate::manifest::Manifest;
use crate::path;
use crate::resolve::Index;

/// A framework that runs files by their place.
struct Framework {
    name: &'static str,
    /// Packages that bring it; one ending in `/` stands for all of a scope.
    dependencies: &'static [&'static str],
    /// Beginning of the name of its settings.
    settings: &'static str,
    /// Checks a path below the package, without a leading `src/`.
    runs: fn(&str) -> bool,
}

const FRAMEWORKS: [Framework; 17] = [
    Framework {
        name: "Next.js",
        dependencies: &["next"],
        settings: "next.config.",
        runs: next,
    },
    Framework {
        name: "SvelteKit",
        dependencies: &["@sveltejs/kit"],
        settings: "svelte.config.",
        runs: svelte_kit,
    },
    Framework {
        name: "Nuxt",
        dependencies: &["nuxt", "nuxt3"],
        settings: "nuxt.config.",
        runs: nuxt,
    },
    Framework {
        name: "Remix",
        dependencies: &["@remix-run/", "@react-router/dev"],
        settings: "remix.config.",
        runs: remix,
    },
    Framework {
        name: "Astro",
        dependencies: &["astro"],
        settings: "astro.config.",
        runs: astro,
    },
    Framework {
        name: "Gatsby",
        dependencies: &["gatsby"],
        settings: "gatsby-config.",
        runs: gatsby,
    },
    Framework {
        name: "Expo",
        dependencies: &["expo", "react-native"],
        settings: "app.config.",
        runs: expo,
    },
    Framework {
        name: "Storybook",
        dependencies: &["storybook", "@storybook/"],
        settings: "",
        runs: stories,
    },
    Framework {
        name: "Cypress",
        dependencies: &["cypress"],
        settings: "cypress.config.",
        runs: cypress,
    },
    Framework {
        name: "React Scripts",
        dependencies: &["react-scripts", "@rsbuild/core", "@craco/craco"],
        settings: "",
        runs: index_or_setup,
    },
    Framework {
        name: "Vue CLI",
        dependencies: &["@vue/cli-service", "parcel"],
        settings: "vue.config.",
        runs: main,
    },
    Framework {
        name: "Angular",
        dependencies: &["@angular/core"],
        settings: "",
        runs: main,
    },
    Framework {
        name: "a Node server",
        dependencies: &[
            "express",
            "fastify",
            "koa",
            "@hapi/hapi",
            "hono",
            "@nestjs/core",
            "restify",
            "@adonisjs/core",
        ],
        settings: "",
        runs: server,
    },
    Framework {
        name: "Fastify",
        dependencies: &["@fastify/autoload", "fastify-autoload"],
        settings: "",
        runs: autoload,
    },
    Framework {
        name: "a database migrator",
        dependencies: &[
            "knex",
            "typeorm",
            "sequelize",
            "umzug",
            "@mikro-orm/core",
            "drizzle-orm",
            "prisma",
        ],
        settings: "",
        runs: migration,
    },
    Framework {
        name: "Docusaurus",
        dependencies: &["@docusaurus/core"],
        settings: "docusaurus.config.",
        runs: docs,
    },
    Framework {
        name: "VitePress",
        dependencies: &["vitepress"],
        settings: "",
        runs: docs,
    },
];

/// Adds the files that frameworks run.
pub(super) fn find(index: &Index<'_>, run: &mut Run) {
    let packages = packages(index);
    for file in 0..index.len() {
        let path = index.path(file);
        let name = path::name(path);
        if index.language(file) != Some(Language::JavaScript) || language::is_settings(name) {
            continue;
        }
        let above = path::ancestors(path);
        // A package may be configured at its own root and depend on what the root of the repository has.
        for directory in above {
            let Some(frameworks) = packages.get(directory) else {
                continue;
            };
            let inside = path::relative(path, directory).unwrap_or(path);
            let inside = inside.strip_prefix("src/").unwrap_or(inside);
            if let Some(found) = frameworks.iter().find(|framework| (framework.runs)(inside)) {
                run.entry(file).or_insert(found.name);
                break;
            }
            if !frameworks.is_empty() {
                break;
            }
        }
        if is_function(index, path) {
            run.entry(file).or_insert("a host of functions");
        }
    }
}

/// Frameworks of each directory with a manifest or settings.
fn packages<'a>(index: &Index<'a>) -> BTreeMap<&'a str, Vec<&'static Framework>> {
    let mut packages: BTreeMap<&str, Vec<&'static Framework>> = BTreeMap::new();
    let mut add = |directory: &'a str, framework: &'static Framework| {
        let known = packages.entry(directory).or_default();
        if !known.iter().any(|known| known.name == framework.name) {
            known.push(framework);
        }
    };
    for file in 0..index.len() {
        let path = index.path(file);
        let (directory, name) = (path::parent(path), path::name(path));
        let settings = FRAMEWORKS
            .iter()
            .filter(|framework| !framework.settings.is_empty());
        settings
            .filter(|framework| name.starts_with(framework.settings))
            .for_each(|framework| add(directory, framework));
        let manifest = index.facts(file).and_then(|facts| facts.manifest.as_ref());
        if let Some(Manifest::Npm(npm)) = manifest {
            let uses = |wanted: &str| {
                let is =
                    |name: &String| name == wanted || (wanted.ends_with('/') && name.starts_with(wanted));
                npm.dependencies.iter().any(is)
            };
            let found = FRAMEWORKS
                .iter()
                .filter(|framework| framework.dependencies.iter().any(|name| uses(name)));
            found.for_each(|framework| add(directory, framework));
        }
    }
    packages
}

/// Functions that a host starts by their place.
fn is_function(index: &Index<'_>, path: &str) -> bool {
    let hosts = [
        ("vercel.json", "api"),
        ("netlify.toml", "netlify/functions"),
        ("netlify.toml", "netlify/edge-functions"),
        ("supabase/config.toml", "supabase/functions"),
        ("wrangler.toml", "functions"),
    ];
    path::ancestors(path).any(|directory| {
        let inside = path::relative(path, directory).unwrap_or(path);
        hosts.iter().any(|(settings, folder)| {
            let below = inside.strip_prefix(folder);
            below.is_some_and(|below| below.starts_with('/'))
                && index.find(&path::below(directory, settings)).is_some()
        })
    })
}

/// Name without any extension: `page` of `app/page.server.tsx`.
fn first(inside: &str) -> &str {
    path::name(inside).split('.').next().unwrap_or_default()
}

fn is_below(inside: &str, folders: &[&str]) -> bool {
    inside
        .split_once('/')
        .is_some_and(|(folder, _)| folders.contains(&folder))
}

fn next(inside: &str) -> bool {
    let stem = first(inside).trim_end_matches(|c: char| c.is_ascii_digit());
    let routes = [
        "page",
        "layout",
        "template",
        "loading",
        "error",
        "global-error",
        "not-found",
        "default",
        "route",
        "forbidden",
        "unauthorized",
        "sitemap",
        "robots",
        "manifest",
        "opengraph-image",
        "twitter-image",
        "icon",
        "apple-icon",
    ];
    let tops = [
        "middleware",
        "proxy",
        "instrumentation",
        "instrumentation-client",
        "mdx-components",
        "next-env",
    ];
    is_below(inside, &["pages"])
        || (is_below(inside, &["app"]) && routes.contains(&stem))
        || (!inside.contains('/') && tops.contains(&stem))
}

fn svelte_kit(inside: &str) -> bool {
    let tops = ["hooks", "service-worker", "instrumentation", "app"];
    (is_below(inside, &["routes"]) && path::name(inside).starts_with('+'))
        || is_below(inside, &["params"])
        || (!inside.contains('/') && tops.contains(&first(inside)))
}

fn nuxt(inside: &str) -> bool {
    let inside = inside.strip_prefix("app/").unwrap_or(inside);
    let folders = [
        "pages",
        "layouts",
        "components",
        "composables",
        "utils",
        "middleware",
        "plugins",
        "server",
        "modules",
        "store",
        "stores",
        "layers",
    ];
    is_below(inside, &folders)
        || (!inside.contains('/') && matches!(first(inside), "app" | "error" | "router"))
}

fn remix(inside: &str) -> bool {
    let Some(inside) = inside.strip_prefix("app/") else {
        return !inside.contains('/') && first(inside) == "server";
    };
    is_below(inside, &["routes"])
        || (!inside.contains('/') && matches!(first(inside), "root" | "entry" | "routes"))
}

fn astro(inside: &str) -> bool {
    is_below(inside, &["pages", "actions"])
        || matches!(
            inside.split('.').next(),
            Some("content/config" | "content" | "middleware" | "middleware/index")
        )
}

fn gatsby(inside: &str) -> bool {
    is_below(inside, &["pages", "api"]) || (!inside.contains('/') && inside.starts_with("gatsby-"))
}

fn expo(inside: &str) -> bool {
    is_below(inside, &["app"]) || (!inside.contains('/') && matches!(first(inside), "App" | "index"))
}

fn stories(inside: &str) -> bool {
    path::stem(inside).ends_with(".stories") || path::stem(inside).ends_with(".story")
}

fn cypress(inside: &str) -> bool {
    is_below(inside, &["cypress"])
}

fn index_or_setup(inside: &str) -> bool {
    !inside.contains('/')
        && matches!(
            first(inside),
            "index" | "main" | "setupTests" | "setupProxy" | "reportWebVitals"
        )
}

fn main(inside: &str) -> bool {
    !inside.contains('/')
        && matches!(
            first(inside),
            "main" | "index" | "polyfills" | "test" | "registerServiceWorker"
        )
}

fn server(inside: &str) -> bool {
    !inside.contains('/') && matches!(first(inside), "index" | "main" | "server" | "app")
}

fn autoload(inside: &str) -> bool {
    is_below(inside, &["plugins", "routes"])
}

fn migration(inside: &str) -> bool {
    let mut folders = path::parent(inside).split('/');
    folders.any(|folder| matches!(folder, "migrations" | "migration" | "seeds" | "seeders"))
        || (is_below(inside, &["prisma"]) && first(inside) == "seed")
}

fn docs(inside: &str) -> bool {
    is_below(inside, &["pages", "theme"]) || first(inside) == "sidebars"
}
