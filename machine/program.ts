/**
 * Programs as users of the machine write them: async functions that are given their host, their process and the verbs,
 * and that wait only for simulated time.
 *
 *     export async function ping({ cpu, verbs, exchange, args }: ProgramContext): Promise<JsonValue> { … }
 */
import type { CoreThread, Host, Process } from '../host/index.ts';
import type { SocketCalls } from '../net/index.ts';
import type { ExactPs, Random } from '../sim/index.ts';
import type { Exchange } from './node/exchange.ts';
import type { JsonValue } from './node/json-value.ts';
import type { NicSoftware } from './node/nic-software.ts';
import type { ProgramMemory } from './node/program-memory.ts';
import type { TransferMeter } from './node/transfer-meter.ts';
import type { Verbs } from './node/verbs.ts';
import type { MachineConfig } from './profile/index.ts';

export type { Exchange } from './node/exchange.ts';
export type { JsonLike, JsonValue } from './node/json-value.ts';

/** Context of a program. @typeParam Args the type of its arguments */
export interface ProgramContext<Args = unknown> {
  readonly name: string;
  /** Number of the host, from 0. */
  readonly node: number;
  /** Hosts at the other ends of this host's cables, ascending. */
  readonly peers: readonly number[];
  readonly host: Host;
  /** Every parameter of the machine. */
  readonly configuration: MachineConfig;
  readonly process: Process;
  /** The core the program runs on: charges cycles, sleeps, spins. */
  readonly cpu: CoreThread;
  /** The process's memory: map, read and write at user addresses. */
  readonly memory: ProgramMemory;
  /** The verbs library of this process. */
  readonly verbs: Verbs;
  /** The socket calls of this process: with `machine.adapter=nic`, driven by the kernel. */
  readonly sockets: SocketCalls | undefined;
  /** The NIC's driver; programs that drive the card themselves find it here. */
  readonly nic: NicSoftware | undefined;
  /** Costs of this host so far; reading them costs nothing. */
  readonly meter: TransferMeter;
  /** A copy of the arguments that it was loaded with, null without. */
  readonly args: Args;
  readonly exchange: Exchange;
  /**
   * Forks the process (fork(2)): the child runs `run`, a function, on the first free core, with what it inherits of this
   * memory, and with verbs of its own: the parent's objects are not the child's to use.
   * @returns the child, or ENOMEM
   * @throws ConfigurationError when no core is free
   */
  fork(name: string, run: ProgramFunction<Args>): Process | 'ENOMEM';
  /**
   * Runs a stretch of this program as one operation, whose cost {@link Machine.operationCosts} gives. It changes no time.
   * @throws ConfigurationError inside of another one, and unless the machine was made with `attributesCosts`
   */
  operation<T>(name: string, stretch: () => T | Promise<T>): Promise<T>;
  /** Random numbers of this program, from the machine's seed. */
  readonly random: Random;
  /** Adds a line to the machine's log, with the simulated time: of what is no string, its text. */
  log(text: string): void;
  /** Reports how far the program has come, in units of its own; nothing else depends on it. */
  progress(done: number, total: number): void;
}

/**
 * A program's return value is its result: any JSON value, or nothing. It is copied. Anything else (bigint, NaN, a Map, a typed array, an
 * object that contains itself) ends the run with a ProgramFailedError that names the place.
 */
export type ProgramFunction<Args = unknown> = {
  // A method, so that a program whose arguments have a type is also one of any arguments.
  call(context: ProgramContext<Args>): Promise<unknown>;
}['call'];

/** A function of a module: what can run in any partition. A URL is an address: its `href` is taken. */
export interface ProgramModule {
  /** Address of the module, as `import.meta.resolve` or `new URL(…, import.meta.url)` give it. */
  readonly url: string | { readonly href: string };
  /** Name under which the module exports the function; `default` when left out. */
  readonly exportName?: string;
}

/** The address of a module as text. */
export const addressOf = ({ url }: ProgramModule): string => (typeof url === 'string' ? url : url.href);

export interface ProgramOptions<Args = unknown> {
  readonly node: number;
  readonly run: ProgramFunction<Args> | ProgramModule;
  /** Default `program<n>`. */
  readonly name?: string;
  /** Core to run on; the first that has no program when left out. */
  readonly core?: number;
  /** Programs of a host with the same process name share its memory; by default each has its own. */
  readonly process?: string;
  /** Anything that JSON carries. */
  readonly args?: Args;
}

/** A program that was loaded, as it can be asked for after a run. */
export interface ProgramState {
  /** Place in the order of loading, from 0. */
  readonly number: number;
  readonly name: string;
  readonly node: number;
  /** Simulated time at which it had ended; undefined while it runs. */
  readonly endedPs: ExactPs | undefined;
  /** The returned value. */
  readonly result: JsonValue | undefined;
}

export interface LogLine {
  readonly node: number;
  /** Picoseconds since power-on: a bigint where a number would not be exact. */
  readonly atPs: ExactPs;
  readonly program: string;
  readonly text: string;
}
