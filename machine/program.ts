/**
 * Programs as users of the machine write them: async functions that receive their host, their process and the verbs,
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

/** A way to another host: a cable, or a cable to a switch with its further cables. Two ports may lead to one host. */
export interface HostLink {
  /** Port of this host's adapter, from 1: `portNum` of verbs. */
  readonly portNum: number;
  /** Host at the other end, and the port of its adapter. */
  readonly peer: number;
  readonly peerPortNum: number;
}

/** Context of a program. @typeParam Args the type of its arguments */
export interface ProgramContext<Args = unknown> {
  readonly name: string;
  /** Number of the host, from 0. */
  readonly node: number;
  /** Hosts at the other ends of this host's cables, ascending. */
  readonly peers: readonly number[];
  /** The cables of this host, by its own port. */
  readonly links: readonly HostLink[];
  readonly host: Host;
  /** Every parameter of the machine. */
  readonly configuration: MachineConfig;
  readonly process: Process;
  /** The core that the program runs on: charges cycles, sleeps, spins. */
  readonly cpu: CoreThread;
  /** The process's memory: map, read and write at user addresses. */
  readonly memory: ProgramMemory;
  /** The verbs library of this process. */
  readonly verbs: Verbs;
  /** The socket calls of this process, through the kernel's NIC driver: with `machine.adapter=nic`. */
  readonly sockets: SocketCalls | undefined;
  /** The NIC, for programs that drive the card themselves. */
  readonly nic: NicSoftware | undefined;
  /** Costs of this host so far; reading them costs nothing. */
  readonly meter: TransferMeter;
  /** A copy of the arguments given at loading; null without arguments. */
  readonly args: Args;
  readonly exchange: Exchange;
  /**
   * Forks the process (fork(2)): the child runs `run`, a function, on the first free core, with its inherited part of
   * this memory and with verbs of its own; it must not use the parent's objects.
   * @returns the child, or ENOMEM
   * @throws ConfigurationError if no core is free
   */
  fork(name: string, run: ProgramFunction<Args>): Process | 'ENOMEM';
  /**
   * Runs a section of this program as one operation, whose cost {@link Machine.operationCosts} returns. It changes no
   * time.
   * @throws ConfigurationError inside another operation, and unless the machine was created with `attributesCosts`
   */
  operation<T>(name: string, stretch: () => T | Promise<T>): Promise<T>;
  /** Random numbers of this program, from the machine's seed. */
  readonly random: Random;
  /** Adds a line to the machine's log, with the simulated time; a value that is not a string is converted to text. */
  log(text: string): void;
  /** Reports the program's progress, in units of its own; it has no other effect. */
  progress(done: number, total: number): void;
}

/**
 * A program's return value is its result: any JSON value, or nothing. It is copied. Any other value (bigint, NaN, a
 * Map, a typed array, an object that contains itself) ends the run with a ProgramFailedError that names the place.
 */
export type ProgramFunction<Args = unknown> = {
  // A method, so that a program with typed arguments is also assignable to one with any arguments.
  call(context: ProgramContext<Args>): Promise<unknown>;
}['call'];

/** A function of a module, which can run in any partition. For a URL, its `href` is used. */
export interface ProgramModule {
  /** Address of the module, as returned by `import.meta.resolve` or `new URL(…, import.meta.url)`. */
  readonly url: string | { readonly href: string };
  /** Name of the exported function; default `default`. */
  readonly exportName?: string;
}

/** The address of a module as text. */
export const addressOf = ({ url }: ProgramModule): string => (typeof url === 'string' ? url : url.href);

export interface ProgramOptions<Args = unknown> {
  readonly node: number;
  readonly run: ProgramFunction<Args> | ProgramModule;
  /** Default `program<n>`. */
  readonly name?: string;
  /** Core to run on; default: the first one without a program. */
  readonly core?: number;
  /** Programs of a host with the same process name share its memory; by default each has its own. */
  readonly process?: string;
  /** Anything that JSON carries. */
  readonly args?: Args;
}

/** A loaded program, as queried after a run. */
export interface ProgramState {
  /** Index in loading order, from 0. */
  readonly number: number;
  readonly name: string;
  readonly node: number;
  /** Simulated time at which it ended; undefined while it runs. */
  readonly endedPs: ExactPs | undefined;
  /** The returned value. */
  readonly result: JsonValue | undefined;
}

export interface LogLine {
  readonly node: number;
  /** Picoseconds since power-on: a bigint if a number would not be exact. */
  readonly atPs: ExactPs;
  readonly program: string;
  readonly text: string;
}
