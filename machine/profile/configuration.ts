/**
 * Builds the complete configuration of a machine from a profile and changes, checks conditions across parameters, and
 * computes its hash.
 *
 *   defaults ◄─ named profile ◄─ file ◄─ --set path=value  ──► checked ──► MachineConfig ──► configHash
 */
import {
  asInteger,
  ConfigurationError,
  codeOf,
  immutable,
  runtime,
  sha256Hex,
  shortJson,
} from '../../base/index.ts';
import { checkCapabilities, checkCongestion, checkIwarp } from '../../hw/hca/index.ts';
import {
  checkFunctionConfig,
  checkLinkConfig,
  checkRootComplexConfig,
  checkWindows,
} from '../../hw/pcie/index.ts';
import { checkWireConfig } from '../../wire/index.ts';
import type { Topology } from '../topology/index.ts';
import { canonicalJson } from './canonical-json.ts';
import {
  isParameter,
  type MachineConfig,
  type ParameterGroup,
  type ParameterValue,
  parametersByPath,
  parameterTree,
} from './parameter-tree.ts';
import { defaultProfileName, hasCard, profiles } from './profiles.ts';
import { checkedValue, hintFor } from './values.ts';

export type ParameterValues = Readonly<Record<string, ParameterValue>>;

export interface ConfigurationChoice {
  /**
   * Name of a profile, or a JSON file: a path with a slash or the extension `.json`; or several of them joined by `+`,
   * one at least a name, of which later ones replace values of earlier ones. Default `connectx3-qdr`.
   */
  readonly profile?: string;
  /** Changes by path. */
  readonly set?: ParameterValues;
  /** False if a topology has the cables: then the number of hosts may be odd. Default true. */
  readonly isPaired?: boolean;
}

/**
 * The complete configuration.
 * @throws ConfigurationError naming the error in one line
 */
export function configurationOf(choice: ConfigurationChoice = {}): MachineConfig {
  const values = new Map<string, ParameterValue>();
  const sources = [profileValues(choice.profile ?? defaultProfileName), choice.set ?? {}];
  for (const source of sources) {
    for (const [path, value] of Object.entries(source)) values.set(path, checkedValue(path, value));
  }
  const config = immutable(filled(parameterTree, values, '')) as MachineConfig;
  checkSwitchProfiles(choice.profile ?? defaultProfileName, config);
  checkConfiguration(config, choice.isPaired ?? true);
  return config;
}

/**
 * SHA-256 of the configuration's canonical JSON, in hexadecimal: equal exactly if all parameters are equal.
 * @param topology if left out: the default one of the configuration's hosts
 */
export function configHashOf(
  config: MachineConfig,
  faults: readonly string[] = [],
  topology?: Topology,
): string {
  if (topology !== undefined) return sha256Hex(canonicalJson({ config, faults, topology }));
  const effective = faults.length === 0 ? config : { config, faults };
  return sha256Hex(canonicalJson(effective));
}

/** Settings that change the defaults into this configuration, by path, in declaration order. */
export function changesOf(config: MachineConfig): ParameterValues {
  const rows = [...parametersByPath].map(([path, parameter]) => [
    path,
    valueAt(config, path),
    parameter.default,
  ]);
  const changed = rows.filter(([, value, preset]) => value !== preset);
  return Object.fromEntries(changed.map(([path, value]) => [path, value])) as ParameterValues;
}

const valueAt = (config: MachineConfig, path: string): unknown =>
  path
    .split('.')
    .reduce<unknown>((group, name) => (group as Readonly<Record<string, unknown>>)[name], config);

function filled(tree: ParameterGroup, values: ReadonlyMap<string, ParameterValue>, prefix: string): object {
  const entries = Object.entries(tree).map(([name, node]) => {
    const path = prefix + name;
    if (!isParameter(node)) return [name, filled(node, values, `${path}.`)];
    return [name, asInteger(values.get(path) ?? node.default)];
  });
  return Object.fromEntries(entries);
}

const isFile = (name: string): boolean => name.includes('/') || name.endsWith('.json');

const isProfile = (name: string): boolean => profiles.some((profile) => profile.name === name);

/** The names and files that a choice joins by `+`; the name of a file may have a `+`, too. */
function partsOf(nameOrFile: string): readonly string[] {
  const parts = nameOrFile.split('+');
  return !isFile(nameOrFile) || parts.some(isProfile) ? parts : [nameOrFile];
}

/** @throws ConfigurationError for a profile of Ethernet switches where the ports of cards are InfiniBand */
function checkSwitchProfiles(choice: string, { hca }: MachineConfig): void {
  if (hca.capability.linkLayer === 'ethernet') return;
  const parts = partsOf(choice);
  const own = profiles.find((profile) => parts.includes(profile.name) && !hasCard(profile));
  if (own !== undefined)
    throw new ConfigurationError(
      'profile',
      choice,
      `${own.name} joined to the profile of a card with Ethernet, as in connectx3-pro-40gbe+${own.name}`,
    );
}

/** Values of a named profile, of a file, or of several that are joined by `+`. */
export function profileValues(nameOrFile: string): ParameterValues {
  const parts = partsOf(nameOrFile);
  if (parts.length > 1) return Object.assign({}, ...parts.map(profileValues)) as ParameterValues;
  const profile = profiles.find(({ name }) => name === nameOrFile);
  if (profile !== undefined) return profile.values;
  if (isFile(nameOrFile)) return valuesOfFile(nameOrFile);
  const names = profiles.map(({ name }) => name);
  const hint = hintFor(nameOrFile, names);
  throw new ConfigurationError('profile', nameOrFile, `a JSON file or one of ${names.join(', ')}${hint}`);
}

/**
 * A profile file: `{ "extends": "connectx3-qdr", "doc": "…", "values": { "pcie": { "link": { "lanes": 4 } } } }`.
 * Values may be nested or have whole paths as keys; `extends` and `doc` are optional.
 */
function valuesOfFile(file: string): ParameterValues {
  const content = readJson(file);
  if (!isObject(content)) throw new ConfigurationError(`profile ${file}`, describe(content), 'a JSON object');
  for (const key of Object.keys(content)) {
    if (!['extends', 'doc', 'values'].includes(key))
      throw new ConfigurationError(`profile ${file}`, key, 'the keys extends, doc and values');
  }
  const { extends: base = defaultProfileName, values = {} } = content;
  const baseNames = typeof base === 'string' ? base.split('+') : [];
  const areKnown = baseNames.every(isProfile);
  const baseName = baseNames.length > 0 && areKnown ? baseNames.join('+') : undefined;
  if (baseName === undefined)
    throw new ConfigurationError(
      `extends of ${file}`,
      describe(base),
      `one of ${profiles.map(({ name }) => name).join(', ')}`,
    );
  if (!isObject(values)) throw new ConfigurationError(`values of ${file}`, describe(values), 'a JSON object');
  return { ...profileValues(baseName), ...flattened(values, '') };
}

function readJson(file: string): unknown {
  let text: string;
  try {
    text = runtime().readText(file);
  } catch (error) {
    throw new ConfigurationError('profile', file, `a readable file (${codeOf(error)})`);
  }
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new ConfigurationError('profile', file, 'a file of valid JSON');
  }
}

/** Greatest nesting depth of parameters; deeper objects are not a profile. */
const nestingMax = 16;

function flattened(values: object, prefix: string, depth = 1): Record<string, ParameterValue> {
  if (depth > nestingMax)
    throw new ConfigurationError(
      'profile',
      `${prefix.slice(0, 80)}…`,
      `values nested at most ${nestingMax} deep`,
    );
  const flat: Record<string, ParameterValue> = {};
  for (const [key, value] of Object.entries(values) as [string, unknown][]) {
    if (isObject(value)) Object.assign(flat, flattened(value, `${prefix}${key}.`, depth + 1));
    else flat[prefix + key] = checkedValue(prefix + key, value);
  }
  return flat;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const describe = (value: unknown): string => (typeof value === 'string' ? value : shortJson(value));

/** The EQs that the driver requests must not exceed the device's limit. */
function checkEventQueues({ driver, hca }: MachineConfig): void {
  const { logMaxEqEntries } = hca.capability;
  for (const name of ['asyncEqEntries', 'completionEqEntries'] as const)
    if (driver[name] > 2 ** logMaxEqEntries)
      throw new ConfigurationError(
        `driver.${name}`,
        driver[name],
        `at most 2^${logMaxEqEntries} (hca.capability.logMaxEqEntries)`,
      );
}

/** Tables of lanes that do not exist would be ignored: one lane needs no table, and the ports of Ethernet have priorities. */
function checkLanes(config: MachineConfig): void {
  const dataVls = Number(config.wire.dataVls);
  const { adapter } = config.machine;
  const hasLanes = adapter === 'hca' && config.hca.capability.linkLayer === 'infiniband' && dataVls > 1;
  for (const [path, value] of Object.entries(changesOf(config))) {
    if (!path.startsWith('lanes.')) continue;
    if (!hasLanes)
      throw new ConfigurationError(
        path,
        value,
        'its default, unless ports are of InfiniBand and wire.dataVls is above 1',
      );
    const lane = Number(/\.vl(\d)$/.exec(path)?.[1] ?? 0);
    if (lane >= dataVls)
      throw new ConfigurationError(path, value, `its default: wire.dataVls has ${dataVls} lanes, from 0`);
  }
}

/** Some memory must remain after the reserved areas. */
function checkMemory({ host }: MachineConfig): void {
  const sizeKib = host.memory.sizeMib * 1024;
  const apart = {
    'host.memory.reservedKib': host.memory.reservedKib,
    'host.paging.minFreeKib': host.paging.minFreeKib,
  };
  for (const [path, kib] of Object.entries(apart))
    if (kib >= sizeKib)
      throw new ConfigurationError(path, kib, `less than host.memory.sizeMib has (${sizeKib} KiB)`);
}

/** Conditions on several parameters together. */
function checkConfiguration(config: MachineConfig, isPaired: boolean): void {
  const { link, endpointPort, rootPort, rootComplex, enumeration } = config.pcie;
  if (isPaired && config.machine.nodeCount % 2 !== 0)
    throw new ConfigurationError(
      'machine.nodeCount',
      config.machine.nodeCount,
      'an even number: nodes are cabled in pairs',
    );
  checkLinkConfig(link, endpointPort, 'pcie.endpointPort');
  checkLinkConfig(link, rootPort, 'pcie.rootPort');
  checkFunctionConfig(config.pcie.function, endpointPort);
  const { bar0Bytes, bar2Bytes } =
    config.machine.adapter === 'hca' ? config.pcie.function : config.nic.function;
  checkWindows(enumeration, [bar0Bytes, bar2Bytes]);
  checkRootComplexConfig(rootComplex, link, rootPort);
  if (config.machine.adapter === 'hca') {
    checkWireConfig(config.wire);
    checkCapabilities(config.hca.capability, config.pcie.function);
    if (config.hca.capability.transport === 'iwarp') checkIwarp(config.hca.iwarp, config.driver.mpaMarkers);
    checkCongestion(config.hca.congestion, config.hca.capability);
    checkEventQueues(config);
  }
  checkLanes(config);
  checkMemory(config);
  const { machine, net, ethernet } = config;
  if (machine.adapter === 'nic' && machine.nicDriver !== 'none' && net.driver.mtu > ethernet.mtuBytes)
    throw new ConfigurationError(
      'net.driver.mtu',
      net.driver.mtu,
      `at most ethernet.mtuBytes (${ethernet.mtuBytes})`,
    );
  if (net.driver.buffersMax <= net.driver.receiveRing)
    throw new ConfigurationError(
      'net.driver.buffersMax',
      net.driver.buffersMax,
      `more than net.driver.receiveRing (${net.driver.receiveRing}), which would hold them all`,
    );
  if (enumeration.maxPayloadBytes > link.maxPayloadBytes) {
    throw new ConfigurationError(
      'pcie.enumeration.maxPayloadBytes',
      enumeration.maxPayloadBytes,
      `at most pcie.link.maxPayloadBytes (${link.maxPayloadBytes})`,
    );
  }
}
