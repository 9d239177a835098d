// Shows a tool's result inside of a client, as SEP-1865 has it. The server made the markup, with the console's own renderer.
"use strict";

const initializing = 1;
const send = (message) => parent.postMessage({ jsonrpc: "2.0", ...message }, "*");

function show(result) {
  const main = document.getElementById("main");
  const html = result?._meta?.["tollgate/html"];
  if (typeof html === "string") {
    main.innerHTML = html;
  } else {
    const text = document.createElement("pre");
    text.textContent = (result?.content || []).map((one) => one.text || "").join("\n");
    main.replaceChildren(text);
  }
}

addEventListener("message", ({ source, data }) => {
  if (source !== parent || data?.jsonrpc !== "2.0") {
    return;
  }
  if (data.id === initializing && data.result) {
    send({ method: "ui/notifications/initialized", params: {} });
  } else if (data.method === "ui/notifications/tool-result") {
    show(data.params);
  } else if (data.id !== undefined && data.method) {
    send({ id: data.id, result: {} });
  }
});

new ResizeObserver(() => {
  const { width, height } = document.documentElement.getBoundingClientRect();
  send({ method: "ui/notifications/size-changed", params: { width: Math.ceil(width), height: Math.ceil(height) } });
}).observe(document.documentElement);

send({ id: initializing, method: "ui/initialize", params: { protocolVersion: "2026-01-26", appCapabilities: {}, appInfo: { name: "tollgate", version: "1" } } });
