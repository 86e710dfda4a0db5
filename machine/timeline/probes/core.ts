/**
 * A core's time by the use of its cycles. A core charges work ahead of simulated time and may be taken away by a thread
 * of a higher level. The recorder therefore delays charged work until it has passed, cuts it where the core was taken
 * away, and continues it when the thread has the core again. So the intervals of a core never overlap.
 */
import type { Core, CoreThread } from '../../../host/index.ts';
import { around } from '../around.ts';
import type { Stream } from '../stream.ts';

/** Work in cycles of the core's clock since power-on. */
interface Work {
  from: number;
  to: number;
  readonly cause: number;
  readonly thread: number;
}

const NO_THREAD = 0;

export function watchCore(stream: Stream, core: Core, causes: readonly string[]): void {
  const track = stream.track('cores', `core ${core.index}`, { names: causes });
  const { clock } = core;
  const threads = new Map<CoreThread, number>();
  /** Charged work that is not known to have passed, in time order; and the preempted work of each thread. */
  let ahead: Work[] = [];
  const owed = new Map<CoreThread, Work[]>();
  const idle = causes.indexOf('idle');
  const epochCycles = (): number => stream.lp.epochUs * clock.frequencyMHz;

  const threadNumber = (): number => {
    const { current } = core;
    if (current === undefined) return NO_THREAD;
    let number = threads.get(current);
    if (number === undefined) {
      number = threads.size + 1;
      threads.set(current, number);
    }
    return number;
  };
  const show = ({ from, to, cause, thread }: Work): void => {
    const offset = epochCycles();
    if (cause !== idle) stream.cycles('core', track, clock, from - offset, to - offset, cause, thread);
  };
  /** Intervals wholly before simulated time are final. */
  const settle = (): void => {
    const now = epochCycles() + clock.cyclesElapsed(stream.lp.nowPs);
    let count = 0;
    while (count < ahead.length && ahead[count]!.to <= now) show(ahead[count++]!);
    if (count > 0) ahead = ahead.slice(count);
  };
  const put = (work: Work): void => {
    const last = ahead.at(-1);
    if (
      last !== undefined &&
      last.to === work.from &&
      last.cause === work.cause &&
      last.thread === work.thread
    )
      last.to = work.to;
    else ahead.push(work);
  };

  around(core.account, 'add', (add) => (cause, cycles) => {
    add(cause, cycles);
    if (cycles <= 0) return;
    settle();
    const from = epochCycles() + core.localCycle;
    put({ from, to: from + cycles, cause, thread: threadNumber() });
  });
  around(core, 'halt', (halt) => (thread, cycle) => {
    halt(thread, cycle);
    const at = epochCycles() + cycle;
    const rest = owed.get(thread) ?? [];
    for (const work of ahead) {
      if (work.to <= at) continue;
      const from = Math.max(work.from, at);
      rest.push({ ...work, from });
      work.to = from;
    }
    ahead = ahead.filter(({ from, to }) => to > from);
    if (rest.length > 0) owed.set(thread, rest);
  });
  around(core, 'goOn', (goOn) => (thread) => {
    let at = epochCycles() + core.localCycle;
    goOn(thread);
    const rest = owed.get(thread) ?? [];
    owed.delete(thread);
    for (const { from, to, cause, thread: number } of rest) {
      put({ from: at, to: at + to - from, cause, thread: number });
      at += to - from;
    }
  });
  stream.addOpenEnd(() => {
    for (const work of ahead) show(work);
  });
}
