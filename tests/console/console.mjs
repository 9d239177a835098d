// The console in a real browser. Started by `cargo xtask console-test`, which names the programs and folders:
//   node console.mjs --tollgate FILE --sample FILE --work DIR [--rows N] [--chromium FILE] [--only WORDS]
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import assert from "node:assert/strict";
import { Server, accessible, launch, logIn, options, run } from "./browser.mjs";

const parser = "/console/envelopes/env_01m8qk3v7w2r5parser00haqfsf7z";
const hostile = "/console/envelopes/" + encodeURIComponent("env_01m8qk3v7w2<b>hostile</b>\"'");
const pages = ["/console/", "/console/?q=failed", "/console/envelopes", "/console/envelopes?state=open", "/console/approvals",
  "/console/policies", "/console/tests", "/console/stats?since=14d", "/console/stats?since=1h", "/console/host?check",
  "/console/views", "/console/views/task_list", "/console/views/tasks_workspaces", "/console/views/gsd_status", "/console/views/job_get?job_id=x"];

function sample(data, ...args) {
  execFileSync(options.sample, [data, ...args.map(String)], { stdio: ["ignore", "ignore", "inherit"] });
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
    Object.assign(server, await Server.start(server.data, { port }));
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
    await page.keyboard.press("Escape");
    await page.keyboard.press("/");
    await page.waitForFunction(() => document.activeElement.id === "filter");
  },

  async "a page that nobody sees holds no connection, and misses nothing"(browser, server, page) {
    await page.goto(server.origin + "/console/");
    await page.waitForSelector(".connection.on");
    const before = (await seqs(page))[0];
    const turn = (isHidden) => page.evaluate((isHidden) => {
      Object.defineProperty(document, "hidden", { configurable: true, value: isHidden });
      document.dispatchEvent(new Event("visibilitychange"));
    }, isHidden);
    await turn(true);
    assert.equal(await page.evaluate(() => stream.readyState), 2, "the stream is closed");
    sample(server.data, "add", 2);
    await turn(false);
    await page.waitForSelector(`#rows tr[data-seq="${before + 2}"]`);
    assert.deepEqual((await seqs(page)).slice(0, 3), [before + 2, before + 1, before]);
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
    assert.match(there.url(), /\/console\/login\?/);
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
    }
  },

  async "logging out ends the session"(browser, server, page) {
    await page.goto(server.origin + "/console/");
    await page.click("text=Log out");
    await page.waitForURL("**/console/login");
    await page.goto(server.origin + "/console/");
    assert.match(page.url(), /\/console\/login\?/);
  },
};

// The newest row, as the page says it.
async function newest(server) {
  const cookie = server.cookies.cookies.map((one) => `${one.name}=${one.value}`).join("; ");
  const page = await (await fetch(server.origin + "/console/", { headers: { cookie } })).text();
  return Number(page.match(/data-seq="(\d+)"/)[1]);
}

const browser = await launch();
try {
  const data = path.join(options.work, "data");
  fs.rmSync(options.work, { recursive: true, force: true });
  fs.mkdirSync(options.work, { recursive: true });
  const server = await Server.start(data);
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 } });
  const page = await logIn(context, server.url);
  server.cookies = await context.storageState();
  await run(cases, browser, server, page);
  await server.kill("SIGTERM");
} finally {
  await browser.close();
}
