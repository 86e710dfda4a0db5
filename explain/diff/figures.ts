/**
 * Converts an output to figures: every number, word and flag by its path, such as `rows.size=64.result.typicalPs`.
 * Figures exclude the request (request.ts) and wall-clock times.
 *
 * Rows of a list are identified by their subject and not by their index, so that an additional row does not shift the
 * others.
 */
import { ConfigurationError } from '../../base/index.ts';
import { isObject, type JsonObject, type Output } from './output.ts';

export type Leaf = number | string | boolean | null;

/** Greatest depth of compared values. */
const depthMax = 32;

/** Requested values, which are compared separately. */
const request =
  /^(schema|invocation|configHash|config|test|story|(report\.)?topology|report\.config(Hash)?|serve\.config(Hash)?)(\.|$)|^(rows\.[^.]+\.)?args(\.|$)|(^|\.)faults\..*\.fault$/;

/** Wall-clock times, file names and recordings: they describe how an output was computed. */
const runFact =
  /^(seconds|longestTurnMs|run|versions|timeline)(\.|$)|^(serve\.run|report\.invocation)\.|(^|\.)(elapsedMs|file)$|^rows\.[^.]+\.timeline(\.|$)|(^|\.)analyses\.[^.]+\.(node|eventCount)$/;

/**
 * Advice on parameters, which follows from the bottleneck; names and kinds in lists identified by name. They carry no
 * information of their own.
 */
const advice =
  /^rows\.[^.]+\.((bottleneck|stages)\.(.*\.)?turn(\.|$)|(bottleneck\.next|stages)\..*\.(name|kind)$)/;

/**
 * Row name for outputs with a single row: `only`, so that a test of one size is compared with that of another.
 * Undefined for other outputs, whose rows are identified by subject.
 */
export function soleRowOf(...outputs: readonly Output[]): string | undefined {
  const areSole = outputs.every(({ rows }) => Array.isArray(rows) && rows.length === 1);
  if (!areSole) return undefined;
  const names = new Set(outputs.map(({ rows }) => keyOf((rows as unknown[])[0], 0)));
  return names.size === 1 ? undefined : 'only';
}

/**
 * Every figure of an output, in order.
 * @param soleRow name of its single row
 * @throws ConfigurationError for an output that is nested too deeply
 */
export function figuresOf(output: Output, soleRow?: string): ReadonlyMap<string, Leaf> {
  const isFigure = (path: string): boolean =>
    !request.test(path) && !runFact.test(path) && !advice.test(path);
  return leavesOf(output, isFigure, soleRow);
}

/** All values within a value, by path. */
export function leavesOf(
  value: unknown,
  isWanted: (path: string) => boolean,
  soleRow?: string,
): ReadonlyMap<string, Leaf> {
  const leaves = new Map<string, Leaf>();
  const sizes = isObject(value) && Array.isArray(value['sizes']) ? (value['sizes'] as unknown[]) : undefined;
  const visit = (part: unknown, path: string, depth: number): void => {
    if (depth > depthMax)
      throw new ConfigurationError('output', `${path.slice(0, 60)}…`, `figures at most ${depthMax} deep`);
    if (path !== '' && !isWanted(path)) return;
    if (Array.isArray(part)) {
      const isSole = soleRow !== undefined && path === 'rows';
      const keys = isSole ? [soleRow] : keysOf(part as unknown[], path, sizes);
      for (const [at, row] of (part as unknown[]).entries()) visit(row, joined(path, keys[at]!), depth + 1);
    } else if (isObject(part)) {
      for (const [name, member] of Object.entries(part)) visit(member, joined(path, name), depth + 1);
    } else if (part !== undefined) leaves.set(path, part as Leaf);
  };
  visit(value, '', 0);
  return leaves;
}

const joined = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);

/** A name for each row of a list; repeated names receive a number. */
function keysOf(rows: readonly unknown[], path: string, sizes: readonly unknown[] | undefined): string[] {
  const isOverSizes = sizes !== undefined && sizes.length === rows.length && /Ps\.\w+$/.test(path);
  const taken = new Map<string, number>();
  return rows.map((row, at) => {
    const key = isOverSizes ? `size=${String(sizes[at])}` : keyOf(row, at);
    const before = taken.get(key) ?? 0;
    taken.set(key, before + 1);
    return before === 0 ? key : `${key}#${before + 1}`;
  });
}

function keyOf(row: unknown, at: number): string {
  if (!isObject(row)) return String(at);
  for (const key of keys) {
    const name = key(row);
    if (name !== undefined) return name;
  }
  return String(at);
}

/** The end of a cable: its host, and the port unless it is the first. */
const endName = (host: unknown, port: unknown): string =>
  port === undefined ? String(host) : `${String(host)}.${String(port)}`;

/** Fields that identify the rows of each list; the first match applies. */
const keys: readonly ((row: JsonObject) => string | undefined)[] = [
  ({ args }) => {
    if (!isObject(args) || args['sizeBytes'] === undefined) return undefined;
    return `size=${String(args['sizeBytes'])}${args['isOnDemand'] === true ? ',odp' : ''}`;
  },
  ({ path, sizeBytes }) =>
    sizeBytes === undefined ? undefined : `${String(path)},size=${String(sizeBytes)}`,
  ({ vector }) => (vector === undefined ? undefined : `vector=${String(vector)}`),
  ({ fault, fired }) => (fired === undefined ? undefined : String(fault)),
  ({ from, fromPort, to, toPort }) =>
    from === undefined ? undefined : `${endName(from, fromPort)}-${endName(to, toPort)}`,
  // Resources and stages, several of which are of one kind; and advice.
  ({ share, name }) => (share === undefined || typeof name !== 'string' ? undefined : name),
  ({ what, towards }) => (typeof what === 'string' && typeof towards === 'string' ? what : undefined),
  ({ method, waiting, path, kind, name }) => {
    const word = method ?? waiting ?? path ?? kind ?? name;
    return typeof word === 'string' ? word : undefined;
  },
  ({ switch: node, port }) => (node === undefined ? undefined : `switch${endName(node, port)}`),
  ({ node, ports }) => (Array.isArray(ports) && node !== undefined ? `switch${String(node)}` : undefined),
  ({ port, notForwarded }) => (notForwarded === undefined ? undefined : `port${String(port)}`),
  ({ seed }) => (seed === undefined ? undefined : `seed=${String(seed)}`),
];
