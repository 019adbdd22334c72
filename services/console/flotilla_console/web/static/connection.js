// The live stream of this browser: one connection, the pages that are shown in it, and their last versions.

import { apply } from "./difference.js";

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 30_000;
/** Milliseconds without any event after which the connection is given up; the server sends one every 5 seconds. */
const SILENCE = 20_000;

/** @typedef {import("./types").LiveEvent} LiveEvent */

/** The connection; it is open while some page is shown. */
export class Connection {
  /** @param {(event: LiveEvent) => void} emit */
  constructor(emit) {
    this.emit = emit;
    /** @type {string[]} */
    this.paths = [];
    /** @type {Map<string, { version: number, now: number, page: import("./types").Page | null }>} */
    this.pages = new Map();
    this.stream = "";
    this.last = "";
    this.failures = 0;
    this.running = false;
    /** @type {AbortController | null} */
    this.request = null;
  }

  /**
   * Show these pages, and no others.
   * @param {string[]} paths
   */
  show(paths) {
    const same = paths.length === this.paths.length && paths.every((path) => this.paths.includes(path));
    this.paths = paths;
    for (const path of this.pages.keys()) if (!paths.includes(path)) this.pages.delete(path);
    if (!paths.length) this.request?.abort();
    else if (!this.running) void this.run();
    else if (this.stream && !same) void this.ask();
  }

  /**
   * The last version of a page as an event, if there is one.
   * @param {string} path
   * @returns {LiveEvent | null}
   */
  pageOf(path) {
    const known = this.pages.get(path);
    return known ? { name: "page", data: { path, ...known } } : null;
  }

  /** Read the stream until no page is shown, or the user is signed out. */
  async run() {
    this.running = true;
    while (this.paths.length) {
      const goesOn = await this.read().catch(() => true);
      if (!goesOn) break;
      this.stream = "";
      if (!this.paths.length) break;
      this.emit({ name: "lost", data: { since: Date.now() / 1000 } });
      await this.pause();
    }
    this.running = false;
  }

  /** Wait before the next attempt: longer each time, and for a random part of it, so that browsers do not come at once. */
  async pause() {
    const longest = Math.min(FIRST_PAUSE * 2 ** this.failures++, LONGEST_PAUSE);
    await new Promise((resolve) => setTimeout(resolve, longest * (0.5 + Math.random() / 2)));
  }

  /** Read one connection to its end. Returns false when the user is signed out. */
  async read() {
    const request = new AbortController();
    this.request = request;
    let watch = setTimeout(() => request.abort(), SILENCE);
    try {
      /** @type {Record<string, string>} */
      const headers = { accept: "text/event-stream" };
      if (this.last) headers["last-event-id"] = this.last;
      const answer = await fetch("/live", { headers, signal: request.signal, cache: "no-store" });
      if (answer.status === 401) return this.signedOut(await answer.json());
      if (!answer.ok || !answer.body) return true;
      const lines = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      this.resumed();
      let text = "";
      for (;;) {
        const { value, done } = await lines.read();
        if (done) return true;
        clearTimeout(watch);
        watch = setTimeout(() => request.abort(), SILENCE);
        const events = (text + value).split("\n\n");
        text = events.pop() ?? "";
        for (const event of events) if (!this.take(event)) return false;
      }
    } finally {
      clearTimeout(watch);
      request.abort();
    }
  }

  /** Continue with the stream of before: its name is in the identity of its last event. */
  resumed() {
    this.failures = 0;
    this.emit({ name: "open", data: {} });
    this.stream = this.last.slice(0, this.last.lastIndexOf("."));
    if (this.stream) void this.ask();
  }

  /**
   * Take an event. Returns false when it is the last one.
   * @param {string} text
   */
  take(text) {
    /** @type {Record<string, string>} */
    const fields = {};
    for (const line of text.split("\n")) {
      const colon = line.indexOf(": ");
      if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2);
    }
    if (!fields.event || !fields.data) return true;
    this.last = fields.id ?? this.last;
    const event = /** @type {LiveEvent} */ ({ name: fields.event, data: JSON.parse(fields.data) });
    switch (event.name) {
      case "hello":
        if (this.stream !== event.data.stream) {
          this.stream = event.data.stream;
          void this.ask();
        }
        return true;
      case "signin":
        return this.signedOut(event.data);
      case "page":
        this.pages.set(event.data.path, event.data);
        break;
      case "step":
        if (!this.step(event.data)) return true;
        break;
    }
    this.emit(event);
    return true;
  }

  /**
   * Apply a difference. Returns false if it is not for the version that is here; then whole pages are asked for.
   * @param {Extract<LiveEvent, { name: "step" }>["data"]} step
   */
  step(step) {
    const known = this.pages.get(step.path);
    if (!known?.page || known.version + 1 !== step.version) {
      if (!this.paths.includes(step.path)) return false;
      this.last = "";
      this.request?.abort();
      return false;
    }
    this.pages.set(step.path, { version: step.version, now: step.now, page: apply(known.page, step.difference) });
    return true;
  }

  /** @param {{ reason: string, href: string }} data */
  signedOut(data) {
    this.last = "";
    this.stream = "";
    this.pages.clear();
    this.emit({ name: "signin", data });
    return false;
  }

  /** Name the pages to the server. */
  async ask() {
    const { request, stream } = this;
    const answer = await fetch(`/live/${encodeURIComponent(stream)}/views`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ paths: this.paths }),
    }).catch(() => null);
    if (answer?.ok || request !== this.request || stream !== this.stream) return;
    // The server does not have this stream any more: a new one begins.
    this.last = "";
    request?.abort();
  }
}
