/** The request that an output contains: command, arguments, version, parameters, seed, faults, input. */
import type { Topology } from '../../machine/topology/index.ts';
import { type Leaf, leavesOf, soleRowOf } from './figures.ts';
import { isObject, type JsonObject, type Output } from './output.ts';
import { topologyChanges } from './topologies.ts';

/** A difference between requests. */
export interface RequestChange {
  readonly what:
    | 'command'
    | 'arguments'
    | 'workload'
    | 'topology'
    | 'parameter'
    | 'seed'
    | 'fault'
    | 'input'
    | 'story'
    | 'version'
    | 'configuration';
  /** The path of a parameter or of an argument of the programs, or the part of a topology; else a copy of `what`. */
  readonly name: string;
  /** Left out if the output does not state it. */
  readonly before?: Leaf;
  readonly after?: Leaf;
  /** False if the request itself is the same: another version of the package, or a parameter that only one version has. */
  readonly isAsked: boolean;
}

type Row = Omit<RequestChange, 'before' | 'after' | 'isAsked'>;

/** The places of the request in an output, as values by name; the machine's parameters separately. */
function saidBy(
  output: Output,
  soleRow: string | undefined,
): ReadonlyMap<string, { readonly row: Row; readonly value: Leaf }> {
  const invocation = objectIn(output, 'invocation');
  const machine = objectIn(invocation, 'machine');
  const said = new Map<string, { readonly row: Row; readonly value: Leaf }>();
  const say = (what: RequestChange['what'], name: string, value: unknown, key = name): void => {
    if (value !== undefined) said.set(`${what} ${key}`, { row: { what, name }, value: leafOf(value) });
  };
  say('command', 'command', invocation['command'] ?? output['test']);
  say('arguments', 'arguments', listText(invocation['arguments']));
  for (const [path, value] of leavesOf(output, isWorkload, soleRow))
    if (isArgument.test(path)) say('workload', path, value);
  say('seed', 'seed', machine['seed']);
  const injected = new Map<string, number>();
  for (const text of faultsOf(output, machine)) {
    const count = (injected.get(text) ?? 0) + 1;
    injected.set(text, count);
    say('fault', text, text, `${text} ${count}`);
  }
  say('input', 'input', objectIn(invocation, 'input')['sha256']);
  for (const [path, value] of leavesOf({ story: output['story'] }, () => true)) say('story', path, value);
  say('version', 'version', invocation['version']);
  return said;
}

const isWorkload = (path: string): boolean => /^(args(\.|$)|rows(\.[^.]+(\.args(\.|$)|$)|$))/.test(path);
const isArgument = /^(rows\.[^.]+\.)?args\./;

const objectIn = (value: JsonObject, name: string): JsonObject => {
  const member = value[name];
  return isObject(member) ? member : {};
};

const listText = (value: unknown): string | undefined =>
  Array.isArray(value) ? value.map(String).join(' ') : undefined;

const leafOf = (value: unknown): Leaf =>
  typeof value === 'number' || typeof value === 'boolean' || typeof value === 'string' ? value : null;

function faultsOf(output: Output, machine: JsonObject): string[] {
  const asked = machine['faults'] ?? output['faults'];
  if (!Array.isArray(asked)) return [];
  return asked.map((fault: unknown) => String(isObject(fault) ? fault['fault'] : fault));
}

/**
 * All differences between requests, parameters last.
 * @param topologies of both, if they differ
 */
export function requestChanges(
  before: Output,
  after: Output,
  topologies: readonly [Topology, Topology] | undefined,
): RequestChange[] {
  const soleRow = soleRowOf(before, after);
  const [left, right] = [saidBy(before, soleRow), saidBy(after, soleRow)];
  const rows = [...new Set([...left.keys(), ...right.keys()])].flatMap((key) => {
    const [one, other] = [left.get(key), right.get(key)];
    if (one?.value === other?.value) return [];
    const row = (one ?? other)!.row;
    // Different sizes produce different rows, which the arguments or the figures show.
    if (row.what === 'workload' && (one === undefined || other === undefined)) return [];
    return [changeOf(row, one?.value, other?.value, row.what !== 'version')];
  });
  const ofTopology = topologies === undefined ? [] : topologyChanges(topologies);
  const changes: RequestChange[] = [
    ...rows,
    ...ofTopology.map((change) => ({ what: 'topology' as const, ...change, isAsked: true })),
    ...parameterChanges(before, after),
  ];
  return [...changes, ...unexplained(before, after, changes)];
}

function changeOf(
  row: Row,
  before: Leaf | undefined,
  after: Leaf | undefined,
  isAsked: boolean,
): RequestChange {
  return {
    ...row,
    ...(before === undefined ? {} : { before }),
    ...(after === undefined ? {} : { after }),
    isAsked,
  };
}

/** All parameters, if both outputs state them; else those that differ from their defaults, and then a missing one counts as its default. */
function parameterChanges(before: Output, after: Output): RequestChange[] {
  const [left, right] = [configOf(before), configOf(after)];
  if (left !== undefined && right !== undefined)
    return compared(left, right, (one, other) => ![one, other].includes(undefined));
  return compared(changedOf(before), changedOf(after), () => true);
}

function compared(
  left: ReadonlyMap<string, Leaf>,
  right: ReadonlyMap<string, Leaf>,
  isAsked: (before: Leaf | undefined, after: Leaf | undefined) => boolean,
): RequestChange[] {
  const paths = new Set([...left.keys(), ...right.keys()]);
  return [...paths].flatMap((path) => {
    const [one, other] = [left.get(path), right.get(path)];
    return one === other
      ? []
      : [changeOf({ what: 'parameter', name: path }, one, other, isAsked(one, other))];
  });
}

/** Every parameter except the seed, if an output has them all. */
function configOf(output: Output): ReadonlyMap<string, Leaf> | undefined {
  const config =
    output['config'] ?? objectIn(output, 'report')['config'] ?? objectIn(output, 'serve')['config'];
  return isObject(config) ? leavesOf(config, (path) => path !== 'machine.seed') : undefined;
}

function changedOf(output: Output): ReadonlyMap<string, Leaf> {
  const set = objectIn(objectIn(objectIn(output, 'invocation'), 'machine'), 'set');
  return new Map(Object.entries(set).map(([path, value]) => [path, leafOf(value)]));
}

/** Hashes that differ without another difference: a default of another version, or an output that states no more. */
function unexplained(before: Output, after: Output, changes: readonly RequestChange[]): RequestChange[] {
  const [one, other] = [hashOf(before), hashOf(after)];
  if (one === other || changes.some(({ what }) => ['parameter', 'topology', 'seed', 'fault'].includes(what)))
    return [];
  const [from, to] = [before, after].map((output) => objectIn(output, 'invocation')['version']);
  return [changeOf({ what: 'configuration', name: 'configHash' }, one, other, from === to)];
}

const hashOf = (output: Output): string | undefined => {
  const machine = objectIn(objectIn(output, 'invocation'), 'machine');
  const hash = output['configHash'] ?? objectIn(output, 'report')['configHash'] ?? machine['configHash'];
  return typeof hash === 'string' ? hash : undefined;
};
