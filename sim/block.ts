/**
 * The unit of the hardware. A block receives its shared resources (time, configuration, memories, tables) when it is
 * constructed, and its neighbours when it is connected: once, all of them by name, from one table of wires. So blocks may call
 * each other in a circle, as in hardware, and the table is the block diagram.
 *
 *     const blocks = { scheduler: new SendScheduler(), requester: new Requester(core) };
 *     connectBlocks(blocks, { scheduler: { requester: blocks.requester }, requester: { scheduler: blocks.scheduler } });
 *
 * A wire is typed: a missing one, one too many and one of the wrong kind do not compile.
 */
import type { Cycles } from '../base/index.ts';
import type { BlockAccount } from './block-account.ts';
import type { Fifo } from './fifo.ts';

/**
 * Result of {@link Block.inspect}: plain data, which can be compared and printed.
 * @public
 */
export type StateValue =
  | number
  | string
  | boolean
  | readonly StateValue[]
  | { readonly [name: string]: StateValue };
export type BlockState = { readonly [name: string]: StateValue };

/** One block. Methods that it does not need are absent: a block without state has nothing to reset. */
export interface Block {
  readonly account?: BlockAccount;
  /** Connects the block to its neighbours. */
  connect?(ports: never): void;
  /** Forgets all work in progress, as after power-on. Statistics stay. */
  reset?(): void;
  /** Handles a new epoch: see EdgeKeeper. */
  rebase?(cycles: number): void;
  /** Its fifos, whose levels a timeline shows. */
  readonly fifos?: readonly Fifo[];
  /** Present state without statistics: after {@link reset} the same as after construction. */
  inspect?(): BlockState;
}

/** The block whose stage runs a part's work, as the part sees it. */
export interface Wakeable {
  /** The part's wait is over: its work continues at `cycle` or later. */
  wake(cycle: Cycles): void;
}

/** The neighbours that a block requires. */
type PortsOf<B> = B extends { connect(ports: infer P): void } ? P : never;

/** The neighbour on each port, for each block that has ports. */
export type Wires<B> = {
  readonly [K in keyof B as B[K] extends { connect(ports: never): void } ? K : never]: PortsOf<B[K]>;
};

/** Connects each block that has ports, in the blocks' order. */
export function connectBlocks<B extends object>(blocks: B, wires: Wires<B>): void {
  const portsOf = new Map<string, unknown>(Object.entries(wires));
  for (const [name, block] of Object.entries(blocks)) if (hasPorts(block)) block.connect(portsOf.get(name));
}

/** One wire of a table: from a port to the block, or part of a block, that is called through it. */
export interface Wire {
  readonly block: string;
  readonly port: string;
  /** `scheduler`, or `completions.notifier`. */
  readonly to: string;
}

/** The wires that a table declares, without a machine: each name represents the block that has it. A port for a list of blocks has several wires. */
export function listWires<B>(table: (blocks: B) => Wires<B>): Wire[] {
  const places = new WeakMap<object, string>();
  const standIn = (place: string): object => {
    const proxy = new Proxy(
      {},
      { get: (_, part) => standIn(`${place}${place === '' ? '' : '.'}${String(part)}`) },
    );
    places.set(proxy, place);
    return proxy;
  };
  const wires = table(standIn('') as B);
  return Object.entries(wires).flatMap(([block, ports]) =>
    Object.entries(ports as Record<string, object>).flatMap(([port, to]) =>
      [to].flat().map((one) => ({ block, port, to: places.get(one)! })),
    ),
  );
}

function hasPorts(block: unknown): block is { connect(ports: unknown): void } {
  return typeof block === 'object' && block !== null && 'connect' in block;
}
