// Renders blocks in the browser: the same markup as blocks/html.py and blocks/pictures.py.

import { Component, Fragment, h } from "./vendor/preact.mjs";
import htm from "./vendor/htm.mjs";
import { BOX, BOX_HEIGHT, COLUMN, LINE_HEIGHT, WIDTH, columnOf, places, scale, steps, whole } from "./geometry.js";
import { age, clockTime, moment, stamp } from "./times.js";

const html = htm.bind(h);

export const SIGNS = { ok: "✓", busy: "↻", warn: "!", bad: "✕", idle: "·" };
const ARROWS = { ascending: "▲", descending: "▼", none: "↕" };
const DIFF_TAGS = { "+": "ins", "-": "del", " ": "span" };
const LANE_HEIGHT = 20;
const MIN_WIDTH = 2;
const MAX_TEXT_ROWS = 1000;
const LABEL_CHARACTERS = 40;

/**
 * The link if it leads to a page of this server, else null. Browsers ignore control characters in links and read a
 * backslash as a slash.
 * @param {string | undefined} href
 */
export function local(href) {
  if (!href || !/^[/?#]/.test(href) || /[\u0000-\u001f]/.test(href)) return null;
  return /^\/[/\\]/.test(href) ? null : href;
}

/**
 * A link to this page with a changed query; an empty value removes its parameter.
 * @param {import("./types").Frame} frame @param {Record<string, string>} changes
 */
function changedQuery(frame, changes) {
  const query = Object.entries({ ...frame.query, ...changes }).filter(([, value]) => value);
  return `?${new URLSearchParams(query)}`;
}

/** @param {{ href?: string, children?: unknown, [attribute: string]: unknown }} props */
export function Anchor({ href, children, ...attributes }) {
  const safe = local(href);
  return safe === null ? html`<${Fragment}>${children}<//>` : html`<a href=${safe} ...${attributes}>${children}</a>`;
}

/** @param {{ tone: import("./types").Tone }} props */
const Sign = ({ tone }) => html`<span class="sign" aria-hidden="true">${SIGNS[tone]}</span>`;

/** Whether a line has a sign of its own at its beginning. @param {import("./types").Span[]} spans */
const beginsWithBadge = (spans) => spans[0]?.is === "badge";

// Pieces of a line

/** @param {{ spans: import("./types").Span[], frame: import("./types").Frame }} props */
export const Line = ({ spans, frame }) => spans.map((span) => piece(span, frame));

/** @param {import("./types").Span} span @param {import("./types").Frame} frame */
function piece(span, frame) {
  switch (span.is) {
    case "link":
      return html`<${Anchor} href=${span.href}>${span.text}<//>`;
    case "badge":
      return html`<span class=${`badge tone-${span.tone}`}><${Sign} tone=${span.tone} /> ${span.text}</span>`;
    case "age":
      return html`<time datetime=${stamp(span.at)} title=${moment(span.at)}>${age(span.at, frame.now)}</time>`;
    case "mono":
      return html`<code>${span.text}</code>`;
    case "bar":
      return bar(span);
    default:
      return span.text;
  }
}

/** @param {Extract<import("./types").Span, { is: "bar" }>} one */
function bar(one) {
  const all = Math.max(one.total, 1);
  let x = 0;
  const rects = one.parts.map((part) => {
    const width = Math.min(Math.floor((Math.max(part.count, 0) * 1000) / all), 1000 - x);
    const rect = html`<rect class=${`fill-${part.tone}`} x=${x} y="0" width=${width} height="8"></rect>`;
    x += width;
    return rect;
  });
  // The label says how many are as they should be.
  const said = one.parts.filter((part) => !(one.label && part.tone === "ok"));
  const parts = said.map((part) => `${part.count} ${part.label}`);
  const text = one.label ? [one.label, ...parts].join(", ") : `${parts.join(", ")} of ${one.total}`;
  return html`<span class="bar"
    ><svg class="bar-picture" viewBox="0 0 1000 8" preserveAspectRatio="none" aria-hidden="true">${rects}</svg
    ><span>${text}</span></span
  >`;
}

// Blocks

/** @param {{ blocks: import("./types").Block[], frame: import("./types").Frame }} props */
export const Blocks = ({ blocks, frame }) =>
  blocks.map((block, place) => {
    const render = /** @type {any} */ (BLOCKS[block.block]);
    const key = "id" in block && block.id ? `${block.block} ${block.id}` : `${block.block} ${place}`;
    return h(render, { key, one: block, frame });
  });

/** @template {string} Name @typedef {{ one: Extract<import("./types").Block, { block: Name }>, frame: import("./types").Frame }} Props */

/** @param {Props<"heading">} props */
const Heading = ({ one }) => h(`h${Math.min(Math.max(one.level ?? 2, 2), 4)}`, { id: one.id || null }, one.text);

/** @param {Props<"paragraph">} props */
const Paragraph = ({ one, frame }) => html`<p><${Line} spans=${one.spans} frame=${frame} /></p>`;

/** @param {Props<"notice">} props */
export const Notice = ({ one, frame }) =>
  html`<p class=${`notice tone-${one.tone}`}>${beginsWithBadge(one.spans) ? null : [html`<${Sign} tone=${one.tone} />`, " "]}<${Line} spans=${one.spans} frame=${frame} /></p>`;

/** @param {Props<"facts">} props */
const Facts = ({ one, frame }) => html`<dl class="facts">
  ${one.items.map(
    (fact) => html`<div><dt>${fact.label}</dt><dd><${Line} spans=${fact.spans} frame=${frame} /></dd></div>`,
  )}
</dl>`;

/** A table, which is rendered again only when it or the page's query changed. */
class Table extends Component {
  /** @param {Props<"table">} next */
  shouldComponentUpdate(next) {
    const { one, frame } = /** @type {any} */ (this).props;
    return next.one !== one || next.frame.query !== frame.query || next.frame.now !== frame.now;
  }

  /** @param {Props<"table">} props */
  render({ one, frame }) {
    const caption = `${one.id}-caption`;
    return html`<div class="table"
      ><div class="scroll" role="region" aria-labelledby=${caption} tabindex="0"
        ><table id=${one.id}
          ><caption id=${caption}>${one.caption} <span class="count">${windowOf(one)}</span></caption
          ><thead><tr>${one.columns.map((column) => columnOfTable(column, one, frame))}</tr></thead
          ><tbody>${
            one.rows.length
              ? one.rows.map((row) => html`<${TableRow} key=${row.key} row=${row} columns=${one.columns} frame=${frame} />`)
              : html`<tr><td class="empty" colspan=${Math.max(one.columns.length, 1)}>None</td></tr>`
          }</tbody
        ></table
      ></div
      >${paging(one, frame)}</div
    >`;
  }
}

/** @param {import("./types").Table} one */
function windowOf(one) {
  const offset = one.offset ?? 0;
  return one.rows.length === one.total ? `${one.total}` : `${offset + 1} to ${offset + one.rows.length} of ${one.total}`;
}

/** @param {import("./types").Column} column @param {import("./types").Table} one @param {import("./types").Frame} frame */
function columnOfTable(column, one, frame) {
  const name = column.numeric ? "numeric" : null;
  if (!column.sortable) return html`<th scope="col" class=${name}>${column.label}</th>`;
  const here = one.sort === column.id;
  const order = here ? (one.descending ? "descending" : "ascending") : "none";
  const target = here && !one.descending ? `-${column.id}` : column.id;
  return html`<th scope="col" class=${name} aria-sort=${order}
    ><${Anchor} href=${changedQuery(frame, { sort: target, offset: "" })}
      >${column.label} <span class="sign" aria-hidden="true">${ARROWS[order]}</span><//
    ></th
  >`;
}

/** A row, which is rendered again only when it changed, or when ages have. */
class TableRow extends Component {
  /** @param {{ row: import("./types").Row, columns: import("./types").Column[], frame: import("./types").Frame }} next */
  shouldComponentUpdate(next) {
    const { row, frame } = /** @type {any} */ (this).props;
    return next.row !== row || next.frame.now !== frame.now;
  }

  /** @param {{ row: import("./types").Row, columns: import("./types").Column[], frame: import("./types").Frame }} props */
  render({ row, columns, frame }) {
    const cells = row.cells.map((cell, number) => {
      const name = columns[number]?.numeric ? "numeric" : null;
      const line = html`<${Line} spans=${cell} frame=${frame} />`;
      if (number > 0) return html`<td class=${name}>${line}</td>`;
      const mark = row.tone && !beginsWithBadge(cell) ? [html`<${Sign} tone=${row.tone} />`, " "] : null;
      return html`<th scope="row" class=${name}>${mark}${line}</th>`;
    });
    return html`<tr class=${row.tone ? `tone-${row.tone}` : null}>${cells}</tr>`;
  }
}

/** @param {import("./types").Table} one @param {import("./types").Frame} frame */
function paging(one, frame) {
  const [offset, limit] = [one.offset ?? 0, one.limit ?? 100];
  const links = [];
  if (offset > 0) {
    const before = Math.max(offset - limit, 0);
    links.push(html`<${Anchor} href=${changedQuery(frame, { offset: before ? `${before}` : "" })} rel="prev">Previous<//>`);
  }
  if (offset + one.rows.length < one.total) {
    links.push(html`<${Anchor} href=${changedQuery(frame, { offset: `${offset + limit}` })} rel="next">Next<//>`);
  }
  return links.length ? html`<nav class="paging" aria-label=${`Pages of ${one.caption}`}>${links}</nav>` : null;
}

/** @param {Props<"group">} props */
const Group = ({ one, frame }) => html`<details id=${one.id} class="group" open=${one.open ?? false}
  ><summary><${Line} spans=${one.summary} frame=${frame} /></summary><${Blocks} blocks=${one.blocks} frame=${frame} /></details
>`;

/** @param {Props<"diff">} props */
const Diff = ({ one }) => html`<figure class="diff"
  ><figcaption>${one.title}</figcaption
  ><pre tabindex="0" role="region" aria-label=${one.title}><code>${one.lines.map((line) =>
    h(DIFF_TAGS[line.sign], null, `${line.sign} ${line.text}\n`),
  )}</code></pre></figure
>`;

/** @param {Props<"preformatted">} props */
const Preformatted = ({ one }) => html`<figure class="preformatted"
  ><figcaption>${one.label}</figcaption
  ><pre tabindex="0" role="region" aria-label=${one.label}><code>${one.text}</code></pre></figure
>`;

// Timelines

/** @param {Props<"lanes">} props */
function Lanes({ one }) {
  const x = scale(one.start, one.end, one.gaps ?? []);
  const hasLine = one.line?.length || one.ceiling?.length || one.ticks?.length;
  return html`<figure id=${one.id} class="lanes"
    ><figcaption>${one.caption}</figcaption
    ><p class="lane-axis">${time(one.start)} to ${time(one.end)}</p
    >${hasLine ? laneLine(one, x) : null}<ol class="lane-rows">${one.lanes.map((lane) => laneRow(lane, one, x))}</ol
    ><${AsText} one=${one} /></figure
  >`;
}

/** @param {number} at */
const time = (at) => html`<time datetime=${stamp(at)} title=${moment(at)}>${clockTime(at)}</time>`;

/** @param {number} height @param {string} name @param {unknown[]} drawn */
const picture = (height, name, drawn) =>
  html`<svg class=${name} viewBox=${`0 0 ${WIDTH} ${height}`} preserveAspectRatio="none" aria-hidden="true">${drawn}</svg>`;

/** @param {import("./types").Lanes} one @param {(at: number) => number} x */
function laneLine(one, x) {
  const top = Math.max(1, ...[...(one.line ?? []), ...(one.ceiling ?? [])].map((point) => point.value));
  const drawn = picture(LINE_HEIGHT, "lane-line", [
    ...(one.gaps ?? []).map((gap) => gapShape(gap, x, LINE_HEIGHT)),
    ...(one.ticks ?? []).map((tick) => tickShape(tick, x, LINE_HEIGHT)),
    html`<path class="ceiling" d=${steps(one.ceiling ?? [], x, top)}></path>`,
    html`<path class="line" d=${steps(one.line ?? [], x, top)}></path>`,
  ]);
  return html`<div class="lane-head"><span class="lane-legend">${legend(one)}</span>${drawn}</div>`;
}

/** The meaning of the two lines, the upper one first. @param {import("./types").Lanes} one */
const legend = (one) => [
  one.ceiling?.length ? html`<span class="key key-ceiling">maxUnavailable ${whole(one.ceiling.at(-1)?.value ?? 0)}</span>` : null,
  one.line?.length ? html`<span class="key key-line">unavailable pods</span>` : null,
];

/** @param {import("./types").Lane} lane @param {import("./types").Lanes} one @param {(at: number) => number} x */
function laneRow(lane, one, x) {
  const spans = (lane.spans ?? []).map((span) => {
    const start = x(span.start);
    const width = Math.max(x(span.end) - start, MIN_WIDTH);
    const title = `${span.label} ${clockTime(span.start)} to ${clockTime(span.end)}`;
    return html`<rect class=${`fill-${span.tone}`} x=${start} y="4" width=${width} height=${LANE_HEIGHT - 8}><title>${title}</title></rect>`;
  });
  const drawn = [
    ...(one.gaps ?? []).map((gap) => gapShape(gap, x, LANE_HEIGHT)),
    ...spans,
    ...(lane.ticks ?? []).map((tick) => tickShape(tick, x, LANE_HEIGHT)),
  ];
  return html`<li key=${lane.key}
    ><span class="lane-label"><${Anchor} href=${lane.href}>${lane.label}<//></span>${picture(LANE_HEIGHT, "lane-picture", drawn)}</li
  >`;
}

/** @param {import("./types").Gap} gap @param {(at: number) => number} x @param {number} height */
const gapShape = (gap, x, height) =>
  html`<rect class="gap" x=${x(gap.start)} y="0" width=${Math.max(x(gap.end) - x(gap.start), 0)} height=${height}></rect>`;

/** @param {import("./types").Tick} tick @param {(at: number) => number} x @param {number} height */
function tickShape(tick, x, height) {
  const start = Math.max(Math.min(x(tick.at), WIDTH - MIN_WIDTH), 0);
  const title = `${clockTime(tick.at)} ${tick.label} ${tick.detail ?? ""}`.trimEnd();
  return html`<rect class=${`fill-${tick.tone}`} x=${start} y="0" width=${MIN_WIDTH} height=${height}><title>${title}</title></rect>`;
}

/** @param {{ one: import("./types").Lanes }} props */
function AsText({ one }) {
  /** @type {unknown[]} */
  const rows = [];
  /** @param {number} at @param {unknown} label @param {string} event */
  const add = (at, label, event) => rows.push(html`<tr><td>${time(at)}</td><td>${label}</td><td>${event}</td></tr>`);
  /** @param {import("./types").Tick} tick */
  const text = (tick) => `${tick.label} ${tick.detail ?? ""}`.trimEnd();
  for (const tick of one.ticks ?? []) add(tick.at, "", text(tick));
  for (const point of one.line ?? []) add(point.at, "", `${whole(point.value)}`);
  for (const lane of one.lanes) {
    if (rows.length > MAX_TEXT_ROWS) break;
    const label = html`<${Anchor} href=${lane.href}>${lane.label}<//>`;
    for (const span of lane.spans ?? []) add(span.start, label, `${span.label} until ${clockTime(span.end)}`);
    for (const tick of lane.ticks ?? []) add(tick.at, label, text(tick));
  }
  return html`<details class="as-text"
    ><summary>As text</summary
    ><div class="scroll" role="region" aria-label=${one.caption} tabindex="0"
      ><table
        ><caption>${one.caption}</caption
        ><thead><tr><th scope="col">Time</th><th scope="col">Lane</th><th scope="col">Event</th></tr></thead
        ><tbody>${rows.slice(0, MAX_TEXT_ROWS)}</tbody></table
      ></div
    ></details
  >`;
}

// Graphs

/** @param {Props<"graph">} props */
function Graph({ one }) {
  const where = places(one);
  const width = Math.max(0, ...one.nodes.map(columnOf)) * COLUMN + BOX + 8;
  const height = Math.max(0, ...[...where.values()].map(([, y]) => y)) + BOX_HEIGHT + 8;
  const edges = one.edges.filter((edge) => where.has(edge.source) && where.has(edge.target));
  return html`<figure id=${one.id} class="graph"
    ><figcaption>${one.caption}</figcaption
    ><div class="scroll" role="region" aria-label=${one.caption} tabindex="0"
      ><svg viewBox=${`-4 -4 ${width} ${height}`} width=${width} height=${height} role="group" aria-label=${one.caption}
        >${edges.map((edge) => edgeShape(edge, where))}${one.nodes.map((node) => nodeShape(node, where))}</svg
      ></div
    ></figure
  >`;
}

/** @param {import("./types").Edge} edge @param {Map<string, [number, number]>} where */
function edgeShape(edge, where) {
  const [x1, top1] = /** @type {[number, number]} */ (where.get(edge.source));
  const [x2, top2] = /** @type {[number, number]} */ (where.get(edge.target));
  const [y1, y2, start] = [top1 + BOX_HEIGHT / 2, top2 + BOX_HEIGHT / 2, x1 + BOX];
  const middle = Math.floor((start + x2) / 2);
  const label = edge.label ?? "";
  return html`<g class="edge"
    ><title>${label}</title
    ><path class=${`stroke-${edge.tone ?? "idle"}`} d=${`M${start} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`}></path
    ><text class="edge-label" x=${middle} y=${Math.floor((y1 + y2) / 2) - 4}>${label}</text></g
  >`;
}

/** @param {import("./types").Node} node @param {Map<string, [number, number]>} where */
function nodeShape(node, where) {
  const [x, y] = /** @type {[number, number]} */ (where.get(node.key));
  const detail = node.detail ?? "";
  return html`<${Anchor} key=${node.key} href=${node.href}
    ><g class="node"
      ><title>${`${node.label} ${detail}`.trimEnd()}</title
      ><rect class=${`box stroke-${node.tone ?? "idle"}`} x=${x} y=${y} width=${BOX} height=${BOX_HEIGHT} rx="6"></rect
      ><text x=${x + 10} y=${y + 18}>${short(node.label)}</text
      ><text class="detail" x=${x + 10} y=${y + 34}>${short(detail)}</text></g
    ><//
  >`;
}

/** @param {string} text */
function short(text) {
  const characters = Array.from(text);
  return characters.length <= LABEL_CHARACTERS ? text : `${characters.slice(0, LABEL_CHARACTERS - 1).join("")}…`;
}

// Forms

/** A choice among ordered values: a list in the document, a slider where scripts run. */
class Slider extends Component {
  componentDidMount() {
    this.setState({ runs: true });
  }

  /** @param {Props<"slider">} props @param {{ runs?: boolean }} state */
  render({ one, frame }, { runs }) {
    const kept = Object.entries(frame.query).filter(([name]) => name !== one.name);
    return html`<form class="slider" method="get"
      >${kept.map(([name, value]) => html`<${Hidden} name=${name} value=${value} />`)}${
        runs ? range(one) : html`<label>${one.label} <select name=${one.name}>${options(one.values, one.value)}</select></label>`
      }<button type="submit">Show</button></form
    >`;
  }
}

/** @param {import("./types").Slider} one */
function range(one) {
  const place = Math.max(0, one.values.findIndex((choice) => choice.value === one.value));
  /** @param {{ currentTarget: HTMLInputElement }} event */
  const moved = ({ currentTarget }) => {
    const form = /** @type {HTMLFormElement} */ (currentTarget.form);
    const choice = one.values[Number(currentTarget.value)];
    if (!choice) return;
    /** @type {HTMLInputElement} */ (form.elements.namedItem(one.name)).value = choice.value;
    form.requestSubmit();
  };
  const text = one.values[place]?.label ?? "";
  return html`<label
    >${one.label} <input type="range" min="0" max=${Math.max(one.values.length - 1, 0)} value=${place} aria-valuetext=${text} onChange=${moved} /> <output>${text}</output></label
  ><${Hidden} name=${one.name} value=${one.value} />`;
}

/** @param {import("./types").Choice[]} choices @param {string | undefined} value */
const options = (choices, value) =>
  choices.map((choice) => html`<option value=${choice.value} selected=${choice.value === (value ?? "")}>${choice.label}</option>`);

/** @param {{ name: string, value: string }} props */
const Hidden = ({ name, value }) => html`<input type="hidden" name=${name} value=${value} />`;

/** @param {Props<"form">} props */
function Form({ one, frame }) {
  const action = local(one.action);
  if (action === null) return null;
  const role = one.fields.some((field) => field.kind === "search") ? "search" : null;
  return html`<form id=${one.id} class=${`form tone-${one.tone ?? "idle"}`} method=${one.method} action=${action} role=${role}
    >${one.method === "post" ? html`<${Hidden} name="csrf" value=${frame.csrf} />` : null}${one.fields.map(
      (field) => html`<${FormField} key=${field.name} field=${field} form=${one.id} />`,
    )}<button type="submit">${one.submit}</button></form
  >`;
}

/** A field of a form. What somebody types stays, whatever the page's next version says. */
class FormField extends Component {
  /** @param {{ field: import("./types").Field, form: string }} next */
  shouldComponentUpdate(next) {
    return JSON.stringify(next.field) !== JSON.stringify(/** @type {any} */ (this).props.field);
  }

  /** @param {{ field: import("./types").Field, form: string }} props */
  render({ field, form }) {
    const value = field.value ?? "";
    if (field.kind === "hidden") return html`<${Hidden} name=${field.name} value=${value} />`;
    const id = `${form}-${field.name}`;
    const common = {
      id,
      name: field.name,
      required: field.required ?? false,
      "aria-describedby": field.help ? `${id}-help` : null,
    };
    return html`<div class=${`field field-${field.kind ?? "text"}`}
      ><label for=${id}>${field.label}</label>${control(field, value, common)}${
        field.help ? html`<small id=${`${id}-help`}>${field.help}</small>` : null
      }</div
    >`;
  }
}

/** @param {import("./types").Field} field @param {string} value @param {Record<string, unknown>} common */
function control(field, value, common) {
  switch (field.kind) {
    case "select":
      return html`<select ...${common}>${options(field.choices ?? [], value)}</select>`;
    case "textarea":
      return html`<textarea ...${common} rows="8">${value}</textarea>`;
    case "checkbox":
      return html`<input ...${common} type="checkbox" value="true" checked=${value === "true"} />`;
    default:
      return html`<input ...${common} type=${field.kind ?? "text"} value=${value} />`;
  }
}

const BLOCKS = {
  heading: Heading,
  paragraph: Paragraph,
  notice: Notice,
  facts: Facts,
  table: Table,
  diff: Diff,
  preformatted: Preformatted,
  lanes: Lanes,
  slider: Slider,
  graph: Graph,
  form: Form,
  group: Group,
};
