// The live stream as a tab sees it: of the worker that all tabs share, or its own where there is no SharedWorker.

import { Connection } from "./connection.js";

const AGAIN = 30_000;

/** The page that this tab shows in the stream. A hidden tab shows none, and gets its whole page when it is seen again. */
export class Stream {
  /** @param {(event: import("./types").LiveEvent) => void} emit */
  constructor(emit) {
    this.path = "";
    this.send = typeof SharedWorker === "undefined" ? own(emit) : shared(emit);
    document.addEventListener("visibilitychange", () => this.say(true));
    addEventListener("pagehide", () => this.send("", false));
    addEventListener("pageshow", () => this.say(true));
    setInterval(() => this.say(false), AGAIN);
  }

  /** @param {string} path */
  show(path) {
    this.path = path;
    this.say(false);
  }

  /** Ask for the whole page. */
  again() {
    this.say(true);
  }

  /** @param {boolean} again */
  say(again) {
    this.send(document.hidden ? "" : this.path, again);
  }
}

/**
 * @param {(event: import("./types").LiveEvent) => void} emit
 * @returns {(path: string, again: boolean) => void}
 */
function shared(emit) {
  const { port } = new SharedWorker(new URL("./worker.js", import.meta.url), { type: "module", name: "flotilla" });
  port.onmessage = ({ data }) => emit(data);
  return (path, again) => port.postMessage({ path, again });
}

/**
 * @param {(event: import("./types").LiveEvent) => void} emit
 * @returns {(path: string, again: boolean) => void}
 */
function own(emit) {
  const connection = new Connection(emit);
  return (path, again) => {
    const page = again && path ? connection.pageOf(path) : null;
    if (page) emit(page);
    connection.show(path ? [path] : []);
  };
}
