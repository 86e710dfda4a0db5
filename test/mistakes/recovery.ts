/** Mistakes in selective repeat: the sender's window, its answers, and the requests that the receiver holds. */
import type { Mistake } from './mistake.ts';

export const recoveryMistakes: readonly Mistake[] = [
  {
    name: 'silent-drops-stay-lost',
    what: 'A request that found no room in the reorder buffer after an RNR NAK is not sent again without a timeout.',
    kind: 'check skipped',
    file: 'hw/hca/ibta/requests/send-window.ts',
    find: '    this.requests.mayRepeatFrom(psnAdd(this.cumulativePsn, 1));\n',
    replace: '',
  },
  {
    name: 'read-completes-one-response-early',
    what: 'A READ with selective repeat completes although the response after those placed lacks.',
    kind: 'comparison off by one',
    file: 'hw/hca/ibta/requests/selective-acknowledgements.ts',
    find: 'let count = Math.max(0, psnDistance(lastAckedPsn, firstPsn) + 1);',
    replace: 'let count = Math.max(0, psnDistance(lastAckedPsn, firstPsn) + 2);',
  },
  {
    name: 'response-after-a-gap-one-packet-early',
    what: 'A READ response that comes after a gap is placed one packet before its place.',
    kind: 'wrong address',
    file: 'hw/hca/ibta/requests/selective-acknowledgements.ts',
    find: 'const from = this.#index * pair.mtuBytes;',
    replace: 'const from = Math.max(0, this.#index - 1) * pair.mtuBytes;',
  },
  {
    name: 'held-requests-outlive-their-qp',
    what: 'Requests that the reorder buffer holds stay there when their QP is destroyed.',
    kind: 'resource not returned',
    file: 'hw/hca/ibta/packets/reorder-buffer.ts',
    find: '      else this.consume(place * SLOT_BYTES);\n',
    replace: '',
  },
  {
    name: 'short-timeouts-cost-nothing-ever',
    what: 'With selective repeat a request to a dead peer is sent again without end.',
    kind: 'counter not reset',
    file: 'hw/hca/ibta/requests/selective-acknowledgements.ts',
    find: '      pair.retriesLeft--;\n      window.chargedPs = nowPs;\n',
    replace: '      window.chargedPs = nowPs;\n',
  },
];
