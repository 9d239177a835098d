// The console in a real browser. Started by `cargo xtask console-test`, which names the programs and folders:
//   node console.mjs --tollgate FILE --sample FILE --work DIR [--images DIR] [--rows N] [--chromium FILE] [--only WORDS]
import { spawn, execFileSync } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { createRequire } from "node:module";
import assert from "node:assert/strict";

const options = Object.fromEntries(process.argv.slice(2).join("\n").split("--").filter(Boolean).map((pair) => pair.trim().split("\n")));
const require = createRequire(path.join(process.cwd(), "package.json"));
const { chromium } = require("playwright-core");
const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const parser = "/console/envelopes/env_01m8qk3v7w2r5parser00haqfsf7z";
const hostile = "/console/envelopes/" + encodeURIComponent("env_01m8qk3v7w2<b>hostile</b>\"'");
const pages = ["/console/", "/console/?q=failed", "/console/envelopes", "/console/envelopes?state=open", "/console/approvals",
  "/console/policies", "/console/tests", "/console/stats?since=14d", "/console/stats?since=1h", "/console/host?check"];

// Whatever a browser complains about, and every dialog.
const complaints = [];

function sample(data, ...args) {
  execFileSync(options.sample, [data, ...args.map(String)], { stdio: ["ignore", "ignore", "inherit"] });
}

class Server {
  static async start(data, port = 0) {
    const config = path.join(options.work, "tollgate.toml");
    fs.writeFileSync(config, "");
    const child = spawn(options.tollgate, ["--config", config, "--data-dir", data, "console", "--port", String(port)],
      { stdio: ["ignore", "pipe", "pipe"], cwd: options.work });
    let log = "";
    child.stderr.on("data", (text) => (log += text));
    const url = await new Promise((resolve, reject) => {
      let text = "";
      child.stdout.on("data", (more) => {
        text += more;
        const found = text.match(/^(http:\S+#\S+)\n/m);
        found && resolve(found[1]);
      });
      child.on("exit", (code) => reject(new Error(`tollgate console ended with ${code}: ${log}`)));
    });
    return Object.assign(new Server(), { child, data, url, origin: new URL(url).origin });
  }

  async kill(signal = "SIGKILL") {
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill(signal);
    await ended;
  }
}

async function watch(page) {
  page.on("dialog", (dialog) => { complaints.push("dialog: " + dialog.message()); dialog.dismiss(); });
  page.on("pageerror", (error) => complaints.push("error: " + error.message));
  page.on("console", (message) => {
    if (/Content.Security.Policy|TrustedHTML|Trusted Type|Refused to/i.test(message.text())) {
      complaints.push(message.text());
    }
  });
  return page;
}

async function logIn(context, url) {
  const page = await watch(await context.newPage());
  await page.goto(url);
  await page.waitForURL("**/console/");
  assert.equal(new URL(page.url()).hash, "", "the token does not stay in the address");
  return page;
}

// Rules of accessibility, in a page of a context that lets the checker in.
async function accessible(page, where) {
  await page.evaluate(axe);
  const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const found = result.violations.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
  assert.deepEqual(found, [], where);
}

const seqs = (page) => page.$$eval("#rows tr", (rows) => rows.map((row) => Number(row.dataset.seq)));

const cases = {
  async "every page is accessible, empty and full, in both colour schemes and on a phone"(browser, server) {
    for (const state of ["empty", "full"]) {
      if (state === "full") {
        sample(server.data, "fill");
      }
      for (const colorScheme of ["light", "dark"]) {
        const context = await browser.newContext({ colorScheme, bypassCSP: true, storageState: server.cookies });
        const page = await context.newPage();
        for (const address of state === "full" ? [...pages, parser, "/console/operations/613"] : [...pages, "/console/login"]) {
          await page.goto(server.origin + address);
          await accessible(page, `${state} ${colorScheme} ${address}`);
          await page.setViewportSize({ width: 320, height: 700 });
          const wide = await page.evaluate(() => document.documentElement.scrollWidth);
          assert.ok(wide <= 320, `${address} is ${wide} wide on a screen of 320`);
          await page.setViewportSize({ width: 1400, height: 900 });
        }
        await context.close();
      }
    }
  },

  async "a row is on the screen within a second of its commit"(browser, server, page) {
    await page.goto(server.origin + "/console/");
    await page.waitForSelector(".connection.on");
    for (let round = 0; round < 5; round++) {
      const before = (await seqs(page))[0];
      sample(server.data, "add", 1);
      const committed = Date.now();
      await page.waitForSelector(`#rows tr[data-seq="${before + 1}"]`, { timeout: 5000 });
      const took = Date.now() - committed;
      console.log(`  on the screen after ${took} ms`);
      assert.ok(took < 1000, `${took} ms`);
    }
  },

  async "pausing holds rows back, and loses none"(browser, server, page) {
    await page.goto(server.origin + "/console/");
    await page.waitForSelector(".connection.on");
    const before = (await seqs(page))[0];
    await page.keyboard.press("p");
    sample(server.data, "add", 3);
    await page.waitForFunction(() => document.querySelector("#connection").textContent.includes("3 new"));
    assert.equal((await seqs(page))[0], before);
    await page.keyboard.press("p");
    assert.deepEqual((await seqs(page)).slice(0, 4), [before + 3, before + 2, before + 1, before]);
  },

  async "a server that is killed comes back without a gap"(browser, server, page) {
    await page.goto(server.origin + "/console/");
    await page.waitForSelector(".connection.on");
    const port = new URL(server.origin).port;
    await server.kill();
    await page.waitForSelector(".connection.off");
    sample(server.data, "add", 7);
    Object.assign(server, await Server.start(server.data, port));
    sample(server.data, "add", 2);
    await page.waitForSelector(".connection.on", { timeout: 20000 });
    const head = await newest(server);
    await page.waitForSelector(`#rows tr[data-seq="${head}"]`, { timeout: 10000 });
    const shown = await seqs(page);
    for (let at = 1; at < shown.length; at++) {
      assert.equal(shown[at - 1] - shown[at], 1, `a gap before ${shown[at - 1]}`);
    }
  },

  async "keys move, filter and lead to pages"(browser, server, page) {
    await page.goto(server.origin + "/console/");
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("k");
    assert.equal(await page.$$eval("tr.chosen", (rows) => rows.length), 1);
    await page.keyboard.press("/");
    await page.keyboard.type("code:frozen");
    await page.waitForURL("**q=code%3Afrozen");
    assert.equal(await page.evaluate(() => document.activeElement.id), "filter", "the filter keeps the focus");
    const outcomes = await page.$$eval("#rows td.outcome > span", (cells) => cells.map((cell) => cell.textContent));
    assert.ok(outcomes.length > 0 && outcomes.every((outcome) => outcome === "FROZEN"), outcomes.join());
    await page.keyboard.press("Escape");
    await page.keyboard.press("g");
    await page.keyboard.press("e");
    await page.waitForURL("**/console/envelopes");
    await page.keyboard.press("?");
    assert.ok(await page.$eval("#keys", (dialog) => dialog.open));
  },

  async "parts change while one looks, and the focus stays"(browser, server, page) {
    await page.goto(server.origin + "/console/");
    await page.waitForSelector(".connection.on");
    const link = page.locator("#part-envelopes h3 a").first();
    await link.focus();
    const href = await link.getAttribute("href");
    sample(server.data, "hostile");
    await page.waitForFunction(() => document.querySelector("#part-envelopes").textContent.includes("<img"), null, { timeout: 5000 });
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute("href")), href);
  },

  async "hostile text is text"(browser, server, page) {
    const head = await newest(server);
    const operations = [0, 1, 2, 3, 4].map((back) => `/console/operations/${head - back}`);
    for (const address of [...pages, parser, hostile, ...operations, "/console/?q=%3Cscript%3Ealert(1)%3C/script%3E"]) {
      const answer = await page.goto(server.origin + address);
      assert.equal(answer.status(), 200, address);
      assert.equal(await page.$$eval("main img, main script, main iframe, main style, main b[onload]", (found) => found.length), 0, address);
    }
  },

  async "forged requests are refused and leave no row"(browser, server, page) {
    const head = await newest(server);
    const post = (headers) => fetch(server.origin + "/console/logout", {
      method: "POST", redirect: "manual", body: "form=1", headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
    });
    assert.equal((await post({})).status, 401);
    assert.ok([401, 403].includes((await post({ origin: "https://evil.example" })).status));
    const cookie = server.cookies.cookies.map((one) => `${one.name}=${one.value}`).join("; ");
    assert.equal((await post({ cookie })).status, 403, "a browser says where a form comes from");
    assert.equal((await post({ cookie, "sec-fetch-site": "same-origin" })).status, 403, "the form lacks its token");
    const named = await new Promise((resolve) => {
      http.get(server.origin + "/console/login", { headers: { host: "evil.example" } }, (answer) => resolve(answer.statusCode));
    });
    assert.equal(named, 403, "a name that leads here is refused");
    assert.equal(await newest(server), head);
    await page.goto(server.origin + "/console/");
    assert.equal(await page.title(), "Live · Tollgate", "nobody was logged out");
    const stranger = await browser.newContext();
    const there = await stranger.newPage();
    await there.goto(server.origin + "/console/");
    assert.match(there.url(), /\/console\/login$/);
    await stranger.close();
  },

  async "pages work without script"(browser, server) {
    const context = await browser.newContext({ javaScriptEnabled: false, storageState: server.cookies });
    const page = await context.newPage();
    for (const address of [...pages, parser]) {
      assert.equal((await page.goto(server.origin + address)).status(), 200, address);
    }
    await page.goto(server.origin + "/console/");
    assert.ok((await seqs(page)).length > 20);
    await context.close();
  },

  async "pages of a long ledger are quick"(browser, server, page) {
    const rows = Number(options.rows || 20000);
    sample(server.data, "rows", rows);
    for (const address of [...pages.filter((one) => !one.includes("check")), parser]) {
      const times = [];
      for (let round = 0; round < 3; round++) {
        const started = performance.now();
        assert.equal((await page.request.get(server.origin + address)).status(), 200, address);
        times.push(performance.now() - started);
      }
      console.log(`  ${address}: ${Math.min(...times).toFixed(0)} ms at ${await newest(server)} rows`);
      assert.ok(Math.min(...times) < 3000, `${address} took ${times.join()} ms`);
    }
  },

  async "logging out ends the session"(browser, server, page) {
    await page.goto(server.origin + "/console/");
    await page.click("text=Log out");
    await page.waitForURL("**/console/login");
    await page.goto(server.origin + "/console/");
    assert.match(page.url(), /\/console\/login$/);
  },
};

// The newest row, as the page says it.
async function newest(server) {
  const cookie = server.cookies.cookies.map((one) => `${one.name}=${one.value}`).join("; ");
  const page = await (await fetch(server.origin + "/console/", { headers: { cookie } })).text();
  return Number(page.match(/data-seq="(\d+)"/)[1]);
}

// Pictures of the story, for the documentation.
async function pictures(browser) {
  const data = path.join(options.work, "pictures");
  sample(data, "fill");
  const server = await Server.start(data);
  for (const colorScheme of ["light", "dark"]) {
    const context = await browser.newContext({ colorScheme, viewport: { width: 1320, height: 860 }, deviceScaleFactor: 1, timezoneId: "UTC" });
    const page = await logIn(context, colorScheme === "light" ? server.url : execFileSync(options.tollgate,
      ["--config", path.join(options.work, "tollgate.toml"), "--data-dir", data, "console"], { encoding: "utf8" }).trim());
    for (const [name, address] of [["live", "/console/"], ["envelope", parser], ["approvals", "/console/approvals"]]) {
      await page.goto(server.origin + address);
      await page.waitForTimeout(400);
      await page.screenshot({ path: path.join(options.images, `console-${name}-${colorScheme}.png`) });
    }
    await context.close();
  }
  await server.kill("SIGTERM");
}

const executablePath = options.chromium || "/usr/bin/chromium";
const browser = await chromium.launch({ executablePath, chromiumSandbox: process.getuid() !== 0 });
let [passed, failed] = [0, 0];
try {
  const data = path.join(options.work, "data");
  fs.rmSync(options.work, { recursive: true, force: true });
  fs.mkdirSync(options.work, { recursive: true });
  const server = await Server.start(data);
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 } });
  const page = await logIn(context, server.url);
  server.cookies = await context.storageState();
  for (const [name, run] of Object.entries(cases).filter(([name]) => name.includes(options.only || ""))) {
    try {
      await run(browser, server, page);
      assert.deepEqual(complaints.splice(0), [], "what the browser complained about");
      passed += 1;
      console.log(`ok ${name}`);
    } catch (error) {
      failed += 1;
      complaints.length = 0;
      console.log(`FAILED ${name}\n${error.stack}`);
    }
  }
  await server.kill("SIGTERM");
  if (options.images) {
    await pictures(browser);
  }
} finally {
  await browser.close();
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
