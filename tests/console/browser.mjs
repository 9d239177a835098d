// What the tests in a browser share: servers, a browser that tells what it complains about, and rules of accessibility.
import { spawn, execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";
import assert from "node:assert/strict";

export const options = Object.fromEntries(process.argv.slice(2).join("\n").split("--").filter(Boolean).map((pair) => pair.trim().split("\n")));
const require = createRequire(path.join(process.cwd(), "package.json"));
const { chromium } = require("playwright-core");
const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

// Whatever a browser complains about, and every dialog.
export const complaints = [];

// Starts a server, and waits until it says its address.
export class Server {
  static async start(data, { port = 0, config = "", args = ["console", "--port", String(port)], said = /^(http:\S+#\S+)\n/m } = {}) {
    const file = path.join(options.work, `${path.basename(data)}.toml`);
    fs.writeFileSync(file, config);
    const child = spawn(options.tollgate, ["--config", file, "--data-dir", data, ...args], { stdio: ["ignore", "pipe", "pipe"], cwd: options.work });
    let log = "";
    const url = await new Promise((resolve, reject) => {
      for (const stream of [child.stdout, child.stderr]) {
        stream.on("data", (text) => {
          log += text;
          const found = log.match(said);
          found && resolve(found[1]);
        });
      }
      child.on("exit", (code) => reject(new Error(`tollgate ended with ${code}: ${log}`)));
    });
    process.on("exit", () => child.kill("SIGKILL"));
    return Object.assign(new Server(), { child, data, file, url, origin: new URL(url).origin });
  }

  // Output of another command on the same data.
  run(...args) {
    return execFileSync(options.tollgate, ["--config", this.file, "--data-dir", this.data, ...args], { encoding: "utf8", cwd: options.work });
  }

  async kill(signal = "SIGKILL") {
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill(signal);
    await ended;
  }
}

export function launch() {
  const executablePath = options.chromium || "/usr/bin/chromium";
  return chromium.launch({ executablePath, chromiumSandbox: process.getuid() !== 0 });
}

export async function watch(page) {
  page.on("dialog", (dialog) => { complaints.push("dialog: " + dialog.message()); dialog.dismiss(); });
  page.on("pageerror", (error) => complaints.push("error: " + error.message));
  page.on("console", (message) => {
    if (/Content.Security.Policy|TrustedHTML|Trusted Type|Refused to/i.test(message.text())) {
      complaints.push(message.text());
    }
  });
  return page;
}

export async function logIn(context, url) {
  const page = await watch(await context.newPage());
  await page.goto(url);
  await page.waitForURL("**/console/");
  assert.equal(new URL(page.url()).hash, "", "the token does not stay in the address");
  return page;
}

// Rules of accessibility, in a page of a context that lets the checker in, and no page that is wider than a phone.
export async function accessible(page, where) {
  await page.evaluate(axe);
  const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const found = result.violations.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
  assert.deepEqual(found, [], where);
  const before = page.viewportSize();
  await page.setViewportSize({ width: 320, height: 700 });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 320, `${where} is ${wide} wide on a screen of 320`);
  await page.setViewportSize(before);
}

// Runs cases by name, and says what came of them.
export async function run(cases, ...equipment) {
  let [passed, failed] = [0, 0];
  for (const [name, test] of Object.entries(cases).filter(([name]) => name.includes(options.only || ""))) {
    try {
      await test(...equipment);
      assert.deepEqual(complaints.splice(0), [], "what the browser complained about");
      passed += 1;
      console.log(`ok ${name}`);
    } catch (error) {
      failed += 1;
      complaints.length = 0;
      console.log(`FAILED ${name}\n${error.stack}`);
    }
  }
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed ? 1 : process.exitCode;
}
