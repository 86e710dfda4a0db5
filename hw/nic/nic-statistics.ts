/**
 * The statistics registers: counts since each was last read. Reading the high half of an octet count clears both. Counts stop
 * at no limit here but show their low 32 bits. Source: 8254x manual, 13.7.
 */
import { ethernetTagBytes } from '../../abi/nic/index.ts';
import type { EthernetPort } from '../../wire/index.ts';
import type { NicCounters } from './nic-counters.ts';

const FOUR_GIB = 0x1_0000_0000;
const FCS_BYTES = 4;

const countedNames = [
  'crcerrs',
  'mpc',
  'rlec',
  'gprc',
  'bprc',
  'gptc',
  'gorcl',
  'gotcl',
  'rnbc',
  'rxfilt',
  'tpr',
  'tpt',
] as const;
type Counted = (typeof countedNames)[number];
/** The statistics registers. */
export type StatisticName = Counted | 'gorch' | 'gotch';

export class NicStatistics {
  readonly #counters: NicCounters;
  readonly #port: EthernetPort;
  readonly #readAt = new Map<Counted, number>();

  constructor(counters: NicCounters, port: EthernetPort) {
    this.#counters = counters;
    this.#port = port;
  }

  /** The value of a statistics register, which the read clears. */
  read(name: StatisticName): number {
    if (name === 'gorch') return this.#readHigh('gorcl');
    if (name === 'gotch') return this.#readHigh('gotcl');
    const total = this.#totalOf(name);
    const value = total - (this.#readAt.get(name) ?? 0);
    if (name !== 'gorcl' && name !== 'gotcl') this.#readAt.set(name, total);
    return value >>> 0;
  }

  /** A reset: all read zero. */
  reset(): void {
    for (const name of countedNames) this.#readAt.set(name, this.#totalOf(name));
  }

  #readHigh(low: 'gorcl' | 'gotcl'): number {
    const total = this.#totalOf(low);
    const value = total - (this.#readAt.get(low) ?? 0);
    this.#readAt.set(low, total);
    return Math.floor(value / FOUR_GIB);
  }

  /** Counts since power-on. */
  #totalOf(name: Counted): number {
    const c = this.#counters;
    const { received } = this.#port;
    switch (name) {
      case 'crcerrs':
        return received.corruptedFrames;
      case 'mpc':
        return c.missed + received.fifoDrops;
      case 'rlec':
        return c.wrongLength;
      case 'gprc':
        return c.delivered + c.released;
      case 'bprc':
        return c.broadcasts;
      case 'gptc':
      case 'tpt':
        return c.transmitFrames;
      case 'gorcl':
        return (
          c.deliveredBytes +
          c.deliveredTags * ethernetTagBytes +
          c.releasedBytes +
          (c.delivered + c.released) * FCS_BYTES
        );
      case 'gotcl':
        return c.transmitBytes;
      case 'rnbc':
        return c.waitedForDescriptor;
      case 'rxfilt':
        return c.filtered + c.filteredVlans;
      case 'tpr':
        return c.arrivals + received.corruptedFrames + received.fifoDrops;
    }
  }
}
