// The blocks of flotilla_console/blocks/types.py as the scripts read them. Members with a default may be missing.
export type Tone = "ok" | "busy" | "warn" | "bad" | "idle";
export type Part = { label: string; count: number; tone: Tone };
export type Span =
  | { is: "text"; text: string }
  | { is: "link"; text: string; href: string }
  | { is: "badge"; text: string; tone: Tone }
  | { is: "age"; at: number | null }
  | { is: "mono"; text: string }
  | { is: "bar"; label: string; parts: Part[]; total: number };
export type Link = { text: string; href: string };
export type Column = { id: string; label: string; numeric?: boolean; sortable?: boolean };
export type Row = { key: string; cells: Span[][]; tone?: Tone };
export type Table = {
  block: "table";
  id: string;
  caption: string;
  columns: Column[];
  rows: Row[];
  total: number;
  offset?: number;
  limit?: number;
  sort?: string;
  descending?: boolean;
};
export type Tick = { at: number; label: string; tone: Tone; detail?: string };
export type LaneSpan = { start: number; end: number; tone: Tone; label: string };
export type Lane = { key: string; label: string; href?: string; spans?: LaneSpan[]; ticks?: Tick[] };
export type Gap = { start: number; end: number };
export type Point = { at: number; value: number };
export type Lanes = {
  block: "lanes";
  id: string;
  caption: string;
  start: number;
  end: number;
  lanes: Lane[];
  gaps?: Gap[];
  ticks?: Tick[];
  line?: Point[];
  ceiling?: Point[];
};
export type Choice = { value: string; label: string };
export type Slider = { block: "slider"; name: string; label: string; values: Choice[]; value: string };
export type Node = { key: string; label: string; column: number; tone?: Tone; href?: string; detail?: string };
export type Edge = { source: string; target: string; label?: string; tone?: Tone };
export type Graph = { block: "graph"; id: string; caption: string; nodes: Node[]; edges: Edge[] };
export type Field = {
  name: string;
  label: string;
  kind?: "text" | "search" | "number" | "select" | "checkbox" | "hidden" | "textarea";
  value?: string;
  choices?: Choice[];
  required?: boolean;
  help?: string;
};
export type Form = {
  block: "form";
  id: string;
  action: string;
  method: "get" | "post";
  fields: Field[];
  submit: string;
  tone?: Tone;
};
export type DiffLine = { sign: "+" | "-" | " "; text: string };
export type Group = { block: "group"; id: string; summary: Span[]; blocks: Block[]; open?: boolean };
export type Notice = { block: "notice"; tone: Tone; spans: Span[] };
export type Block =
  | { block: "heading"; text: string; level?: number; id?: string }
  | { block: "paragraph"; spans: Span[] }
  | Notice
  | { block: "facts"; items: { label: string; spans: Span[] }[] }
  | Table
  | { block: "diff"; title: string; lines: DiffLine[] }
  | { block: "preformatted"; label: string; text: string }
  | Lanes
  | Slider
  | Graph
  | Form
  | Group;
export type Page = { title: string; blocks: Block[]; trail?: Link[] };
export type Shown = {
  path: string;
  query: Record<string, string>;
  page: Page;
  now: number;
  as_of: number;
  banners: Notice[];
  navigation: { label: string; href: string }[];
  user: string;
  session?: boolean;
  csrf: string;
  live: boolean;
};
export type Change = {
  was?: number;
  block?: Block;
  table?: Table;
  rows?: Row[];
  order?: string[];
  summary?: Span[];
  blocks?: Change[];
};
export type Difference = { title: string; trail: Link[]; blocks: Change[] };
export type Frame = { now: number; query: Record<string, string>; csrf: string };
export type LiveEvent =
  | { name: "hello"; data: { stream: string } }
  | { name: "beat"; data: { now: number; as_of: number; banners: Notice[] } }
  | { name: "page"; data: { path: string; version: number; now: number; page: Page | null } }
  | { name: "step"; data: { path: string; version: number; now: number; difference: Difference } }
  | { name: "failed"; data: { path: string } }
  | { name: "signin"; data: { reason: string; href: string } }
  | { name: "lost"; data: { since: number } }
  | { name: "open"; data: {} };
