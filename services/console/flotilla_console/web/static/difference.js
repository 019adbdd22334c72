// Applies the difference of two versions of a page, which live/difference.py makes.

/**
 * @param {import("./types").Page} page @param {import("./types").Difference} difference
 * @returns {import("./types").Page}
 */
export function apply(page, difference) {
  return { title: difference.title, trail: difference.trail, blocks: applied(page.blocks, difference.blocks) };
}

/**
 * @param {import("./types").Block[]} old @param {import("./types").Change[]} changes
 * @returns {import("./types").Block[]}
 */
const applied = (old, changes) => changes.map((change) => changed(old, change));

/**
 * @param {import("./types").Block[]} old @param {import("./types").Change} change
 * @returns {import("./types").Block}
 */
function changed(old, change) {
  if (change.block) return change.block;
  const before = old[/** @type {number} */ (change.was)];
  if (change.table) {
    const rows = new Map(/** @type {import("./types").Table} */ (before).rows.map((row) => [row.key, row]));
    const order = change.order ?? [...rows.keys()];
    for (const row of change.rows ?? []) rows.set(row.key, row);
    return { ...change.table, rows: order.map((key) => /** @type {import("./types").Row} */ (rows.get(key))) };
  }
  if (change.blocks) {
    const group = /** @type {import("./types").Group} */ (before);
    return { ...group, summary: change.summary ?? [], blocks: applied(group.blocks, change.blocks) };
  }
  return before;
}
