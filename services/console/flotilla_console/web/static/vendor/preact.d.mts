// The part of preact that the console uses.
export type VNode = { type: unknown; props: Record<string, unknown> };
export class Component<P = any, S = any> {
  props: P;
  state: S;
  setState(state: Partial<S>): void;
}
export const Fragment: (props: { children?: unknown }) => unknown;
export function h(type: unknown, props: object | null, ...children: unknown[]): VNode;
export function render(node: unknown, parent: Element): void;
export function hydrate(node: unknown, parent: Element): void;
