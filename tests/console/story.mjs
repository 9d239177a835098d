// The story that the console has to tell by itself. An agent goes in circles, is stopped, and one of its calls waits for a
// person. Somebody who only looks at pages finds out what happens and why, and approves the call. The pictures of the
// documentation are taken on the way.
//   node story.mjs --tollgate FILE --work DIR [--images DIR] [--chromium FILE] [--only WORDS]
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import assert from "node:assert/strict";
import { Server, accessible, launch, logIn, options, run, watch } from "./browser.mjs";

const place = path.join(options.work, "story");
const tokens = { "builder-7": "builder-0123456789abcdef0123456789abcdef", grace: "grace-0123456789abcdef0123456789abcdef",
  vera: "vera-0123456789abcdef0123456789abcdef" };
const config = `
[server.auth]
token_file = ${JSON.stringify(path.join(place, "tokens"))}
[server.console]
enabled = true
viewers = ["token:vera"]
approvers = ["token:grace"]
[workspaces.shop]
path = ${JSON.stringify(path.join(place, "shop"))}
git = "read"
tests.default = ["python3", "-B", "-m", "unittest"]
[policies.side-effect-approval]
limits.time_ms = 10000
tools = ["task_create"]
config = { ask = false }
`;
const hostile = `"><b onload=alert(1)>Ship the parser</b></td>&lt; javascript:alert(2)`;

function write(name, text) {
  fs.mkdirSync(path.dirname(path.join(place, name)), { recursive: true });
  fs.writeFileSync(path.join(place, name), text, { mode: 0o600 });
}

// A shop whose parser does not know quotes inside of quotes.
function makeShop() {
  fs.rmSync(place, { recursive: true, force: true });
  write("tokens", Object.entries(tokens).map(([name, token]) => `${name} ${token}\n`).join(""));
  write("shop/quotes.py", parser('text.index("\\"", 1)'));
  write("shop/test_quotes.py", `import unittest
import quotes

class Quotes(unittest.TestCase):
    def test_plain_quotes(self):
        self.assertEqual(quotes.inner('"a"'), 'a')

    def test_nested_quotes(self):
        self.assertEqual(quotes.inner('"a \\\\"b\\\\" c"'), 'a \\\\"b\\\\" c')
`);
  const git = (...args) => execFileSync("git", ["-C", path.join(place, "shop"), "-c", "user.name=Ada", "-c", "user.email=ada@example.org", ...args], { stdio: "ignore" });
  git("init", "-q");
  git("add", "-A");
  git("commit", "-qm", "first");
}

const parser = (end) => `def inner(text):\n    """The text between the outer quotes."""\n    return text[1:${end}]\n`;

// An agent that speaks MCP over HTTP.
class Agent {
  constructor(server, name) {
    Object.assign(this, { server, name, calls: 0 });
  }

  // Result of a request, in the name of a client with these capabilities.
  async request(method, params, capabilities = {}) {
    const version = "2026-07-28";
    const meta = { "io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": capabilities,
      "io.modelcontextprotocol/clientInfo": { name: "coding-agent", version: "1.4" } };
    const name = params.name || params.uri;
    const answer = await fetch(this.server.origin + "/mcp", {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream", authorization: `Bearer ${tokens[this.name]}`,
        "mcp-protocol-version": version, "mcp-method": method, ...(name ? { "mcp-name": name } : {}) },
      body: JSON.stringify({ jsonrpc: "2.0", id: ++this.calls, method, params: { ...params, _meta: meta } }),
    });
    const text = await answer.text();
    const messages = text.split("\n").map((line) => line.replace(/^data:/, "").trim()).filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
    assert.ok(messages.at(-1)?.result, `${method} ${name}: ${answer.status} ${text}`);
    return messages.at(-1).result;
  }

  async call(tool, args = {}) {
    const result = await this.request("tools/call", { name: tool, arguments: args });
    return result.isError ? { refused: result.structuredContent.error } : result.structuredContent;
  }

  async ok(tool, args) {
    const reply = await this.call(tool, args);
    assert.ok(!reply.refused, `${tool}: ${JSON.stringify(reply.refused)}`);
    return reply;
  }
}

const asked = { title: "Take nested quotes out of the release", spec_markdown: "# Goal\nShip without nested quotes.", workspace: "shop",
  initial_phase: "spec_draft", actor: "builder-7", actor_role: "orchestrator" };

// Two wrong ideas in turns, until no test run is left.
async function goInCircles(agent) {
  const envelope = await agent.ok("envelope_open", { label: "fix nested quotes", workspace: "shop", limits: { max_mutations: 20, max_test_runs: 6, max_duration_sec: 3600 } });
  const envelope_id = envelope.id;
  const ideas = ['text.rindex("\\\\")', 'text.index(" c")'];
  for (let round = 0; round < 7; round++) {
    write("shop/quotes.py", parser(ideas[round % 2]));
    await agent.ok("mutation_record", { envelope_id, workspace: "shop" });
    const tested = await agent.call("test_run", { envelope_id, workspace: "shop" });
    assert.equal(tested.refused?.code, round < 6 ? undefined : "TEST_BUDGET_EXHAUSTED");
  }
  const waiting = await agent.call("task_create", { ...asked, envelope_id });
  assert.equal(waiting.refused?.code, "APPROVAL_REQUIRED");
  return { envelope_id, id: waiting.refused.context.approval_id };
}

// Other work of the day, with a title that somebody hostile chose.
async function otherWork(agent) {
  await agent.ok("conductor_init", { title: "Release 2.4", goal: "Ship the parser." });
  await agent.ok("conductor_init", { title: hostile, goal: hostile });
  await agent.ok("gsd_plan_milestone", { workspace: "shop", milestone_id: "M01", title: "Checkout", slices: [
    { slice_id: "S01", title: "Cart", goal: "A cart that remembers.", demo: "Reload, and the cart is full." }, { slice_id: "S02", title: hostile, depends: ["S01"] }] });
  await agent.ok("tasks_bootstrap", { workspace: "shop", plan_title: "Quotes", task_title: "Nested quotes", steps: [
    { title: "Read until the closing quote", success_criteria: ["escapes are skipped"], tests: ["python3 -m unittest"] },
    { title: hostile, success_criteria: [hostile], tests: [hostile] }] });
}

async function picture(page, name, colorScheme) {
  if (options.images && pictures.includes(name) || options.album) {
    await page.evaluate(() => window.scrollTo(0, 0));
    await page.waitForTimeout(400);
    await page.screenshot({ path: path.join(options.album || options.images, `console-${name}-${colorScheme}.png`) });
  }
}

// Pictures of the documentation. With --album DIR, all are taken.
const pictures = ["live", "envelope", "approvals"];
const screen = { viewport: { width: 1320, height: 860 }, deviceScaleFactor: 1, timezoneId: "UTC", locale: "en-GB" };

const cases = {
  async "somebody who never saw the product finds out what happens, why, and what waits"(browser, server, story) {
    for (const colorScheme of ["light", "dark"]) {
      const context = await browser.newContext({ ...screen, colorScheme });
      const page = await logIn(context, `${server.origin}/console/login#${tokens.grace}`);
      // What: the first page says that something waits, and which envelope goes in circles.
      await page.waitForSelector(".connection.on");
      assert.match(await page.locator("#waiting-badge").innerText(), /^1\s+waiting$/);
      const card = page.locator("#part-envelopes article", { hasText: "fix nested quotes" });
      const said = await card.innerText();
      assert.match(said, /oscillates, period 2/);
      assert.match(said, /no progress/);
      assert.match(said, /6 of 6/);
      assert.match(await page.locator("#part-failing").innerText(), /nested_quotes[\s\S]*6×/);
      await picture(page, "live", colorScheme);
      // Why: its page says that edits go in circles, and what stopped it.
      await card.getByRole("link", { name: "fix nested quotes" }).click();
      await page.waitForURL(`**/envelopes/${story.envelope_id}`);
      const why = await page.locator("main").innerText();
      for (const words of [/Edits go in circles/, /TEST_BUDGET_EXHAUSTED/, /nested_quotes/, /failed 6 times/]) {
        assert.match(why, words);
      }
      await picture(page, "envelope", colorScheme);
      // The one call that waits: what it would do, and who asks.
      await page.getByRole("link", { name: /Approvals/ }).click();
      await page.waitForURL("**/console/approvals");
      const waits = await page.locator("main").innerText();
      for (const words of [/Run task_create of task-store/, /builder-7/, /Take nested quotes out of the release/]) {
        assert.match(waits, words);
      }
      await picture(page, "approvals", colorScheme);
      await context.close();
    }
  },

  async "jobs, plans and milestones are pages, and hostile titles are text"(browser, server) {
    const context = await browser.newContext({ ...screen, bypassCSP: true });
    const free = await logIn(context, `${server.origin}/console/login#${tokens.vera}`);
    const strict = await browser.newContext(screen);
    const page = await logIn(strict, `${server.origin}/console/login#${tokens.vera}`);
    const steps = [["/console/views", /Milestones[\s\S]*Jobs/], ["/console/views/job_list", /Release 2\.4/], ["a:Release 2.4", /Ship the parser/], ["/console/views/gsd_status", /M01[\s\S]*Checkout[\s\S]*M01\/S01[\s\S]*Cart/],
      ["a:Cart", /A cart that remembers/], ["/console/views/tasks_workspaces", /shop/], ["a:shop", /Nested quotes/], ["a:Nested quotes", /Read until the closing quote/],
      ["a:Radar", /Verify/], ["/console/views/task_list", /Nothing here yet/], ["/console/views/job_get?job_id=JOB-9", /NOT_FOUND|INVALID/]];
    for (const [step, words] of steps) {
      if (step.startsWith("a:")) {
        await page.locator("main").getByRole("link", { name: step.slice(2), exact: true }).first().click();
        await page.waitForLoadState();
      } else {
        await page.goto(server.origin + step);
      }
      assert.match(await page.locator("main").innerText(), words, step);
      assert.equal(await page.$$eval("main img, main script", (found) => found.length), 0, step);
      await free.goto(page.url());
      await accessible(free, step);
      if (step === "/console/views/gsd_status") {
        await picture(page, "work", "light");
      }
    }
    await context.close();
    await strict.close();
  },

  async "a viewer looks and cannot answer, not even with a form of their own"(browser, server, story) {
    const context = await browser.newContext(screen);
    const page = await logIn(context, `${server.origin}/console/login#${tokens.vera}`);
    await page.goto(`${server.origin}/console/approvals/${story.id}`);
    assert.match(await page.locator("main").innerText(), /Take nested quotes out of the release/);
    assert.equal(await page.locator("form.answer, [name=decision]").count(), 0);
    const cookie = (await context.cookies()).map((one) => `${one.name}=${one.value}`).join("; ");
    const answer = await fetch(page.url(), { method: "POST", redirect: "manual", body: "form=1&decision=approve",
      headers: { cookie, origin: server.origin, "sec-fetch-site": "same-origin", "content-type": "application/x-www-form-urlencoded" } });
    assert.equal(answer.status, 403);
    const again = await story.agent.call("task_create", { ...asked, envelope_id: story.envelope_id });
    assert.equal(again.refused?.code, "APPROVAL_REQUIRED", "nothing was approved");
    await context.close();
  },

  async "an address that was passed on, and a token that is pasted later, lead through the login"(browser, server) {
    const context = await browser.newContext(screen);
    const page = await watch(await context.newPage());
    await page.goto(`${server.origin}/console/envelopes?state=open`);
    await page.waitForURL("**/console/login?*");
    await page.evaluate((token) => (location.hash = token), tokens.vera);
    await page.waitForURL("**/console/envelopes?state=open");
    await context.close();
  },

  async "the Enter key decides nothing"(browser, server, story) {
    const context = await browser.newContext(screen);
    const page = await logIn(context, `${server.origin}/console/login#${tokens.grace}`);
    await page.goto(`${server.origin}/console/approvals/${story.id}`);
    await page.getByRole("textbox").fill("No! Do not do this.");
    await page.keyboard.press("Enter");
    await page.goto(`${server.origin}/console/approvals/${story.id}`);
    assert.equal(await page.locator("form.answer").count(), 1, "it still waits");
    await context.close();
  },

  async "an approver approves the call, the page says so, and the agent's call passes once"(browser, server, story) {
    const context = await browser.newContext(screen);
    const page = await logIn(context, `${server.origin}/console/login#${tokens.grace}`);
    await page.goto(`${server.origin}/console/approvals/${story.id}`);
    await page.getByRole("textbox").fill("Ship it without; I take the blame.");
    await page.getByRole("button", { name: /Approve/ }).click();
    await page.waitForLoadState();
    assert.match(await page.locator("main").innerText(), /approved by token:grace\s*, proven[\s\S]*I take the blame/);
    assert.equal(await page.locator("#waiting-badge").isHidden(), true, "nothing waits any more");
    await page.goto(`${server.origin}/console/approvals`);
    assert.match(await page.locator("ul.settled").innerText(), /task_create[\s\S]*approved[\s\S]*token:grace/);
    await story.agent.ok("task_create", { ...asked, envelope_id: story.envelope_id });
    const once = await story.agent.call("task_create", { ...asked, envelope_id: story.envelope_id });
    assert.equal(once.refused?.code, "APPROVAL_REQUIRED", "an approval is for one call");
    await page.goto(`${server.origin}/console/?q=tool:approval_resolve`);
    assert.match(await page.locator("#rows").innerText(), /grace/);
    await context.close();
  },

  async "clients with MCP Apps show a report as a page, and others get what they always got"(browser, server, { agent, envelope_id }) {
    const apps = { extensions: { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } } };
    const listed = async (capabilities) => (await agent.request("tools/list", {}, capabilities)).tools.find((tool) => tool.name === "tasks_radar");
    assert.equal((await listed(apps))._meta.ui.resourceUri, "ui://tasks/tasks_radar.html");
    assert.equal((await listed({}))._meta?.ui, undefined);
    const uri = "ui://core/ledger_report.html";
    const [document] = (await agent.request("resources/read", { uri }, apps)).contents;
    assert.equal(document.mimeType, "text/html;profile=mcp-app");
    const report = { name: "ledger_report", arguments: { envelope_id } };
    assert.equal((await agent.request("tools/call", report))._meta["tollgate/html"], undefined);
    const result = await agent.request("tools/call", report, apps);
    for (const colorScheme of ["light", "dark"]) {
      const context = await browser.newContext({ ...screen, colorScheme });
      const page = await watch(await context.newPage());
      await page.setContent('<iframe sandbox="allow-scripts" width="1200" height="1600"></iframe>');
      await page.evaluate(([html, result]) => {
        const frame = window.document.querySelector("iframe");
        const answer = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
        window.addEventListener("message", ({ data }) => {
          window.sized = window.sized || data.method === "ui/notifications/size-changed";
          if (data.method === "ui/initialize") {
            answer({ id: data.id, result: { protocolVersion: "2026-01-26", hostInfo: { name: "test", version: "1" }, hostCapabilities: {}, hostContext: {} } });
          } else if (data.method === "ui/notifications/initialized") {
            answer({ method: "ui/notifications/tool-result", params: result });
          }
        });
        frame.srcdoc = html;
      }, [document.text, result]);
      const shown = page.frameLocator("iframe").locator("main");
      await shown.getByText("fix nested quotes").first().waitFor();
      assert.match(await shown.innerText(), /6 of 6/);
      assert.ok(await page.evaluate(() => window.sized), "the page says its size");
      await picture(page, "app", colorScheme);
      await context.close();
    }
  },

  async "a token that is revoked ends its session and its open page"(browser, server) {
    const context = await browser.newContext(screen);
    const page = await logIn(context, `${server.origin}/console/login#${tokens.vera}`);
    await page.waitForSelector(".connection.on");
    write("tokens", Object.entries(tokens).filter(([name]) => name !== "vera").map(([name, token]) => `${name} ${token}\n`).join(""));
    server.child.kill("SIGHUP");
    await page.waitForURL("**/console/login?*", { timeout: 30000 });
    await page.goto(server.origin + "/console/envelopes");
    assert.match(page.url(), /\/console\/login\?/);
    await context.close();
  },
};

const browser = await launch();
try {
  fs.mkdirSync(options.work, { recursive: true });
  makeShop();
  const server = await Server.start(path.join(place, "data"), { config, args: ["serve", "--http", "127.0.0.1:0"], said: /(http:\/\/127\.0\.0\.1:\d+)/ });
  const agent = new Agent(server, "builder-7");
  const story = { agent, ...(await goInCircles(agent)) };
  await otherWork(new Agent(server, "builder-7"));
  await run(cases, browser, server, story);
  await server.kill("SIGTERM");
} finally {
  await browser.close();
}
