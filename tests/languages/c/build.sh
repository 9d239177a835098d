#!/bin/sh
# Makes a component: build.sh WIT WORLD SOURCE COMPONENT
set -eu
wit=$1 world=$2 source=$3 component=$4
bindings=$(mktemp -d)
trap 'rm -rf "$bindings"' EXIT
name=$(echo "$world" | tr - _)

wit-bindgen c --world "$world" --out-dir "$bindings" "$wit"
for file in "$source" "$bindings/$name.c"; do
    clang --target=wasm32-wasi -Os -Wall -Wextra -Wno-unused-parameter -I "$bindings" \
        -c "$file" -o "$bindings/$(basename "$file" .c).o"
done
# Rust's toolchain has a linker that runs lld and makes a component of the module. No -O here: clang would run wasm-opt, if
# there is one, which reads no components.
linker=$(rustc --print sysroot)/lib/rustlib/$(rustc --print host-tuple)/bin/wasm-component-ld
clang --target=wasm32-wasi -mexec-model=reactor -fuse-ld="$linker" -Wl,--strip-debug \
    "$bindings"/*.o -o "$component"
