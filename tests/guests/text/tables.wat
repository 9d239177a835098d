;; Grows a table until the host stops it. Written by hand, because Rust has no word for it.
(module
  (memory (export "memory") 2)
  (table $table 1 funcref)

  ;; What the manifest says.
  (data (i32.const 16) "tables")
  (data (i32.const 24) "0.1.0")
  (data (i32.const 32) "Grows a table.")
  (data (i32.const 48) "tables_grow")
  (data (i32.const 60) "Grow")
  (data (i32.const 64) "Grow a table until there is no more.")
  (data (i32.const 100) "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}")
  (data (i32.const 164) "{\"type\":\"object\"}")

  ;; Its tool: name, title, description, five small fields, no members, two schemas, no aliases.
  (data (i32.const 512)
    "\30\00\00\00\0b\00\00\00" "\3c\00\00\00\04\00\00\00" "\40\00\00\00\24\00\00\00"
    "\00\00\00\00\00\00\00\00" "\00\00\00\00\00\00\00\00\00\00\00\00"
    "\64\00\00\00\3e\00\00\00" "\a4\00\00\00\11\00\00\00" "\00\00\00\00\00\00\00\00")

  ;; The manifest: name, version, summary, no instructions, wants or migrations, one tool, no prompts, no
  ;; schema of a configuration, no tool that renders.
  (data (i32.const 1024)
    "\10\00\00\00\06\00\00\00" "\18\00\00\00\05\00\00\00" "\20\00\00\00\0e\00\00\00"
    "\00\00\00\00\00\00\00\00" "\00\00\00\00\00\00\00\00" "\00\00\00\00\00\00\00\00"
    "\00\02\00\00\01\00\00\00" "\00\00\00\00\00\00\00\00" "\00\00\00\00\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\00\00\00\00\00\00")

  (global $free (mut i32) (i32.const 4096))

  ;; Where the host puts a call's arguments. Nothing is ever freed.
  (func (export "cabi_realloc") (param i32 i32 i32) (param $size i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
    (global.set $free (i32.add (local.get $at) (local.get $size)))
    (local.get $at))

  (func (export "tollgate:host/pack@0.1.0#describe") (result i32)
    (i32.const 1024))

  (func (export "tollgate:host/pack@0.1.0#call") (param i32) (result i32)
    (loop $again
      (drop (table.grow $table (ref.null func) (i32.const 1000)))
      (br $again))
    (unreachable)))
