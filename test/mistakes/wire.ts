/** Mistakes in the wire port and in what shares it out. */
import type { Mistake } from './mistake.ts';

export const wireMistakes: readonly Mistake[] = [
  {
    name: 'padding-not-sent',
    what: 'The bytes that pad a payload to words are not counted in the length of its packet.',
    kind: 'wrong length',
    file: 'wire/opcodes.ts',
    find: 'const bytes = this.headerBytes + ((payloadBytes + 3) & ~3);',
    replace: 'const bytes = this.headerBytes + payloadBytes;',
  },
  {
    name: 'framing-takes-no-time',
    what: 'The delimiters of a data packet take no time on the link.',
    kind: 'wrong time',
    file: 'wire/wire-sender.ts',
    find: 'occupy(atPs, packetBytes + this.#framingBytes) + this.#latencyPs;\n    return',
    replace: 'occupy(atPs, packetBytes) + this.#latencyPs;\n    return',
  },
  {
    name: 'fractions-dropped',
    what: 'The part of a picosecond that is left of each packet is dropped, not carried to the next.',
    kind: 'wrong time',
    file: 'wire/link-rate.ts',
    find: 'this.#remainder = total - wholePs * this.#denominator;',
    replace: 'this.#remainder = 0;',
  },
  {
    name: 'corrupted-keeps-its-credits',
    what: 'The buffer of a corrupted packet is not given back to the sender.',
    kind: 'resource not returned',
    file: 'wire/wire-port.ts',
    find: '    if (isCorrupted) this.consume(offset);\n',
    replace: '    if (isCorrupted) this.#reader.release(offset);\n',
  },
  {
    name: 'credits-at-once',
    what: 'New credits count in the very instant in which they come, or not, as the order of that instant has it.',
    kind: 'wrong order',
    file: 'wire/link-credits.ts',
    find: `  canSend(blocks: number, nowPs: number): boolean {
    if (nowPs > this.newLimitPs) this.#limit = this.#newLimit;`,
    replace: `  canSend(blocks: number, nowPs: number): boolean {
    if (nowPs >= this.newLimitPs) this.#limit = this.#newLimit;`,
  },
  {
    name: 'requests-win-after-first-burst',
    what: 'After one burst of responses only requests are sent while there are both.',
    kind: 'counter not reset',
    file: 'hw/hca/transmitter.ts',
    find: 'if (queue === this.requests) this.#responsesInRow = 0;\n    else if (this.#isContended)',
    replace: 'if (queue !== this.requests && this.#isContended)',
  },
  {
    name: 'rnr-code-0-is-none',
    what: 'RNR timer code 0 asks for no delay, not for the longest.',
    kind: 'wrong time',
    file: 'wire/aeth.ts',
    find: '  65536, 1, 2, 3, 4, 6, 8,',
    replace: '  0, 1, 2, 3, 4, 6, 8,',
  },
  {
    name: 'credit-codes-rounded-up',
    what: 'An ACK promises the next larger number of receives that has a code.',
    kind: 'comparison off by one',
    file: 'wire/aeth.ts',
    find: 'creditCountByCode[code + 1]! <= messageCount',
    replace: 'creditCountByCode[code]! < messageCount',
  },
  {
    name: 'one-port-latency',
    what: 'A packet passes one port on its way, not two.',
    kind: 'wrong time',
    file: 'wire/link-rate.ts',
    find: 'return 2 * config.portLatencyNs * 1000 + ',
    replace: 'return config.portLatencyNs * 1000 + ',
  },
  {
    name: 'link-down-wakes-nobody',
    what: 'A sender that waits for the link when it goes down is not woken, and holds up what is to be discarded.',
    kind: 'lost event',
    file: 'wire/wire-sender.ts',
    find: 'if (this.#wait.reason !== NOT_WAITING) this.#wakeAt(this.#lp.nowPs + 1);',
    replace: 'this.#wait.end(this.#lp.nowPs);',
  },
];
