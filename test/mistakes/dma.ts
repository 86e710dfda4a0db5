/** Mistakes in the DMA engines: tags, splits, order, attribution of waits. */
import type { Mistake } from './mistake.ts';

export const dmaMistakes: readonly Mistake[] = [
  {
    name: 'expired-tag-reused',
    what: 'A read that has timed out gives its tag back at once, though its completions may still come.',
    kind: 'generation not raised',
    scene: 'failed-reads',
    file: 'hw/dma/dma-read-engine.ts',
    find: 'this.#tags.expire(tag, cycle + this.#timeout());',
    replace: 'this.#tags.release(tag);',
  },
  {
    name: 'split-forgets-dword',
    what: 'A TLP that begins inside a dword spans one dword more than its limit.',
    kind: 'wrong length',
    scene: 'few-credits',
    file: 'hw/dma/split.ts',
    find: 'const inTlp = limitBytes - (pageOffset & 3);',
    replace: 'const inTlp = limitBytes;',
  },
  {
    name: 'last-finished-not-reported',
    what: 'A request that has finished behind the one reported is not reported if it is the last.',
    kind: 'lost event',
    file: 'hw/dma/dma-read-engine.ts',
    find: 'while (queue.count > 0 && queue.head.isFinished);',
    replace: 'while (queue.count > 1 && queue.head.isFinished);',
  },
  {
    name: 'failure-stays-in-entry',
    what: 'A request begins with the status of the one that had its entry before.',
    kind: 'counter not reset',
    scene: 'failed-reads',
    file: 'hw/dma/read-queue.ts',
    find: `    request.status = ok;
    this.unsentCount++;`,
    replace: '    this.unsentCount++;',
  },
  {
    name: 'full-fifo-asked-too-late',
    what: 'Whether a fifo was full is asked when it no longer is, so that no waiter wakes when it has room.',
    kind: 'lost event',
    file: 'hw/dma/dma-write-engine.ts',
    find: `    const wasFull = owner.count === owner.depth;
    this.#queue.pop();
`,
    replace: `    this.#queue.pop();
    const wasFull = owner.count === owner.depth;
`,
  },
  {
    name: 'tag-wait-counted-as-link',
    what: 'What the read engine waits for tags is counted as waiting for the link.',
    kind: 'wrong stage',
    scene: 'few-credits',
    file: 'hw/dma/dma-read-engine.ts',
    find: '    this.account.stall(cycle, reason);',
    replace: '    this.account.stall(cycle, STALL_LINK);',
  },
  {
    name: 'late-answer-ends-read',
    what: 'A completion that comes when its read has been given up is taken for one of the request that has the entry by now.',
    kind: 'generation not raised',
    scene: 'failed-reads',
    file: 'hw/dma/dma-read-engine.ts',
    find: '    if (tag.state === TAG_ACTIVE) {',
    replace: '    if (tag.state !== TAG_ABANDONED) {',
  },
];
