/** Changes to the text of a module at positions given by its syntax tree. */

/** A replacement of [start, end) of the source. */
export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** The used part of a node of the syntax tree (ESTree). */
export interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

/** Applies replacements that do not overlap; those at the same position are applied in order. */
export function applyEdits(source: string, edits: readonly Edit[]): string {
  let result = '';
  let at = 0;
  for (const { start, end, text } of edits.toSorted((a, b) => a.start - b.start)) {
    result += source.slice(at, start) + text;
    at = end;
  }
  return result + source.slice(at);
}

export const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string';
export const nameOf = (node: Node): string => node['name'] as string;
/** Direct children of a node, in source order. Most of a build's time is spent here: only the returned list is allocated. */
export function childrenOf(node: Node): Node[] {
  const children: Node[] = [];
  for (const key in node) {
    const value = node[key];
    if (Array.isArray(value)) {
      for (const each of value) if (isNode(each)) children.push(each);
    } else if (isNode(value)) children.push(value);
  }
  return children;
}
