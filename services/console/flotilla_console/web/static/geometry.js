// Positions in pictures, in whole units: the same as in blocks/geometry.py.

export const WIDTH = 1000;
export const GAP_WIDTH = 16;
export const LINE_HEIGHT = 60;
export const COLUMN = 420;
export const BOX = 300;
export const ROW = 56;
export const BOX_HEIGHT = 44;

/** @param {number} number */
export const whole = (number) => Math.floor(number + 0.5);

/** @param {number} number @param {number} low @param {number} high */
const within = (number, low, high) => Math.min(Math.max(number, low), high);

/**
 * The position of moments on a lane; gaps are narrow.
 * @param {number} start @param {number} last @param {import("./types").Gap[]} gaps
 * @returns {(at: number) => number}
 */
export function scale(start, last, gaps) {
  const end = Math.max(last, start + 1);
  const clipped = gaps
    .map((gap) => [Math.max(gap.start, start), Math.min(gap.end, end)])
    .filter(([from, to]) => to > from)
    .sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const idle = clipped.reduce((sum, [from, to]) => sum + (to - from), 0);
  const shown = Math.max(end - start - idle, 1);
  const unit = Math.max(WIDTH - GAP_WIDTH * clipped.length, Math.floor(WIDTH / 10)) / shown;
  return (moment) => {
    const at = within(moment, start, end);
    let position = 0;
    let done = start;
    for (const [from, to] of clipped) {
      if (at <= from) break;
      position += Math.max(from - done, 0) * unit + (GAP_WIDTH * (Math.min(at, to) - from)) / (to - from);
      done = Math.max(done, Math.min(at, to));
    }
    return whole(position + Math.max(at - done, 0) * unit);
  };
}

/**
 * The path of values that each last until the next.
 * @param {import("./types").Point[]} points @param {(at: number) => number} x @param {number} top
 */
export function steps(points, x, top) {
  let drawn = "";
  for (const point of points) {
    const y = LINE_HEIGHT - whole((LINE_HEIGHT * within(point.value, 0, top)) / top);
    drawn += drawn ? `H${x(point.at)}V${y}` : `M${x(point.at)} ${y}`;
  }
  return drawn ? `${drawn}H${WIDTH}` : "";
}

/** @param {import("./types").Node} node */
export const columnOf = (node) => within(node.column, 0, 20);

/**
 * The upper left corner of each node.
 * @param {import("./types").Graph} graph
 */
export function places(graph) {
  /** @type {Map<number, number>} */
  const rows = new Map();
  /** @type {Map<string, [number, number]>} */
  const found = new Map();
  for (const node of graph.nodes) {
    const column = columnOf(node);
    const row = rows.get(column) ?? 0;
    rows.set(column, row + 1);
    found.set(node.key, [column * COLUMN, row * ROW]);
  }
  return found;
}
