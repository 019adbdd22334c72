// Prints the markup of blocks as blocks.js makes it. Input: a list of {blocks, frame}.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const folder = pathToFileURL(`${process.argv[2]}/`);
const { h } = await import(new URL("vendor/preact.mjs", folder));
const { Blocks } = await import(new URL("blocks.js", folder));

const escaped = (text) =>
  `${text}`.replace(/[&<>"']/g, (char) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;" })[char]);

function markup(node) {
  if (node === null || node === undefined || typeof node === "boolean") return "";
  if (Array.isArray(node)) return node.map(markup).join("");
  if (typeof node !== "object") return escaped(node);
  const { type, props } = node;
  if (typeof type === "function") return markup(component(type, props));
  const attributes = Object.entries(props)
    .filter(([name, value]) => name !== "children" && value !== null && value !== undefined && value !== false)
    .map(([name, value]) => (value === true ? ` ${name}` : ` ${name}="${escaped(value)}"`))
    .sort();
  const opening = `<${type}${attributes.join("")}>`;
  if (type === "input") return opening;
  return `${opening}${type === "textarea" ? "\n" : ""}${markup(props.children)}</${type}>`;
}

function component(type, props) {
  if (!type.prototype?.render) return type(props);
  const made = new type(props);
  made.props = props;
  return made.render(props, {});
}

const given = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(given.map(({ blocks, frame }) => markup(h(Blocks, { blocks, frame })))));
