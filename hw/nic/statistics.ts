/**
 * The statistics registers: what has been counted since each was read last. Reading the high half of an octet count
 * clears both. Counts stop at no limit here but show their low 32 bits. Source: 8254x manual, 13.7.
 */
import type { EthernetPort } from '../../wire/index.ts';
import type { NicCounters } from './counters.ts';

const FOUR_GIB = 0x1_0000_0000;
const FCS_BYTES = 4;

type Counted =
  | 'crcerrs'
  | 'mpc'
  | 'rlec'
  | 'gprc'
  | 'bprc'
  | 'gptc'
  | 'gorcl'
  | 'gotcl'
  | 'rnbc'
  | 'rxfilt'
  | 'tpr'
  | 'tpt';
/** The statistics registers. */
export type StatisticName = Counted | 'gorch' | 'gotch';

export class NicStatistics {
  readonly #sources: Readonly<Record<Counted, () => number>>;
  readonly #readAt = new Map<Counted, number>();

  constructor(counters: NicCounters, port: EthernetPort) {
    const c = counters;
    const goodPackets = (): number => c.delivered + c.released;
    this.#sources = {
      crcerrs: () => port.received.corruptedFrames,
      mpc: () => c.missed + port.received.fifoDrops,
      rlec: () => c.wrongLength,
      gprc: goodPackets,
      bprc: () => c.broadcasts,
      gptc: () => c.transmitFrames,
      gorcl: () => c.deliveredBytes + c.releasedBytes + goodPackets() * FCS_BYTES,
      gotcl: () => c.transmitBytes,
      rnbc: () => c.waitedForDescriptor,
      rxfilt: () => c.filtered,
      tpr: () => c.arrivals + port.received.corruptedFrames + port.received.fifoDrops,
      tpt: () => c.transmitFrames,
    };
  }

  /** The value of a statistics register, which the read clears. */
  read(name: StatisticName): number {
    if (name === 'gorch') return this.#readHigh('gorcl');
    if (name === 'gotch') return this.#readHigh('gotcl');
    const total = this.#sources[name]();
    const value = total - (this.#readAt.get(name) ?? 0);
    if (name !== 'gorcl' && name !== 'gotcl') this.#readAt.set(name, total);
    return value >>> 0;
  }

  /** A reset: all read zero. */
  reset(): void {
    for (const name of Object.keys(this.#sources) as Counted[]) this.#readAt.set(name, this.#sources[name]());
  }

  #readHigh(low: 'gorcl' | 'gotcl'): number {
    const total = this.#sources[low]();
    const value = total - (this.#readAt.get(low) ?? 0);
    this.#readAt.set(low, total);
    return Math.floor(value / FOUR_GIB);
  }
}
