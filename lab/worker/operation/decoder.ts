/** Assigns decoded bytes to records: by kind of message, instant and address. */

import { argumentsOf } from '../../../explain/timeline/index.ts';
import type { TimelineRecord } from '../../../machine/timeline/index.ts';
import type { DecodedEvent } from '../../protocol.ts';
import type { BusEvent } from './bus-text.ts';
import type { CableFrame, CablePacket } from './packet-headers.ts';

/** Longest wait of a write at the root complex. */
const writeWaitPs = 20_000_000;

/** The analyser's words for an access of a class. */
const wordsOf: Readonly<Record<string, (address: string) => RegExp>> = {
  cqe: () => /^CQE /,
  eqe: () => /^EQE /,
  msix: () => /^MSI-X /,
  payloadWrite: (address) => new RegExp(`^payload write .* at ${address}(,|$)`),
};

interface Found {
  readonly decoded: readonly number[];
  /** When a write took effect. */
  readonly inMemoryPs?: number;
  /** Messages that a frame completes, instead of the record's own name. */
  readonly words?: string;
}

const nothing: Found = { decoded: [] };

export class Decoder {
  /** Events of the bus, then packets, then frames. */
  readonly events: readonly DecodedEvent[];
  readonly #bus: readonly BusEvent[];
  readonly #packets: readonly CablePacket[];
  readonly #frames: readonly CableFrame[];
  readonly #postedPs: number;

  /** @param postedPs instants of the events are relative to it */
  constructor(
    bus: readonly BusEvent[],
    packets: readonly CablePacket[],
    frames: readonly CableFrame[],
    postedPs: number,
  ) {
    this.#bus = bus;
    this.#packets = packets;
    this.#frames = frames;
    this.#postedPs = postedPs;
    this.events = [
      ...bus.map(({ atPs, node, summary, sections }) => ({
        atPs: atPs - postedPs,
        summary: `host ${node}: ${summary}`,
        sections,
      })),
      ...[...packets, ...frames].map(({ atPs, sections }) => ({
        atPs: atPs - postedPs,
        summary: 'headers of the packet',
        sections,
      })),
    ];
  }

  of(record: TimelineRecord, fromPs: number, toPs: number, arrivesPs: number | undefined): Found {
    if (record.kind === 'packet') return this.#headers(record, toPs, arrivesPs);
    if (record.kind === 'frame') return this.#frame(record, toPs, arrivesPs);
    if (record.kind === 'doorbell' || record.kind === 'blueFlame') return this.#doorbell(record, fromPs);
    if (record.kind !== 'tlp') return nothing;
    const node = Number(record.track.process.replace(/^\D+/, ''));
    const values = Object.fromEntries(argumentsOf(record));
    const type = String(values['type']);
    const isToHost = record.track.process.startsWith('host');
    if (!isToHost && type === 'MWr')
      return this.#all((event) => event.atPs === fromPs, node, /doorbell|BlueFlame/i);
    if (!isToHost) return this.#all(({ atPs }) => atPs === fromPs, node, /./, ['dma']);
    if (type !== 'MWr') return nothing;
    return this.#written(node, String(values['trafficClass']), String(values['address']), arrivesPs ?? toPs);
  }

  #frame({ track, values }: TimelineRecord, toPs: number, arrivesPs: number | undefined): Found {
    const seenPs = seenAtPs(track.process, toPs, arrivesPs);
    const [wireBytes = 0] = values;
    const at = this.#frames.findIndex(
      ({ atPs, frameBytes }) => Math.abs(atPs - this.#postedPs - seenPs) <= 1 && frameBytes <= wireBytes,
    );
    if (at < 0) return nothing;
    const { words } = this.#frames[at]!;
    return {
      decoded: [this.#bus.length + this.#packets.length + at],
      words: words === '' ? 'TCP segment' : words,
    };
  }

  #headers({ track, values }: TimelineRecord, toPs: number, arrivesPs: number | undefined): Found {
    const seenPs = seenAtPs(track.process, toPs, arrivesPs);
    const at = this.#packets.findIndex(
      (packet) =>
        packet.opcode === values[0] &&
        packet.destinationQp === values[1] &&
        packet.psn === values[2] &&
        Math.abs(packet.atPs - this.#postedPs - seenPs) <= 1,
    );
    return at < 0 ? nothing : { decoded: [this.#bus.length + at] };
  }

  /** The doorbell crossed the link shortly before the device received it. */
  #doorbell({ track }: TimelineRecord, fromPs: number): Found {
    const node = Number(track.process.replace(/^\D+/, ''));
    const at = this.#bus.findLastIndex(
      (event) =>
        event.node === node && event.category === 'doorbells' && event.atPs - this.#postedPs <= fromPs,
    );
    return at < 0 ? nothing : { decoded: [at] };
  }

  #all(
    isIt: (event: { readonly atPs: number }) => boolean,
    node: number,
    pattern: RegExp,
    categories = ['doorbells'],
  ): Found {
    const decoded = this.#bus.flatMap((event, at) =>
      event.node === node &&
      categories.includes(event.category) &&
      pattern.test(event.summary) &&
      isIt({ atPs: event.atPs - this.#postedPs })
        ? [at]
        : [],
    );
    return { decoded };
  }

  /** The effect of a write: the first one of its kind after its arrival. */
  #written(node: number, trafficClass: string, address: string, arrivesPs: number): Found {
    const words = (wordsOf[trafficClass] ?? ((at: string) => new RegExp(` write .* at ${at}(,|$)`)))(address);
    const at = this.#bus.findIndex(
      (event) =>
        event.node === node &&
        event.atPs - this.#postedPs >= arrivesPs &&
        event.atPs - this.#postedPs < arrivesPs + writeWaitPs &&
        words.test(event.summary),
    );
    if (at < 0) return nothing;
    return { decoded: [at], inMemoryPs: this.#bus[at]!.atPs - this.#postedPs };
  }
}

/** The capture is taken at host 0's end: an arriving packet is captured once it has arrived, a departing one once it has left. */
const seenAtPs = (process: string, toPs: number, arrivesPs: number | undefined): number =>
  process === 'hca0' ? (arrivesPs ?? toPs) : toPs;
