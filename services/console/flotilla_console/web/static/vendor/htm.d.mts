// htm as the console uses it.
type Tag<N> = (strings: TemplateStringsArray, ...values: unknown[]) => N;
declare const htm: { bind<N>(h: (type: unknown, props: object | null, ...children: unknown[]) => N): Tag<N> };
export default htm;
