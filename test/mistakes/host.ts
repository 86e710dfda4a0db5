/** Mistakes in the host: page tables, pins, copy on write, swap, frames, interrupts, stores. */
import type { Mistake } from './mistake.ts';

export const hostMistakes: readonly Mistake[] = [
  {
    name: 'read-pin-of-the-zero-page',
    what: 'A page that was only read is pinned as the zero page: what the process writes there later a device does not see.',
    kind: 'check skipped',
    scene: 'squeezed',
    file: 'host/mm/pins.ts',
    find: 'if (frame === zeroFrame || !pages.has(frame, pageAnonymous)) return isPrivate;',
    replace:
      'if (frame === zeroFrame || !pages.has(frame, pageAnonymous)) return isPrivate && frame !== zeroFrame;',
  },
  {
    name: 'fork-shares-pinned-pages',
    what: 'A fork shares pages that are pinned for a device, and the parent writes to a copy.',
    kind: 'check skipped',
    scene: 'forked',
    file: 'host/mm/fork.ts',
    find: 'const isKept = isHeld || isPinned(parent, frame, frameCount) || isDevices(parent, page, frameCount);',
    replace:
      'const isKept = isHeld || isPinned(parent, frame + 1, frameCount - 1) || isDevices(parent, page, frameCount);',
  },
  {
    name: 'failed-pin-keeps-last-page',
    what: 'A pin that fails gives back all pages that it had but the last.',
    kind: 'resource not returned',
    scene: 'refused-registrations',
    file: 'host/mm/pins.ts',
    find: 'for (let back = 0; back < page; back++)',
    replace: 'for (let back = 0; back < page - 1; back++)',
  },
  {
    name: 'frames-not-zeroed',
    what: 'A frame that was used comes back with what lay in it.',
    kind: 'counter not reset',
    scene: 'refused-registrations',
    file: 'host/mm/page-frames.ts',
    find: `      this.#isUsed.set(frame, 1);
    }`,
    replace: `      this.#isUsed.set(frame, 0);
    }`,
  },
  {
    name: 'interrupt-merged-into-served-one',
    what: 'An interrupt that comes while its handler runs merges into the one being served.',
    kind: 'lost event',
    scene: 'interrupts-in-service',
    file: 'host/interrupt-controller.ts',
    find: `    if (line.isPending) {
      line.merged++;`,
    replace: `    if (line.isPending || line.isInService) {
      line.merged++;`,
  },
  {
    name: 'level-not-looked-at-again',
    what: 'A level that is still high at the end of its handler does not interrupt again.',
    kind: 'lost event',
    file: 'host/interrupt-controller.ts',
    find: 'if (isHigh && line.handler !== undefined && !line.isPending)',
    replace: 'if (isHigh && line.handler !== undefined && line.isPending)',
  },
  {
    name: 'deadline-outlives-wait',
    what: 'A wait that a signal has ended leaves its deadline behind, which ends a later wait.',
    kind: 'generation not raised',
    scene: 'timed-waits',
    file: 'host/core-waits.ts',
    find: 'thread.deadlineRef = this.#core.cancel(thread.deadlineRef);',
    replace: 'thread.deadlineRef = 0;',
  },
  {
    name: 'unmap-without-invalidation',
    what: 'A page taken from the device keeps its translation in the IOTLB.',
    kind: 'fence left out',
    scene: 'pages-taken-back',
    file: 'host/iommu-domain.ts',
    find: 'this.#enter(page, rights, true);',
    replace: 'this.#enter(page, rights, rights !== 0);',
  },
  {
    name: 'slot-goes-with-one-of-its-users',
    what: 'A slot of swap that parent and child use is given back when the first of them has its page again.',
    kind: 'generation not raised',
    scene: 'squeezed',
    file: 'host/mm/swap-area.ts',
    find: '    if (users > 0) return none;\n',
    replace: '    if (users > 1) return none;\n',
  },
  {
    name: 'discard-not-notified',
    what: 'Who follows translations of a process is not notified when it discards pages.',
    kind: 'fence left out',
    scene: 'pages-on-demand',
    file: 'host/mm/area-changes.ts',
    find: `  space.notify(start, end, 'clear');
  const gather`,
    replace: '  const gather',
  },
  {
    name: 'combined-stores-not-flushed',
    what: 'A commit ends without flushing the write-combining buffers if one store is not full.',
    kind: 'fence left out',
    scene: 'copied-by-words',
    file: 'host/store-buffer.ts',
    find: 'if (store.endsCommit && !this.#target.writeCombining.flush()) return false;',
    replace:
      'if (store.endsCommit && store.lengthBytes >= 64 && !this.#target.writeCombining.flush()) return false;',
  },
  {
    name: 'newest-line-evicted',
    what: 'The newest write-combining buffer leaves first, not the oldest.',
    kind: 'wrong order',
    scene: 'copied-by-words',
    file: 'host/write-combining-buffers.ts',
    find: 'return this.#leave(this.#order[0]!);',
    replace: 'return this.#leave(this.#order[this.#occupiedCount - 1]!);',
  },
];
