/**
 * The latest records of a machine that runs indefinitely: those of its timeline, the events of its bus analysers, and
 * the packets on its cable. Older ones are dropped, so that memory is bounded however long the machine runs.
 */
import { type AnalysisOptions, traceDefaults } from '../../machine/analysis/index.ts';
import { mergedTimeline, type Timeline } from '../../machine/timeline/index.ts';
import type { ProcessObservations } from '../../sim/index.ts';
import type { LinuxMoment } from '../protocol.ts';
import { busEvents } from '../worker/operation/bus-text.ts';
import { Decoder } from '../worker/operation/decoder.ts';
import { cablePackets } from '../worker/operation/packet-headers.ts';
import { recordsOf } from '../worker/operation/picture.ts';
import { joined } from '../worker/operation/recording.ts';

/** Records of a process that are kept, and dropped, at a time. */
const batchRecords = 512;
const batchesMax = 6;
/** Events of the bus that are kept. */
const eventsMax = 600;
/** Bytes of packets that are kept: about those of a picture's records, since each picture decodes all of them. */
const captureBytes = 192 * 1024;
/** Records of a picture. */
const shownMax = 1500;

/** Events that have happened so far, by category of the bus analyser. */
export type EventCounts = Readonly<Record<string, number>>;

const categoryOf = /^ *\d+\.\d+ ns {2}\w+ {2}(\w+)/;

export class RecentRecords {
  readonly analysis: AnalysisOptions;
  readonly #batches = new Map<string, ProcessObservations[]>();
  readonly #events: string[] = [];
  readonly #counts: Record<string, number> = {};
  #count = 0;
  readonly #onCommand: (text: string) => void;

  /** @param onCommand receives each command of a driver when it has ended, in the words of the bus analyser */
  constructor(onCommand: (text: string) => void) {
    this.#onCommand = onCommand;
    this.analysis = {
      timeline: { recordsMax: batchRecords, sink: (batch) => this.#take(batch) },
      trace: {
        ...traceDefaults,
        categories: ['commands', 'doorbells', 'dma', 'events', 'interrupts'],
        sinkOf: () => ({ write: (text) => this.#event(text), close: () => undefined }),
      },
      capture: { ends: [{ node: 0 }], sizeBytes: captureBytes, keepsLatest: true },
    };
  }

  /** Events so far, of all kinds. */
  get count(): number {
    return this.#count;
  }

  get counts(): EventCounts {
    return this.#counts;
  }

  /**
   * The machine until an instant, and what its last records say; instants are relative to it.
   * @param rest the machine's own timeline: records that are not dropped yet, and intervals that have not ended
   * @param capture the latest packets at host 0's end of the cable, as {@link analysis} requests them
   */
  pictureOf(rest: Timeline, capture: Uint8Array, atPs: number): LinuxMoment {
    const parts = rest.parts.map((part) =>
      joined(
        this.#batches
          .get(part.process)
          ?.reduce<ProcessObservations | undefined>((former, each) => joined(former, each), undefined),
        part,
      ),
    );
    const whole = mergedTimeline(parts, rest.topology);
    const first = whole.count === 0 ? atPs : Number(whole.record(Math.max(0, whole.count - shownMax)).atPs);
    const timeline = whole.between(first, atPs + 1);
    const decoder = new Decoder(busEvents(this.#events), cablePackets(capture), [], atPs);
    const { records, tracks } = recordsOf(timeline, new Set(), atPs, decoder);
    const named = tracks.map((track) => ({ ...track, process: track.process.replace('guest', 'host') }));
    return { fromPs: first - atPs, toPs: 0, tracks: named, records, decoded: decoder.events };
  }

  #take(batch: ProcessObservations): void {
    const kept = this.#batches.get(batch.process) ?? [];
    this.#batches.set(batch.process, kept);
    kept.push(batch);
    if (kept.length > batchesMax) kept.shift();
  }

  #event(text: string): void {
    const category = categoryOf.exec(text)?.[1] ?? 'other';
    this.#count++;
    this.#counts[category] = (this.#counts[category] ?? 0) + 1;
    if (category === 'commands') this.#onCommand(text);
    this.#events.push(text);
    if (this.#events.length > 2 * eventsMax) this.#events.splice(0, eventsMax);
  }
}
