// The console in the browser: takes over the page that the server rendered, and keeps it up to date.
// Without scripts all pages work by links and forms; here they are the same, only without loading documents.

import { Fragment, h, hydrate, render } from "./vendor/preact.mjs";
import htm from "./vendor/htm.mjs";
import { Anchor, Blocks, Line, Notice } from "./blocks.js";
import { apply } from "./difference.js";
import { Stream } from "./stream.js";
import { clockTime } from "./times.js";

const html = htm.bind(h);

/** Milliseconds without a sign of life after which the page says so. */
const SILENCE = 20_000;

/** @template {HTMLElement} T @param {string} id @returns {T} */
const byId = (id) => /** @type {T} */ (document.getElementById(id));

/** @type {import("./types").Shown} */
let shown = JSON.parse(byId("shown").textContent ?? "");
/** The version of the page in the live stream; 0: the one that was loaded. */
let version = 0;
/** What keeps the page from being up to date, by its cause. @type {Map<string, import("./types").Notice>} */
const troubles = new Map();
let heard = Date.now();
/** @type {AbortController | null} */
let loading = null;

// Rendering: header, banners and main are the same markup as in web/document.py

/** @param {{ of: import("./types").Shown }} props */
const Header = ({ of }) => html`<a class="brand" href="/">Flotilla</a
  ><nav aria-label="Main"><ul>${of.navigation.map(
    (entry) => html`<li><${Anchor} href=${entry.href} aria-current=${of.path.split("?")[0] === entry.href ? "page" : null}>${entry.label}<//></li>`,
  )}</ul></nav><span class="user">${of.user}</span
  >${of.session ? html`<a class="sign-out" href="/signout">Sign out</a>` : null}`;

/** @param {{ of: import("./types").Shown, frame: import("./types").Frame }} props */
const Main = ({ of, frame }) => html`<${Fragment}
  >${of.page.trail?.length
    ? html`<nav aria-label="Breadcrumb" class="trail"><ol>${of.page.trail.map(
        (link) => html`<li><${Anchor} href=${link.href}>${link.text}<//></li>`,
      )}</ol></nav>`
    : null}<h1>${of.page.title}</h1><${Blocks} blocks=${of.page.blocks} frame=${frame} /><//
>`;

/** @param {{ frame: import("./types").Frame }} props */
const Banners = ({ frame }) =>
  [...troubles.values(), ...shown.banners].map((one) => html`<${Notice} one=${one} frame=${frame} />`);

/** @param {(tree: any, into: HTMLElement) => void} draw */
function paint(draw = render) {
  const frame = { now: shown.now, query: shown.query, csrf: shown.csrf };
  document.title = `${shown.page.title} · Flotilla`;
  draw(h(Header, { of: shown }), byId("header"));
  draw(h(Banners, { frame }), byId("banners"));
  draw(h(Main, { of: shown, frame }), byId("main"));
}

let painting = false;
/** Render with the next frame, however many events came. */
function paintSoon() {
  if (painting) return;
  painting = true;
  requestAnimationFrame(() => {
    painting = false;
    paint();
  });
}

// Navigation

/**
 * Show another page.
 * @param {URL} url @param {"push" | "replace" | "none"} entry
 */
async function go(url, entry) {
  loading?.abort();
  const request = new AbortController();
  loading = request;
  try {
    const answer = await fetch(url, { headers: { accept: "application/json" }, signal: request.signal });
    const isPage = answer.headers.get("content-type")?.startsWith("application/json") && answer.status !== 401;
    if (!isPage || answer.redirected) return location.assign(url);
    const next = await answer.json();
    if (loading === request) arrive(next, url, entry);
  } catch (error) {
    if (!request.signal.aborted) location.assign(url);
  }
}

/** @param {import("./types").Shown} next @param {URL} url @param {"push" | "replace" | "none"} entry */
function arrive(next, url, entry) {
  const other = next.path.split("?")[0] !== shown.path.split("?")[0];
  if (entry === "push") history.pushState(null, "", url);
  if (entry === "replace") history.replaceState(null, "", url);
  shown = next;
  version = 0;
  troubles.delete("failed");
  paint();
  stream.show(shown.live ? shown.path : "");
  if (other) {
    byId("main").focus({ preventScroll: true });
    if (entry === "push") scrollTo(0, 0);
  }
}

document.addEventListener("click", (event) => {
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = /** @type {Element} */ (event.target).closest("a[href]");
  const href = link?.getAttribute("href");
  if (!link || !href || href.startsWith("#")) return;
  const url = new URL(href, location.href);
  if (url.origin !== location.origin) return;
  event.preventDefault();
  void go(url, "push");
});

document.addEventListener("submit", (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  if (form.getAttribute("method") !== "get") return;
  event.preventDefault();
  void go(target(form), "push");
});

// Each character searches at once, and aborts the search before it: what arrives is always what the field says.
document.addEventListener("input", (event) => {
  const field = /** @type {HTMLInputElement} */ (event.target);
  if (field.type !== "search" || field.form?.getAttribute("method") !== "get") return;
  void go(target(field.form), "replace");
});

addEventListener("popstate", () => void go(new URL(location.href), "none"));

/** The address that a form leads to. @param {HTMLFormElement} form */
function target(form) {
  const url = new URL(form.getAttribute("action") ?? location.pathname, location.href);
  const values = [...new FormData(form)].filter(([, value]) => typeof value === "string" && value);
  url.search = new URLSearchParams(/** @type {[string, string][]} */ (values)).toString();
  return url;
}

// The live stream

/** @param {import("./types").LiveEvent} event */
function take(event) {
  if (["beat", "page", "step"].includes(event.name)) alive(); // an open connection alone says nothing
  switch (event.name) {
    case "beat":
      shown = { ...shown, now: event.data.now, as_of: event.data.as_of, banners: event.data.banners };
      break;
    case "page":
      if (event.data.path !== shown.path) return;
      if (event.data.page === null) return void go(new URL(location.href), "none");
      version = event.data.version;
      update(event.data.page, event.data.now);
      break;
    case "step":
      if (event.data.path !== shown.path || event.data.version <= version) return;
      if (event.data.version !== version + 1) return stream.again();
      version = event.data.version;
      update(apply(shown.page, event.data.difference), event.data.now);
      break;
    case "failed":
      if (event.data.path === shown.path) trouble("failed", "bad", "This page cannot be brought up to date. It shows an older state.");
      break;
    case "lost":
      disconnected(event.data.since);
      break;
    case "signin":
      signedOut(event.data);
      break;
  }
  paintSoon();
}

/** @param {import("./types").Page} page @param {number} now */
function update(page, now) {
  shown = { ...shown, page, now };
  troubles.delete("failed");
}

function alive() {
  heard = Date.now();
  troubles.delete("lost");
  // Signed in again in another tab: the page is loaded with the token of the new session.
  if (troubles.delete("signin")) void go(new URL(location.href), "none");
}

/** @param {number} since */
function disconnected(since) {
  if (!troubles.has("lost")) trouble("lost", "bad", `Disconnected since ${clockTime(since)} UTC. This page shows the state of then; connecting again.`);
}

/** What a user may no longer see does not stay on the screen. @param {{ reason: string, href: string }} data */
function signedOut({ reason, href }) {
  trouble("signin", "bad", `${reason} `);
  if (href) troubles.get("signin")?.spans.push({ is: "link", text: "Sign in", href });
  shown = { ...shown, page: { title: shown.page.title, blocks: [] }, live: false, csrf: "" };
}

/** @param {string} cause @param {import("./types").Tone} tone @param {string} text */
function trouble(cause, tone, text) {
  troubles.set(cause, { block: "notice", tone, spans: [{ is: "text", text }] });
}

setInterval(() => {
  if (!shown.live || document.hidden || Date.now() - heard < SILENCE) return;
  disconnected(heard / 1000);
  stream.again();
  paintSoon();
}, 5000);
document.addEventListener("visibilitychange", () => {
  heard = Date.now();
});

paint(hydrate);
const stream = new Stream(take);
stream.show(shown.live ? shown.path : "");
