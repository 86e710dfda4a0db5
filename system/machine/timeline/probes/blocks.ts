/** States of blocks, and levels of their fifos. */
import type { BlockAccount, Clock, Fifo } from '../../../../sim/index.ts';
import { after, around, type MethodsOf } from '../around.ts';
import type { Stream } from '../stream.ts';

const RESTING = -1;

/** Notes when a block is busy, and when it stalls and why; the rest of the time it is idle. */
export function watchAccount(stream: Stream, account: BlockAccount, clock: Clock): void {
  if (!stream.has('blocks')) return;
  const track = stream.track('blocks', account.name, { names: account.stallReasons });
  let reason = RESTING;
  const noteStall = (cycle: number): void => {
    if (reason !== RESTING && cycle > account.freeCycle)
      stream.cycles('blockStalled', track, clock, account.freeCycle, cycle, reason);
  };
  // A block that ends a wait serves by way of itself: the call inside is the same work.
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

/** Notes how many entries a fifo holds whenever that changes: at the edge or instant at which it does. */
function watchFifo(stream: Stream, fifo: Fifo, name: string): void {
  if (!stream.has('levels')) return;
  const track = stream.track('levels', name);
  const note = (): void => stream.instant('level', track, stream.lp.nowPs, fifo.count);
  around(fifo, 'push', (push) => (value, visibleCycle) => {
    push(value, visibleCycle);
    note();
  });
  around(fifo, 'pop', (pop) => () => {
    const value = pop();
    note();
    return value;
  });
}

/** The fifos of each block that has some. */
export function watchFifos(stream: Stream, blocks: Readonly<Record<string, object>>): void {
  for (const [name, block] of Object.entries(blocks)) {
    const { fifos = [] }: { readonly fifos?: readonly Fifo[] } = block;
    for (const fifo of fifos) watchFifo(stream, fifo, `${name}: ${fifo.name}`);
  }
}

/** A level that `levelOf` reads after each call of these methods. */
export function watchLevel<T extends object>(
  stream: Stream,
  name: string,
  block: T,
  methods: readonly MethodsOf<T>[],
  levelOf: () => number,
): void {
  if (!stream.has('levels')) return;
  const track = stream.track('levels', name);
  let last = -1;
  for (const method of methods)
    after(block, method, () => {
      const level = levelOf();
      if (level !== last) stream.instant('level', track, stream.lp.nowPs, level);
      last = level;
    });
}
