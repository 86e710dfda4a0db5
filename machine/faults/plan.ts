/**
 * Fault plans: the faults to inject into a machine of simulated hosts or into a served guest.
 *
 *     option   command=SW2HW_CQ,nth=2,status=BAD_RES_STATE
 *     entry    { "command": "SW2HW_CQ", "nth": 2, "status": "BAD_RES_STATE" }
 *     file     { "version": 1, "faults": [ entry, … ] }
 *
 * An entry names exactly one kind. This file checks and parses everything once; the result is plain data for any
 * thread. Events are counted from 1, so that a fault means the same event in every run.
 */
import { ConfigurationError, runtime, shortJson } from '../../base/index.ts';
import { hintFor, type MachineConfig } from '../profile/index.ts';
import type { Topology } from '../topology/index.ts';
import type { Field } from './fields.ts';
import { contradictionOf, type Fault, type FaultKind, type FaultOf, faultKinds, plainest } from './kinds.ts';
import { faultedNodesOf, placed } from './places.ts';

/** A fault as a user writes it: words and numbers by field; see {@link faultKinds}. */
export type FaultEntry = Readonly<Record<string, string | number>>;

/** Faults as a user writes them. */
export type FaultPlan = readonly FaultEntry[];

type Transport = MachineConfig['hca']['capability']['transport'];

const version = 1;
const kindNames = Object.keys(faultKinds) as readonly FaultKind[];

/**
 * Checks and parses entries from an untrusted source.
 * @param nodeCount hosts; the switches of the topology are nodes, too
 * @param topology left out: adapters have a cable at port 1 only
 * @param transport of the adapters
 * @throws ConfigurationError naming entry, field, value and range
 */
export function checkedFaults(
  plan: unknown,
  nodeCount: number,
  topology?: Topology,
  transport: Transport = 'ibta',
): readonly Fault[] {
  if (!Array.isArray(plan)) throw new ConfigurationError('faults', shortJson(plan), 'a list of faults');
  return (plan as unknown[]).map((entry, at) => {
    const place = `fault ${at + 1}`;
    const checked = checkedFault(entry, place, faultedNodesOf(nodeCount, topology));
    const fault = placed(checked, place, topology);
    if (transport === 'iwarp' && fault.kind === 'packet') checkOfTcp(fault, place);
    return fault;
  });
}

/**
 * Parses an option: `name=value` pairs, separated by commas.
 * @throws ConfigurationError
 */
export function parsedFault(text: string): FaultEntry {
  const entry: Record<string, string> = {};
  for (const part of text.split(',')) {
    const at = part.indexOf('=');
    const name = part.slice(0, Math.max(at, 0)).trim();
    if (name === '')
      throw new ConfigurationError('fault', text, `name=value pairs such as ${faultKinds.command.example}`);
    if (Object.hasOwn(entry, name)) throw new ConfigurationError(`fault field ${name}`, text, 'given once');
    entry[name] = part.slice(at + 1).trim();
  }
  return entry;
}

/** Reads a file of faults. @throws ConfigurationError naming the file */
export function readFaults(path: string): FaultPlan {
  let read: unknown;
  try {
    read = JSON.parse(runtime().readText(path));
  } catch (error) {
    throw new ConfigurationError('faults file', path, `readable JSON (${(error as Error).message})`);
  }
  if (Array.isArray(read)) return read as FaultPlan;
  const { version: found, faults, ...rest } = (read ?? {}) as Record<string, unknown>;
  if (found !== version) throw new ConfigurationError(`version of ${path}`, found, `${version}`);
  const surplus = Object.keys(rest)[0];
  if (surplus !== undefined) throw new ConfigurationError(`field of ${path}`, surplus, 'version or faults');
  if (!Array.isArray(faults))
    throw new ConfigurationError(`faults of ${path}`, shortJson(faults), 'a list of faults');
  return faults as FaultPlan;
}

/** The faults of these kinds that apply to a node. */
export function faultsOf<Name extends FaultKind>(
  faults: readonly Fault[],
  node: number,
  ...kinds: readonly Name[]
): readonly Extract<Fault, { readonly kind: Name }>[] {
  const wanted: readonly FaultKind[] = kinds;
  const isWanted = (fault: Fault): fault is Extract<Fault, { readonly kind: Name }> =>
    fault.node === node && wanted.includes(fault.kind);
  return faults.filter(isWanted);
}

function checkedFault(entry: unknown, place: string, nodeCount: number): Fault {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry))
    throw new ConfigurationError(place, shortJson(entry), 'an object of fields');
  const kind = kindOf(Object.keys(entry), place);
  const fields: Readonly<Record<string, Field<unknown>>> = faultKinds[kind].fields;
  const given = entry as Readonly<Record<string, unknown>>;
  const fault: Record<string, unknown> = { kind, node: nodeOf(given['node'] ?? 0, place, nodeCount) };
  for (const name of Object.keys(given)) {
    if (name !== 'node' && !Object.hasOwn(fields, name)) {
      const known = ['node', ...Object.keys(fields)];
      throw new ConfigurationError(
        `field of ${place} (${kind})`,
        name,
        `one of ${known.join(', ')}${hintFor(name, known)}`,
      );
    }
  }
  for (const [name, field] of Object.entries(fields))
    fault[name] = readField(field, given[name], `${place} (${kind}), field ${name},`);
  const wrong = contradictionOf(fault as unknown as Fault);
  if (wrong !== undefined)
    throw new ConfigurationError(`${place} (${kind}), field ${wrong[0]},`, wrong[1], wrong[2]);
  return plainest(fault as unknown as Fault);
}

/** Fields of a packet fault that name headers of InfiniBand's transport, which frames of RoCE have too. */
const transportFields = ['qpn', 'psn', 'opcode', 'only'] as const;

/** @throws ConfigurationError for a field that no segment of TCP matches, so that the fault could not happen */
function checkOfTcp(fault: FaultOf<'packet'>, place: string): void {
  for (const name of transportFields) {
    const value = fault[name];
    if (value === undefined || value === 'pauses') continue;
    throw new ConfigurationError(
      `${place} (packet), field ${name},`,
      faultKinds.packet.fields[name].write(value),
      `left out${name === 'only' ? ', or pauses,' : ''} with hca.capability.transport=iwarp: its frames have headers of TCP; nth, chance and shots select among them`,
    );
  }
}

function kindOf(names: readonly string[], place: string): FaultKind {
  // No field has the name of another kind, so in an entry with two kinds the second is an unknown field of the first.
  const found = names.find((name): name is FaultKind => Object.hasOwn(faultKinds, name));
  if (found !== undefined) return found;
  const hint = hintFor(names[0] ?? '', kindNames);
  throw new ConfigurationError(place, names.join(', '), `a fault by one of ${kindNames.join(', ')}${hint}`);
}

function readField(field: Field<unknown>, value: unknown, place: string): unknown {
  if (value === undefined) {
    if (field.isRequired) throw new ConfigurationError(place, 'left out', field.range);
    return field.preset;
  }
  const read = typeof value === 'string' || typeof value === 'number' ? field.read(value) : undefined;
  if (read === undefined)
    throw new ConfigurationError(
      place,
      typeof value === 'object' ? JSON.stringify(value) : value,
      field.range,
    );
  return read;
}

function nodeOf(value: unknown, place: string, nodeCount: number): number {
  const node = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  if (Number.isInteger(node) && Number(node) >= 0 && Number(node) < nodeCount) return Number(node);
  throw new ConfigurationError(`${place}, field node,`, value, `an integer from 0 to ${nodeCount - 1}`);
}
