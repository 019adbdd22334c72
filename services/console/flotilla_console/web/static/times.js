// Moments and durations as text: the same as in blocks/times.py.

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86400;
const LAST = 253402300799;

/** @param {number | null} at @returns {at is number} */
const isMoment = (at) => at !== null && Number.isFinite(at) && at >= 0 && at <= LAST;

/** @param {number | null} at @param {number} now */
export function age(at, now) {
  if (!isMoment(at)) return "unknown";
  const seconds = Math.max(0, Math.floor(now - at));
  if (seconds < 2 * MINUTE) return `${seconds}s`;
  if (seconds < 2 * HOUR) return `${Math.floor(seconds / MINUTE)}m`;
  return seconds < 2 * DAY ? `${Math.floor(seconds / HOUR)}h` : `${Math.floor(seconds / DAY)}d`;
}

/** @param {number | null} at */
export const stamp = (at) => (isMoment(at) ? `${new Date(Math.floor(at) * 1000).toISOString().slice(0, 19)}Z` : "");

/** @param {number | null} at */
export const moment = (at) => stamp(at).replace("T", " ").replace("Z", " UTC") || "unknown";

/** @param {number | null} at */
export const clockTime = (at) => moment(at).slice(11, 19) || "unknown";
