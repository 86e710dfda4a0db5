/**
 * The state that a view of the lab depends on, and its text in the page's address. Opening the address shows the same
 * picture.
 *
 *     #view=what-if&profile=connectx3-fdr&set=hca.mttCacheLines:16&verb=read&size=4096
 *
 * Fields with default values are left out. Invalid fields of an address are ignored and named in {@link
 * Opened.refused}.
 */
import type { ParameterValue, ParameterValues } from '../../machine/profile/index.ts';
import {
  type ComparePath,
  comparePaths,
  type FabricChoice,
  fabricTraffic,
  type LabMachine,
  type LabMessage,
  type LabNetwork,
  type LabVerb,
  labNetworks,
  labVerbs,
  type OperationName,
  type ReachedName,
  type ScenarioName,
  scenarioNames,
} from '../protocol.ts';
import { labPrograms } from './programs.ts';

export const viewNames = ['operation', 'other-way', 'what-if', 'program', 'fabric', 'linux'] as const;
export type ViewName = (typeof viewNames)[number];

export interface LabState {
  readonly view: ViewName;
  readonly machine: LabMachine;
  /** A second machine to compare with the first. */
  readonly other: LabMachine | undefined;
  readonly message: LabMessage;
  /** The scenario shown as it happens, and whether other operations precede it. */
  readonly scenario: ScenarioName;
  /** The network on which the scenario happens. */
  readonly network: LabNetwork;
  readonly isWarm: boolean;
  /** The watched operation of the program; undefined: the scenario is watched. */
  readonly posted: OperationName | undefined;
  /** The displayed instant, relative to the post. */
  readonly atPs: number;
  /** The block whose events the buttons step through, as `hca0 requester`; empty: all. */
  readonly block: string;
  /** The displayed event, by its index among the operation's; undefined: all events of the instant. */
  readonly event: number | undefined;
  /** The way whose whole time the axis of "The other way" shows. */
  readonly span: ComparePath;
  /** A program's name, or its own text. */
  readonly program: { readonly name: string } | { readonly text: string };
  readonly fault: string;
  /** Lines of the program with a breakpoint, ascending. */
  readonly breakpoints: readonly number[];
  /** The line at which the program has stopped; undefined: it has stopped at an instant only. */
  readonly reached: ReachedName | undefined;
  /** Time for which the program has run, and the length of a step. */
  readonly ranPs: number;
  readonly stepPs: number;
  /** The fabric and its traffic. */
  readonly fabric: FabricChoice;
  /** Hosts with a stock Linux. */
  readonly hosts: 1 | 2;
  /** The machine that the sliders change: 0 is A, 1 is B. */
  readonly side: 0 | 1;
}

export const defaultState: LabState = {
  view: 'operation',
  machine: { profile: 'connectx3-qdr', set: {}, seed: 1 },
  other: undefined,
  message: { verb: 'write', sizeBytes: 64, mtuBytes: 0, inlineBytes: 0 },
  scenario: 'write',
  network: 'infiniband',
  isWarm: false,
  posted: undefined,
  atPs: 0,
  block: '',
  event: undefined,
  span: 'sockets',
  program: { name: 'ping-pong' },
  fault: '',
  breakpoints: [],
  reached: undefined,
  ranPs: 0,
  stepPs: 1_000_000,
  fabric: { topology: 'star:8', pattern: 'incast', sizeBytes: 65_536, messages: 4 },
  hosts: 1,
  side: 0,
};

/** Result of reading an address. */
export interface Opened {
  readonly state: LabState;
  /** Invalid fields of the address, to be shown to the reader. */
  readonly refused: readonly string[];
}

/** The text after `#`. */
export async function addressOf(state: LabState): Promise<string> {
  const query = new URLSearchParams();
  const put = (name: string, value: string | number, without: string | number): void => {
    if (value !== without) query.set(name, String(value));
  };
  const { machine, other, message, program } = state;
  put('view', state.view, defaultState.view);
  putMachine(query, '', machine);
  if (other !== undefined) putMachine(query, 'other.', other);
  put('verb', message.verb, defaultState.message.verb);
  put('size', message.sizeBytes, defaultState.message.sizeBytes);
  put('mtu', message.mtuBytes, defaultState.message.mtuBytes);
  put('inline', message.inlineBytes, defaultState.message.inlineBytes);
  put('operation', state.scenario, defaultState.scenario);
  put('network', state.network, defaultState.network);
  if (state.isWarm) query.set('caches', 'warm');
  if (state.posted !== undefined) query.set('posted', `${state.posted.node}:${state.posted.ordinal}`);
  put('at', state.atPs, defaultState.atPs);
  put('block', state.block, defaultState.block);
  if (state.event !== undefined) query.set('event', String(state.event));
  put('span', state.span, defaultState.span);
  put('fault', state.fault, '');
  put('breaks', state.breakpoints.join(), '');
  if (state.reached !== undefined) query.set('reached', `${state.reached.node}:${state.reached.ordinal}`);
  put('ran', state.ranPs, defaultState.ranPs);
  put('step', state.stepPs, defaultState.stepPs);
  put('topology', state.fabric.topology, defaultState.fabric.topology);
  put('traffic', state.fabric.pattern, defaultState.fabric.pattern);
  put('bytes', state.fabric.sizeBytes, defaultState.fabric.sizeBytes);
  put('messages', state.fabric.messages, defaultState.fabric.messages);
  put('hosts', state.hosts, defaultState.hosts);
  if (state.side === 1) query.set('side', 'B');
  if ('text' in program) query.set('text', await packed(program.text));
  else put('program', program.name, (defaultState.program as { name: string }).name);
  // Colons and commas are allowed in a fragment and easier to read than their escapes.
  return query.toString().replaceAll('%3A', ':').replaceAll('%2C', ',');
}

function putMachine(query: URLSearchParams, prefix: string, { profile, set, seed }: LabMachine): void {
  const isOther = prefix !== '';
  if (isOther || profile !== defaultState.machine.profile) query.set(`${prefix}profile`, profile);
  const settings = Object.entries(set).map(([path, value]) => `${path}:${value}`);
  if (settings.length > 0) query.set(`${prefix}set`, settings.sort().join(','));
  if (seed !== defaultState.machine.seed) query.set(`${prefix}seed`, String(seed));
}

/** The state that an address describes; a leading `#` is optional. */
export async function stateOf(address: string): Promise<Opened> {
  const query = new URLSearchParams(address.replace(/^#/, ''));
  const fields = new Fields(query);
  const inlineBytes = fields.integer('inline', defaultState.message.inlineBytes, 0, 512);
  const state: LabState = {
    view: fields.word('view', viewNames, defaultState.view),
    machine: fields.machine(''),
    other: [...query.keys()].some((name) => name.startsWith('other.')) ? fields.machine('other.') : undefined,
    message: {
      verb: fields.word<LabVerb>('verb', labVerbs, defaultState.message.verb),
      sizeBytes: fields.integer('size', defaultState.message.sizeBytes, 1, 65_536),
      mtuBytes: Number(fields.word('mtu', ['0', '256', '512', '1024', '2048', '4096'], '0')),
      inlineBytes,
    },
    scenario: fields.word<ScenarioName>('operation', scenarioNames, defaultState.scenario),
    network: fields.word<LabNetwork>('network', labNetworks, defaultState.network),
    isWarm: fields.word('caches', ['cold', 'warm'], 'cold') === 'warm',
    posted: fields.hostAndNumber('posted'),
    atPs: fields.instant('at', defaultState.atPs),
    block: fields.text('block', /^(?:host|hca)\d [\w :.-]{1,60}$/, ''),
    event: fields.integer('event', undefined, 0, eventsMax),
    span: fields.word<ComparePath>('span', comparePaths, defaultState.span),
    program: await fields.program(),
    fault: fields.text('fault', /^[\w=.,:+-]{0,200}$/, ''),
    breakpoints: fields.lines('breaks'),
    reached: fields.hostAndNumber('reached'),
    ranPs: fields.integer('ran', defaultState.ranPs, 0, ranPsMax),
    stepPs: fields.integer('step', defaultState.stepPs, 1, ranPsMax),
    fabric: {
      topology: fields.text('topology', /^[\w:.,-]{1,200}$/, defaultState.fabric.topology),
      pattern: fields.word('traffic', fabricTraffic, defaultState.fabric.pattern),
      sizeBytes: fields.integer('bytes', defaultState.fabric.sizeBytes, 1, 1_048_576),
      messages: fields.integer('messages', defaultState.fabric.messages, 1, 10_000),
    },
    hosts: fields.word('hosts', ['1', '2'], '1') === '2' ? 2 : 1,
    side: fields.word('side', ['A', 'B'], 'A') === 'B' ? 1 : 0,
  };
  return { state, refused: [...fields.refused, ...fields.unknown] };
}

const eventsMax = 10_000_000;
/** Ten seconds of simulated time. */
const ranPsMax = 10_000_000_000_000;

/** Reads fields and remembers those that are invalid. */
class Fields {
  readonly refused: string[] = [];
  readonly #query: URLSearchParams;
  readonly #asked = new Set<string>();

  constructor(query: URLSearchParams) {
    this.#query = query;
  }

  /** Fields that were never read. */
  get unknown(): string[] {
    return [...this.#query].flatMap(([name, value]) => (this.#asked.has(name) ? [] : [`${name}=${value}`]));
  }

  #valueOf(name: string): string | null {
    this.#asked.add(name);
    return this.#query.get(name);
  }

  word<Word extends string>(name: string, words: readonly Word[], without: Word): Word {
    const value = this.#valueOf(name);
    if (value === null) return without;
    const found = words.find((word) => word === value);
    return found ?? this.#refuse(name, value, without);
  }

  integer<Without extends number | undefined>(
    name: string,
    without: Without,
    least: number,
    most: number,
  ): number | Without {
    const value = this.#valueOf(name);
    if (value === null) return without;
    const number = Number(value);
    const isGood = /^\d+$/.test(value) && number >= least && number <= most;
    return isGood ? number : this.#refuse(name, value, without);
  }

  /** Picoseconds; negative before the post. */
  instant(name: string, without: number): number {
    const value = this.#valueOf(name);
    if (value === null) return without;
    return /^-?\d{1,12}$/.test(value) ? Number(value) : this.#refuse(name, value, without);
  }

  text(name: string, pattern: RegExp, without: string): string {
    const value = this.#valueOf(name);
    if (value === null) return without;
    return pattern.test(value) ? value : this.#refuse(name, value, without);
  }

  /** A host, and the number of an operation or of a line that it has reached, as `0:3`. */
  hostAndNumber(name: string): OperationName | undefined {
    const [node, ordinal] = this.text(name, /^[01]:\d{1,9}$/, '').split(':');
    return ordinal === undefined ? undefined : { node: Number(node), ordinal: Number(ordinal) };
  }

  /** Line numbers, as `12,30`, ascending. */
  lines(name: string): readonly number[] {
    const text = this.text(name, /^[1-9]\d{0,4}(,[1-9]\d{0,4}){0,99}$/, '');
    if (text === '') return [];
    return [...new Set(text.split(',').map(Number))].toSorted((left, right) => left - right);
  }

  machine(prefix: string): LabMachine {
    return {
      profile: this.text(`${prefix}profile`, /^[\w-]{1,60}$/, defaultState.machine.profile),
      set: this.#settings(`${prefix}set`),
      seed: this.integer(`${prefix}seed`, defaultState.machine.seed, 0, 0xffff_ffff),
    };
  }

  async program(): Promise<LabState['program']> {
    const text = this.#valueOf('text');
    const names = labPrograms.map(({ name }) => name);
    if (text === null) return { name: this.word('program', names, 'ping-pong') };
    try {
      return { text: await unpacked(text) };
    } catch {
      return this.#refuse('text', `${text.slice(0, 20)}…`, defaultState.program);
    }
  }

  #settings(name: string): ParameterValues {
    const text = this.#valueOf(name);
    if (text === null || text === '') return {};
    const settings: Record<string, ParameterValue> = {};
    for (const setting of text.split(',')) {
      const match = /^([\w.]{1,100}):([\w.-]{1,100})$/.exec(setting);
      if (match === null) this.#refuse(name, setting, undefined);
      else settings[match[1]!] = typedValue(match[2]!);
    }
    return settings;
  }

  #refuse<Value>(name: string, value: string, without: Value): Value {
    this.refused.push(`${name}=${value}`);
    return without;
  }
}

function typedValue(text: string): ParameterValue {
  if (text === 'true' || text === 'false') return text === 'true';
  return /^\d+$/.test(text) ? Number(text) : text;
}

/** Deflated text in characters that an address may contain. */
async function packed(text: string): Promise<string> {
  const bytes = await throughStream(new TextEncoder().encode(text), new CompressionStream('deflate-raw'));
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '');
}

/** Greatest length of a program in an address. */
const programCharsMax = 200_000;

/** @throws if it is not packed text, or unpacks to more than {@link programCharsMax} */
async function unpacked(text: string): Promise<string> {
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  const bytes = Uint8Array.from(binary, (char) => char.charCodeAt(0));
  const plain = await throughStream(bytes, new DecompressionStream('deflate-raw'));
  return new TextDecoder('utf-8', { fatal: true }).decode(plain);
}

async function throughStream(
  bytes: Uint8Array<ArrayBuffer>,
  through: CompressionStream | DecompressionStream,
): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  const stream: ReadableStream<Uint8Array> = new Blob([bytes]).stream().pipeThrough(through);
  for (const reader = stream.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > programCharsMax) throw new RangeError(`more than ${programCharsMax} bytes`);
    pieces.push(value);
  }
  const all = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}
