// Makes the pages live. They work without it. Text goes into the page as text alone: nothing here makes markup.
"use strict";

const $ = (id) => document.getElementById(id);
const shownRows = 400;

// --- Times as the reader's clock has them ------------------------------------------------------

const dayTime = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hour12: false });
const tickTime = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const otherDay = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hour12: false });
const wholeTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", hour12: false });

function localize(root) {
  for (const time of root.querySelectorAll("time[datetime], text[data-at]")) {
    const at = new Date(time.dateTime ?? time.dataset.at);
    if (!Number.isNaN(at.getTime())) {
      const short = at.toDateString() === new Date().toDateString() ? dayTime : otherDay;
      time.textContent = (time.classList.contains("long") ? wholeTime : time.dateTime ? short : tickTime).format(at);
    }
  }
}

// --- Login: the token is in the address's fragment, which no server and no other page sees ------

function logIn() {
  const form = $("login");
  if (!form || location.hash.length < 2) {
    return;
  }
  form.elements.token.value = decodeURIComponent(location.hash.slice(1));
  history.replaceState(null, "", location.pathname + location.search);
  form.requestSubmit();
}

// --- Rows --------------------------------------------------------------------------------------

function picture(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  const known = document.querySelector("svg.icon use").getAttribute("href");
  use.setAttribute("href", known.replace(/#.*$/, "#" + name));
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  svg.append(use);
  return svg;
}

function cellOf(cell) {
  const td = document.createElement("td");
  td.className = cell.class;
  td.title = cell.hint || "";
  td.append(cell.icon ? picture(cell.icon) : "");
  const inner = document.createElement(cell.href ? "a" : cell.class === "time" ? "time" : "span");
  inner.textContent = cell.text;
  if (cell.href && cell.href.startsWith("/console/")) {
    inner.setAttribute("href", cell.href);
  }
  if (cell.class === "time") {
    inner.dateTime = cell.hint;
  }
  td.append(inner);
  for (const note of cell.notes || []) {
    const small = document.createElement("small");
    small.className = "note";
    small.textContent = note;
    td.append(small);
  }
  return td;
}

function rowOf(row) {
  const tr = document.createElement("tr");
  tr.className = row.state + " new";
  tr.dataset.seq = row.seq;
  tr.append(...row.cells.map(cellOf));
  localize(tr);
  return tr;
}

// --- The stream --------------------------------------------------------------------------------

let stream = null;
let held = null;
let isPaused = false;

function say(state, words) {
  const connection = $("connection");
  if (connection) {
    connection.hidden = false;
    connection.className = "connection " + state;
    connection.textContent = words;
  }
}

function addRows(rows) {
  const body = $("rows");
  const known = Number(body.firstElementChild?.dataset.seq || 0);
  for (const row of rows) {
    if (row.seq > known) {
      body.prepend(rowOf(row));
    }
  }
  while (body.children.length > shownRows) {
    body.lastElementChild.remove();
  }
  document.querySelector("#ledger .empty")?.remove();
}

function connect() {
  const body = $("rows");
  stream?.close();
  stream = null;
  if (!body?.dataset.live) {
    return;
  }
  const opened = new EventSource(body.dataset.live);
  stream = opened;
  opened.addEventListener("open", () => say(isPaused ? "held" : "on", isPaused ? "paused" : "live"));
  opened.addEventListener("rows", (event) => {
    const rows = JSON.parse(event.data);
    if (isPaused) {
      held.push(...rows);
      say("held", "paused, " + held.length + " new");
    } else {
      addRows(rows);
    }
  });
  opened.addEventListener("parts", () => {
    if (!isPaused) {
      refresh("/console/parts");
    }
  });
  opened.addEventListener("error", () => {
    say("off", "reconnecting…");
    // A browser gives up when it is answered with an error, as while a server starts or a session is over.
    if (opened.readyState === EventSource.CLOSED && stream === opened) {
      setTimeout(() => reconnect(opened), 1000);
    }
  });
}

function reconnect(gone) {
  if (stream !== gone) {
    return;
  }
  const body = $("rows");
  const last = body.firstElementChild?.dataset.seq;
  const address = new URL(body.dataset.live, location.href);
  if (last && !held?.length) {
    address.searchParams.set("after", last);
    body.dataset.live = address.pathname + address.search;
  }
  fetch("/console/parts", { redirect: "manual" })
    .then((answer) => (answer.status === 401 ? location.reload() : connect()))
    .catch(() => setTimeout(() => reconnect(gone), 1000));
}

// A browser keeps few connections to a host, and a page that nobody sees needs none.
const onSight = () => (document.hidden ? stream?.close() : stream && reconnect(stream));

function pause() {
  const button = $("pause");
  if (!button || button.hidden) {
    return;
  }
  isPaused = !isPaused;
  button.setAttribute("aria-pressed", String(isPaused));
  button.firstChild.textContent = isPaused ? "Resume" : "Pause";
  if (isPaused) {
    held = [];
    say("held", "paused");
  } else {
    addRows(held);
    held = null;
    say("on", "live");
    refresh("/console/parts");
  }
}

// --- Parts: the server renders them, the browser parses them as a document in which nothing runs -

function refresh(address, done) {
  const request = new XMLHttpRequest();
  request.open("GET", address);
  request.responseType = "document";
  request.addEventListener("load", () => {
    if (request.status === 200 && request.response) {
      replaceParts(request.response);
      done?.();
    }
  });
  request.send();
}

function replaceParts(fresh) {
  for (const part of fresh.querySelectorAll("[data-part]")) {
    const old = $(part.id);
    if (!old || old.isEqualNode(part)) {
      continue;
    }
    const active = document.activeElement;
    const path = old.contains(active) ? active.getAttribute("href") || active.id : null;
    const start = active?.id === "filter" ? active.selectionStart : null;
    const copy = document.adoptNode(part);
    localize(copy);
    if (old.id === "waiting-badge" && old.textContent !== copy.textContent) {
      $("said").textContent = copy.hidden ? "" : copy.textContent;
      $("changed")?.removeAttribute("hidden");
    }
    old.replaceWith(copy);
    if (path) {
      const again = [...copy.querySelectorAll("a, button, input")].find((one) => (one.getAttribute("href") || one.id) === path);
      again?.focus();
      if (start !== null) {
        again?.setSelectionRange(start, start);
      }
    }
  }
}

// --- Filter ------------------------------------------------------------------------------------

let typing = 0;

function filterSoon(event) {
  if (event.target.id !== "filter") {
    return;
  }
  clearTimeout(typing);
  typing = setTimeout(() => {
    const words = event.target.value;
    const address = words.trim() ? "/console/?" + new URLSearchParams({ q: words }) : "/console/";
    refresh(address, () => {
      history.replaceState(null, "", address);
      const shown = $("rows")?.children.length || 0;
      $("said").textContent = shown + " rows";
      isPaused = false;
      connect();
    });
  }, 250);
}

// --- Keys --------------------------------------------------------------------------------------

let chosen = null;
let isGoing = false;

function choose(step) {
  const rows = [...document.querySelectorAll(".ledger tbody tr, .figures tbody tr")];
  const next = rows[Math.max(0, Math.min(rows.length - 1, rows.indexOf(chosen) + step))];
  if (!next) {
    return;
  }
  chosen?.classList.remove("chosen");
  chosen = next;
  chosen.classList.add("chosen");
  chosen.scrollIntoView({ block: "nearest" });
  chosen.querySelector("a")?.focus({ preventScroll: true });
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) {
    return;
  }
  if (event.target.matches("input, textarea, select")) {
    if (event.key === "Escape") {
      event.target.blur();
    }
    return;
  }
  if (isGoing) {
    isGoing = false;
    document.querySelector('nav a[data-key="' + CSS.escape(event.key) + '"]')?.click();
    return;
  }
  const keys = {
    "/": () => ($("filter") ? ($("filter").focus(), $("filter").select()) : location.assign("/console/#filter")),
    p: pause,
    j: () => choose(1),
    k: () => choose(-1),
    g: () => (isGoing = true),
    "?": () => $("keys")?.showModal(),
  };
  if (Object.hasOwn(keys, event.key)) {
    event.preventDefault();
    keys[event.key]();
  }
}

logIn();
localize(document);
connect();
location.hash === "#filter" && $("filter")?.focus();
setInterval(() => !stream && !document.hidden && $("waiting-badge") && refresh("/console/parts"), 5000);
addEventListener("hashchange", logIn);
document.addEventListener("visibilitychange", onSight);
document.addEventListener("keydown", onKey);
document.addEventListener("input", filterSoon);
document.addEventListener("click", (event) => event.target.closest("#pause") && pause());
