/** States of blocks, and levels of their FIFOs. */
import type { BlockAccount, Clock, Fifo } from '../../../sim/index.ts';
import { after, around, type MethodsOf } from '../around.ts';
import type { Stream } from '../stream.ts';

const RESTING = -1;

/** Records when a block is busy, and when and why it stalls; otherwise it is idle. */
export function watchAccount(stream: Stream, account: BlockAccount, clock: Clock): void {
  if (!stream.has('blocks')) return;
  const track = stream.track('blocks', account.name, { names: account.stallReasons });
  let reason = RESTING;
  const noteStall = (cycle: number): void => {
    if (reason !== RESTING && cycle > account.freeCycle)
      stream.cycles('blockStalled', track, clock, account.freeCycle, cycle, reason);
  };
  // A block that ends a wait calls its own serve method: the nested call is the same work.
  let depth = 0;
  around(account, 'serve', (serve) => (cycle, serviceCycles) => {
    noteStall(cycle);
    reason = RESTING;
    depth++;
    serve(cycle, serviceCycles);
    depth--;
    const { freeCycle } = account;
    if (depth === 0) stream.cycles('blockBusy', track, clock, freeCycle - serviceCycles, freeCycle);
  });
  around(account, 'stall', (stall) => (cycle, newReason) => {
    if (newReason !== reason) noteStall(cycle);
    stall(cycle, newReason);
    reason = newReason;
  });
  stream.addOpenEnd(() => noteStall(clock.cyclesElapsed(stream.lp.nowPs)));
}

/** The FIFOs of each block that has any. */
export function watchFifos(stream: Stream, blocks: Readonly<Record<string, object>>): void {
  for (const [name, block] of Object.entries(blocks)) {
    const { fifos = [] }: { readonly fifos?: readonly Fifo[] } = block;
    for (const fifo of fifos)
      watchLevel(stream, `${name}: ${fifo.name}`, fifo, ['push', 'pop', 'clear'], () => fifo.count);
  }
}

/**
 * A level that `levelOf` reads after each call of these methods, recorded at the edge or instant at which it changes.
 * Methods of other blocks that change it must call the returned function; undefined if no levels are requested.
 */
export function watchLevel<T extends object>(
  stream: Stream,
  name: string,
  block: T,
  methods: readonly MethodsOf<T>[],
  levelOf: () => number,
): (() => void) | undefined {
  if (!stream.has('levels')) return undefined;
  const track = stream.track('levels', name);
  let last = -1;
  const note = (): void => {
    const level = levelOf();
    if (level !== last) stream.instant('level', track, stream.lp.nowPs, level);
    last = level;
  };
  for (const method of methods) after(block, method, note);
  return note;
}
