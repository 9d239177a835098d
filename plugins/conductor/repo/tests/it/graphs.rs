//! The graph of a small project in each language.

use expect_test::{Expect, expect};

use crate::harness::graph;

fn check(tree: &str, expected: Expect) {
    expected.assert_eq(&graph(tree));
}

#[test]
fn rust_modules_uses_and_workspaces() {
    check(
        r#"
== Cargo.toml
[workspace]
members = ["app", "core-lib"]
== app/Cargo.toml
[package]
name = "app"
[dependencies]
core-lib = { path = "../core-lib" }
serde = "1"
== app/src/main.rs
mod cli;
#[path = "odd/place.rs"]
mod placed;
mod gone;
mod inline { mod deep; pub fn f() {} }
use core_lib::{model::{self, Item}, *};
use serde::{Serialize as Ser};
// use commented::out;
fn main() { let _ = "use quoted::path;"; cli::run(); crate::cli::args::parse(); }
== app/src/cli.rs
pub mod args;
use super::placed::Thing;
use self::args::Args;
use Shape::Round;
enum Shape { Round }
use std::fmt;
use nowhere::Thing as Other;
const TEXT: &str = include_str!("text.md");
include!(concat!(env!("CARGO_MANIFEST_DIR"), "/build/made.rs"));
== app/src/text.md
== app/build/made.rs
== app/src/cli/args.rs
use crate::inline::f;
use crate::missing_module::deep::f;
== app/src/odd/place.rs
pub struct Thing;
== app/src/inline/deep.rs
use super::super::cli;
== app/tests/works.rs
mod common;
use app::run;
== app/tests/common/mod.rs
== core-lib/Cargo.toml
[package]
name = "core-lib"
== core-lib/src/lib.rs
pub mod model;
== core-lib/src/model.rs
use crate as root;
"#,
        expect![[r#"
            app/src/cli.rs -> app/build/made.rs, app/src/cli/args.rs, app/src/odd/place.rs, app/src/text.md
            app/src/cli/args.rs -> app/src/main.rs
            app/src/inline/deep.rs -> app/src/cli.rs
            app/src/main.rs -> app/src/cli.rs, app/src/cli/args.rs, app/src/inline/deep.rs, app/src/odd/place.rs, core-lib/src/lib.rs, core-lib/src/model.rs
            app/tests/works.rs -> app/tests/common/mod.rs
            core-lib/src/lib.rs -> core-lib/src/model.rs
            core-lib/src/model.rs -> core-lib/src/lib.rs
            missing app/src/cli.rs:7 nowhere::Thing
            missing app/src/main.rs:4 mod gone
            missing app/tests/works.rs:2 app::run
            external serde, std
            Binary app app/src/main.rs
            Library core-lib core-lib/src/lib.rs
            Test works app/tests/works.rs
        "#]],
    );
}

#[test]
fn python_packages_and_relative_names() {
    check(
        r#"
== pyproject.toml
[project]
name = "shop"
[project.scripts]
shop = "shop.cli:main"
== src/shop/__init__.py
from .cart import (  # the parts
    Cart,
    Line as L,
)
== src/shop/cart.py
import os, json as j, shop.money
from shop import cli
from . import money
from .. import outside
from .nothing import here
def late():
    import shop.gone
    from shop.data import table; import requests
"""
import not_this
"""
x = f'''import nor_this {1}'''
mod = importlib.import_module("shop.plugins.one")
== src/shop/money.py
== src/shop/cli.py
if True: import shop.cart
if __name__ == "__main__":
    main()
== src/shop/data/table.py
== src/shop/plugins/__init__.py
== src/shop/plugins/one.py
from ..money import (Euro
def broken(:
import json
== tests/test_cart.py
from shop.cart import Cart
import helpers
== tests/helpers.py
"#,
        expect![[r#"
            src/shop/__init__.py -> src/shop/cart.py
            src/shop/cart.py -> src/shop/cli.py, src/shop/data/table.py, src/shop/money.py, src/shop/plugins/one.py
            src/shop/cli.py -> src/shop/cart.py
            src/shop/plugins/one.py -> src/shop/money.py
            tests/test_cart.py -> src/shop/cart.py, tests/helpers.py
            missing src/shop/cart.py:4 ..: outside
            missing src/shop/cart.py:5 .nothing: here
            missing src/shop/cart.py:7 shop.gone
            external json, os, requests
            Binary shop src/shop/cli.py
        "#]],
    );
}

#[test]
fn javascript_by_node_and_typescript_rules() {
    check(
        r##"
== package.json
{"name": "root", "workspaces": ["packages/*"], "scripts": {"gen": "node tools/gen.js"}}
== tsconfig.json
{ // comments are allowed
  "compilerOptions": {"baseUrl": ".", "paths": {"@app/*": ["packages/app/src/*"]},},
}
== tools/gen.js
const fs = require('fs'), path = require("./lib");
try { require('./optional') } catch {}
== tools/lib/index.js
module.exports = /import x from ".\/regex"/.test(`${require("./inside")} import y from "./template"`);
== tools/lib/inside.js
== packages/app/package.json
{"name": "@acme/app", "main": "dist/index.js", "bin": {"app": "bin/app.js"}}
== packages/app/bin/app.js
#!/usr/bin/env node
import('../src/index.js');
== packages/app/src/index.ts
import type { A } from "@app/types";
import { ui } from '@acme/ui';
import { button } from '@acme/ui/button';
import React, { useState } from "react";
export * from './view';
export { a as b } from "./view.js";
import data from "./data.json";
import "./gone.css";
import x = require("./types");
// import "./commented";
const url = new URL("./worker.js", import.meta.url);
== packages/app/src/view.tsx
import { b } from "#internal";
export const V = () => <p>Don't import "./this" {require("./types")}</p>;
== packages/app/src/types.ts
== packages/app/src/data.json
{}
== packages/app/src/worker.js
== packages/ui/package.json
{"name": "@acme/ui", "exports": {".": {"types": "./x.d.ts", "import": "./src/main.js"}, "./button": "./src/button.js"}}
== packages/ui/src/main.js
== packages/ui/src/button.js
import { ui } from "@acme/ui";
"##,
        expect![[r#"
            packages/app/bin/app.js -> packages/app/src/index.ts
            packages/app/src/index.ts -> packages/app/src/data.json, packages/app/src/types.ts, packages/app/src/view.tsx, packages/app/src/worker.js, packages/ui/src/button.js, packages/ui/src/main.js
            packages/ui/src/button.js -> packages/ui/src/main.js
            tools/gen.js -> tools/lib/index.js
            tools/lib/index.js -> tools/lib/inside.js
            missing packages/app/src/index.ts:8 ./gone.css
            missing packages/app/src/view.tsx:1 #internal
            external ./optional, node, react
            Binary @acme/app packages/app/bin/app.js
            Library @acme/app packages/app/src/index.ts
            Library @acme/ui -
            Library @acme/ui packages/ui/src/button.js
            Library @acme/ui packages/ui/src/main.js
            Script app packages/app/bin/app.js
            Script gen tools/gen.js
            Command gen -
        "#]],
    );
}

#[test]
fn go_packages_below_the_module() {
    check(
        r#"
== go.mod
module example.com/shop // the shop
replace example.com/tax => ./third/tax
== main.go
// Package main sells.
package main

import "fmt"
import (
	cart "example.com/shop/internal/cart"
	_ "example.com/tax/rates"
	"example.com/shop/gone"
	`github.com/pkg/errors`
)

func main() { fmt.Println("import \"no\"") }
== internal/cart/cart.go
package cart
== internal/cart/line.go
package cart
== internal/cart/cart_test.go
package cart
import "testing"
== third/tax/go.mod
module example.com/tax
== third/tax/rates/rates.go
package rates
"#,
        expect![[r#"
            main.go -> internal/cart/cart.go, internal/cart/line.go, third/tax/rates/rates.go
            missing main.go:8 example.com/shop/gone
            external fmt, github.com/pkg/errors, testing
            Binary main main.go
        "#]],
    );
}

#[test]
fn java_types_by_package() {
    check(
        r#"
== pom.xml
<project><artifactId>shop</artifactId><build><x><mainClass>com.shop.Main</mainClass></x></build></project>
== src/main/java/com/shop/Main.java
package com.shop;
import com.shop.cart.Cart;
import com.shop.cart.Cart.Line;
import static com.shop.cart.Prices.of;
import com.shop.util.*;
import com.shop.cart.Gone;
import java.util.List;
/* import com.shop.No; */
public class Main {
  String s = "import com.shop.Text;";
  Helper helper = """
     import Block;
  """;
  public static void main(String[] args) {}
}
class Second {}
== src/main/java/com/shop/Helper.java
package com.shop;
class Helper { Second second; }
== src/main/java/com/shop/cart/Cart.java
package com.shop.cart;
public class Cart { class Line {} }
== src/main/java/com/shop/cart/Prices.java
package com.shop.cart;
== src/main/java/com/shop/util/A.java
package com.shop.util;
== src/main/java/com/shop/util/B.java
package com.shop.util;
"#,
        expect![[r#"
            src/main/java/com/shop/Helper.java -> src/main/java/com/shop/Main.java
            src/main/java/com/shop/Main.java -> src/main/java/com/shop/Helper.java, src/main/java/com/shop/cart/Cart.java, src/main/java/com/shop/cart/Prices.java, src/main/java/com/shop/util/A.java, src/main/java/com/shop/util/B.java
            missing src/main/java/com/shop/Main.java:6 com.shop.cart.Gone
            external java.util
            Binary Main src/main/java/com/shop/Main.java
        "#]],
    );
}

#[test]
fn c_headers_beside_and_below_include_directories() {
    check(
        r##"
== src/main.c
#include "util.h"
  #  include <shop/cart.h>
#include <stdio.h>
#include <vector>
#include "gone.h"
#include <openssl/ssl.h>
// #include "commented.h"
const char *s = "#include \"text.h\"";
#ifdef X
#include "../third/odd.hpp"
#endif
int main(void) { return 0; }
== src/util.h
#pragma once
== src/util.c
#include "util.h"
== include/shop/cart.h
#include "line.h"
== include/shop/line.h
== other/shop/line.h
== third/odd.hpp
auto s = R"x(
#include "raw.h"
)x";
"##,
        expect![[r#"
            include/shop/cart.h -> include/shop/line.h
            src/main.c -> include/shop/cart.h, src/util.h, third/odd.hpp
            src/util.c -> src/util.h
            missing src/main.c:5 gone.h
            external openssl/ssl.h, stdio.h, vector
            Binary main src/main.c
        "#]],
    );
}

#[test]
fn rust_in_quotes_and_comments_is_no_import() {
    let found = graph(
        r##"
== Cargo.toml
[package]
name = "x"
== src/lib.rs
#!/usr/bin/env run
mod a;
fn f<'a>(x: &'a str) -> char {
    let _ = (r#"mod q;"#, '"', b'\'', "\"mod r;", c"mod s;", br"\", 1..2, 0xff_u8);
    /* /* mod t; */ mod u; */
    crate::b::g::<'static>('\u{41}')
}
mod b;
== src/a.rs
== src/b.rs
"##,
    );
    expect![[r#"
        src/lib.rs -> src/a.rs, src/b.rs
        external 
        Library x src/lib.rs
    "#]]
    .assert_eq(&found);
}

#[test]
fn imports_below_everything_else_are_found() {
    let found = graph(
        r#"
== a.py
x = "import nothing"
def f():
    """import nothing"""
    from b import (
        y,
    )
== b.py
if __name__=="__main__":
    run()
== c.js
const s = `import './a'`;
function f() { return import('./d.js') }
== d.js
export const x = 1;
export {
  x as y } from './c.js';
"#,
    );
    expect![[r#"
        a.py -> b.py
        c.js -> d.js
        d.js -> c.js
        external 
        Script b b.py
    "#]]
    .assert_eq(&found);
}
