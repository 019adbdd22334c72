// One stream for all tabs: it shows the pages of all of them, and each tab gets the events of its page.

import { Connection } from "./connection.js";

/** Milliseconds after which a tab that says nothing is gone; each says its page every 30 seconds. */
const GONE = 180_000;

/** @type {Map<MessagePort, { path: string, at: number }>} */
const tabs = new Map();

const connection = new Connection((event) => {
  for (const [port, tab] of tabs) {
    const path = "path" in event.data ? event.data.path : tab.path;
    if (path === tab.path) port.postMessage(event);
  }
});

function show() {
  for (const [port, tab] of tabs) if (Date.now() - tab.at > GONE) tabs.delete(port);
  connection.show([...new Set([...tabs.values()].map((tab) => tab.path))]);
}

/** @type {any} */ (globalThis).onconnect = (/** @type {MessageEvent} */ { ports: [port] }) => {
  port.onmessage = ({ data: { path, again } }) => {
    const before = tabs.get(port)?.path;
    if (path) tabs.set(port, { path, at: Date.now() });
    else tabs.delete(port);
    const page = path && (again || path !== before) ? connection.pageOf(path) : null;
    if (page) port.postMessage(page);
    show();
  };
};
