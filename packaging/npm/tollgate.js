#!/usr/bin/env node
"use strict";
// Starts the `tollgate` program that the package for this platform holds. Nothing is downloaded, here or when the
// package is installed.

const { spawn } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const own = require("../package.json");

// The packages that hold a program, by platform. They have this package's version.
const packages = own.tollgate.platforms;

// The loader of programs that are linked against glibc. Systems with another C library lack it.
const loaders = { x64: "/lib64/ld-linux-x86-64.so.2", arm64: "/lib/ld-linux-aarch64.so.1" };

// Signals that a supervisor or a terminal sends. SIGUSR1 belongs to Node's debugger.
const signals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR2", "SIGWINCH"];

function fail(text) {
  process.stderr.write(`tollgate: ${text}\n`);
  process.exit(1);
}

function platform() {
  const name = `${process.platform}-${process.arch}`;
  return process.platform === "linux" ? `${name}-gnu` : name;
}

function program() {
  const supported = `tollgate runs on ${Object.keys(packages).join(", ")}`;
  const name = packages[platform()];
  if (!name) fail(`there is no program for ${process.platform}-${process.arch}; ${supported}`);
  const loader = process.platform === "linux" && loaders[process.arch];
  if (loader && !fs.existsSync(loader)) {
    fail(`this system has no ${loader}, and the program needs glibc; ${supported}`);
  }
  let manifest;
  try {
    manifest = require.resolve(`${name}/package.json`, { paths: [__dirname] });
  } catch {
    fail(`the package ${name}@${own.version} is not installed; install it beside this one (${supported})`);
  }
  const { version } = JSON.parse(fs.readFileSync(manifest, "utf8"));
  if (version !== own.version) {
    fail(`${manifest} has version ${version}; this package needs ${name}@${own.version}`);
  }
  const file = path.join(path.dirname(manifest), "bin", "tollgate");
  try {
    fs.accessSync(file, fs.constants.X_OK);
  } catch (error) {
    fail(`${file} cannot be run: ${error.message}; install ${name}@${own.version} again`);
  }
  return file;
}

// A second process stays in between, hands signals on and ends as the program ended.
function supervise(file, args) {
  const child = spawn(file, args, { stdio: "inherit" });
  for (const signal of signals) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => fail(`${file} cannot be started: ${error.message}`));
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code);
    for (const name of signals) process.removeAllListeners(name);
    process.kill(process.pid, signal);
    // A signal that is ignored or that ends nothing: the number that shells use.
    setTimeout(() => process.exit(128 + (os.constants.signals[signal] ?? 0)), 100);
  });
}

const file = program();
const args = process.argv.slice(2);
// Node 22.15 and newer can become the program: one process less, and even SIGKILL reaches it.
if (typeof process.execve === "function") process.execve(file, [file, ...args], process.env);
else supervise(file, args);
