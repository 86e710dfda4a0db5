/** Mistakes in the verbs library. */
import type { Mistake } from './mistake.ts';

export const userlibMistakes: readonly Mistake[] = [
  {
    name: 'one-post-too-many',
    what: 'A send queue takes one request more than it was made for.',
    kind: 'comparison off by one',
    file: 'userlib/post-send.ts',
    find: 'if (((ring.head - ring.tail) >>> 0) + count >= ring.maxPost) return ENOMEM;',
    replace: 'if (((ring.head - ring.tail) >>> 0) + count > ring.maxPost) return ENOMEM;',
  },
  {
    name: 'unsignalled-not-reclaimed',
    what: 'A completion frees its own place in the send queue, not those of unsignalled requests before it.',
    kind: 'resource not returned',
    file: 'userlib/poll-cq.ts',
    find: `  // Unsignalled requests before this one have completed with it.
  ring.tail = (ring.tail + ((counter - ring.tail) & 0xffff)) >>> 0;
  const { wrId } = ring.slotAt(ring.tail);
`,
    replace: '  const { wrId } = ring.slotAt(counter);\n',
  },
  {
    name: 'consumer-one-poll-behind',
    what: 'The doorbell record of a CQ says what was consumed before the last poll.',
    kind: 'wrong order',
    scene: 'full-completion-queue',
    file: 'userlib/poll-cq.ts',
    find: 'cpu.storeView.setUint32(offset, ring.consumerCounter & fields24);',
    replace: 'cpu.storeView.setUint32(offset, first & fields24);',
  },
  {
    name: 'flags-of-the-one-before',
    what: 'The flags of a work completion are those of the one that was in its place before.',
    kind: 'counter not reset',
    file: 'userlib/poll-cq.ts',
    find: '  wc.wcFlags = 0;\n',
    replace: '',
  },
  {
    name: 'inline-over-a-page-end',
    what: 'Inline data that passes the end of a page goes on in the next frame, wherever the next page lies.',
    kind: 'wrong address',
    scene: 'frames-out-of-order',
    file: 'userlib/wqe-writer.ts',
    find: 'if (byte === 0 || ((addr + byte) & 0xfff) === 0) physical = memory.physicalAddress(addr + byte);',
    replace: 'if (byte === 0) physical = memory.physicalAddress(addr);',
  },
  {
    name: 'list-without-end',
    what: 'A receive list that is shorter than the WQE is not ended: what was there before follows it.',
    kind: 'wrong length',
    scene: 'request-lists',
    file: 'userlib/post-recv.ts',
    find: 'const isShorter = wr.numSge < maxSge;',
    replace: 'const isShorter = wr.numSge === 0 && maxSge > 0;',
  },
  {
    name: 'blueflame-second-quarter',
    what: 'The second half of the BlueFlame register is taken to begin at its first quarter.',
    kind: 'wrong address',
    scene: 'request-lists',
    file: 'userlib/post-send.ts',
    find: 'const half = context.blueFlameHalf * (blueFlameRegisterBytes >>> 1);',
    replace: 'const half = context.blueFlameHalf * (blueFlameRegisterBytes >>> 2);',
  },
  {
    name: 'srq-loses-unpolled-receives',
    what: 'WQEs of an SRQ whose completions were thrown away with their QP are not free again.',
    kind: 'resource not returned',
    scene: 'shared-receives',
    file: 'userlib/cq.ts',
    find: 'if (freeShared !== undefined && isSend.get(view, from) === 0) freeShared(wqeCounter.get(view, from));',
    replace:
      'if (freeShared !== undefined && isSend.get(view, from) === 1) freeShared(wqeCounter.get(view, from));',
  },
  {
    name: 'moved-entry-keeps-its-owner',
    what: 'A completion that is moved within a CQ brings its owner bit along, even past the end of the ring.',
    kind: 'check skipped',
    scene: 'unpolled-completions',
    file: 'userlib/cq.ts',
    find: 'const ownerThere = owner.get(view, to);',
    replace: 'const ownerThere = owner.get(view, from);',
  },
  {
    name: 'arm-sequence-stands-still',
    what: 'A CQ is armed with the sequence number of an earlier event while events are not acknowledged.',
    kind: 'generation not raised',
    file: 'userlib/events.ts',
    find: '    cq.ring.armSequence++;\n',
    replace: '    if (cq.eventsUnacked === 0) cq.ring.armSequence++;\n',
  },
  {
    name: 'atomic-swap-and-compare',
    what: 'COMPARE_SWAP writes the value to compare with in place of the one to write.',
    kind: 'wrong order',
    file: 'userlib/wqe-writer.ts',
    find: 'atomic.swapOrAdd.set(view, behind, isSwap ? request.swap : request.compareAdd);',
    replace: 'atomic.swapOrAdd.set(view, behind, request.compareAdd);',
  },
];
