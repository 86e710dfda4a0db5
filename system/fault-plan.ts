/**
 * Faults to inject, as tables of numbers: plain JSON that any host (ours, or a real guest behind the same device) can
 * carry out. Every row begins with the node; counts begin at 1, so that a row means the same event in every run.
 *
 *     table                  columns                          what happens
 *     completionDrop         node, nth                        the host's nth completion to the device is never sent
 *     completionPoison       node, nth                        its nth completion with data carries the poisoned bit
 *     readRefused            node, nth, status                the device's nth read is answered UR (1) or CA (4)
 *     packetDrop             node, nth                        the nth packet this node sends is corrupted on the cable
 *     packetDelay            node, nth, delayPs               the link is held before it for so long
 *     portDown, portUp       node, atPs                       the cable is unplugged, plugged in, at this node
 *     interruptLost          node, nth                        the device's nth interrupt message never arrives
 *     interruptSpurious      node, vector, atPs               a message of this vector that the device never sent
 *     commandStatus          node, opcode, nth, status        the nth command of this opcode ends with this status
 */
import { ConfigurationError } from '../base/assert.ts';

const faultColumns = {
  completionDrop: ['node', 'nth'],
  completionPoison: ['node', 'nth'],
  readRefused: ['node', 'nth', 'status'],
  packetDrop: ['node', 'nth'],
  packetDelay: ['node', 'nth', 'delayPs'],
  portDown: ['node', 'atPs'],
  portUp: ['node', 'atPs'],
  interruptLost: ['node', 'nth'],
  interruptSpurious: ['node', 'vector', 'atPs'],
  commandStatus: ['node', 'opcode', 'nth', 'status'],
} as const;

export type FaultName = keyof typeof faultColumns;

/** Rows by table; tables that are not there inject nothing. */
export type FaultPlan = { readonly [Name in FaultName]?: readonly (readonly number[])[] };

/** Tables of which a node can have one row. */
const oncePerNode: ReadonlySet<FaultName> = new Set(['completionDrop', 'completionPoison', 'readRefused']);

/** Least and greatest value of a column. */
const columnRanges: Readonly<Record<string, readonly [number, number]>> = {
  nth: [1, Number.MAX_SAFE_INTEGER],
  atPs: [0, Number.MAX_SAFE_INTEGER],
  delayPs: [0, 1e15],
  vector: [0, 2047],
  opcode: [0, 0xfff],
  status: [0, 0xff],
};

/**
 * Checks a plan that may come from JSON.
 * @throws ConfigurationError naming table, row and column
 */
export function checkedFaultPlan(plan: unknown, nodeCount: number): FaultPlan {
  if (typeof plan !== 'object' || plan === null || Array.isArray(plan))
    throw new ConfigurationError('fault plan', JSON.stringify(plan), 'an object of tables');
  for (const [name, rows] of Object.entries(plan) as [string, unknown][]) {
    if (!isFaultName(name))
      throw new ConfigurationError('fault', name, `one of ${Object.keys(faultColumns).join(', ')}`);
    if (!Array.isArray(rows))
      throw new ConfigurationError(`fault ${name}`, JSON.stringify(rows), 'a table of rows');
    for (const [at, row] of (rows as unknown[]).entries()) checkRow(name, at, row, nodeCount);
    if (oncePerNode.has(name)) checkOncePerNode(name, rows as readonly (readonly number[])[]);
  }
  return plan as FaultPlan;
}

/** The rows of a table that concern a node, without the node's column. */
export function faultsOf(plan: FaultPlan, name: FaultName, node: number): readonly (readonly number[])[] {
  return (plan[name] ?? []).filter((row) => row[0] === node).map((row) => row.slice(1));
}

const isFaultName = (name: string): name is FaultName => Object.hasOwn(faultColumns, name);

function checkOncePerNode(name: FaultName, rows: readonly (readonly number[])[]): void {
  const nodes = rows.map(([node]) => node);
  const repeated = nodes.find((node, at) => nodes.indexOf(node) !== at);
  if (repeated !== undefined)
    throw new ConfigurationError(`fault ${name}`, `two rows of node ${repeated}`, 'one row for each node');
}

function checkRow(name: FaultName, at: number, row: unknown, nodeCount: number): void {
  const columns = faultColumns[name];
  if (!Array.isArray(row) || row.length !== columns.length)
    throw new ConfigurationError(
      `fault ${name}[${at}]`,
      JSON.stringify(row),
      `numbers: ${columns.join(', ')}`,
    );
  for (const [index, column] of columns.entries()) {
    const [least, most] = column === 'node' ? [0, nodeCount - 1] : columnRanges[column]!;
    const value: unknown = row[index];
    if (!Number.isSafeInteger(value) || Number(value) < least || Number(value) > most)
      throw new ConfigurationError(
        `fault ${name}[${at}].${column}`,
        value,
        `an integer from ${least} to ${most}`,
      );
  }
}
