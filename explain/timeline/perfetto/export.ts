/**
 * Exports a timeline as a Perfetto trace, which ui.perfetto.dev and trace_processor read. Each part of the machine is a
 * process. It has a track for each block, queue pair, core, link direction (at both ends) and cable direction (at both
 * ends), counters for levels, and a flow for each operation from its post to the poll of its completion.
 *
 * Perfetto counts whole nanoseconds: times are rounded down, and slices and instants carry the picosecond in `ps`.
 */
import protobuf from 'protobufjs/light.js';
import { type Timeline, type TimelineRecord, timelineKinds } from '../../../machine/timeline/index.ts';
import { operationFlows } from '../flows.ts';
import { argumentsOf, labelOf } from '../labels.ts';
import {
  eventTypes,
  needsState,
  orderedExplicitly,
  sequenceBegins,
  tracePacket,
  tracePacketTag,
  unitCount,
} from './schema.ts';
import { nsOf, type Row, rowsOf, type Slice } from './slices.ts';

/** Packets per chunk of the trace. */
const packetsPerChunk = 4096;
const sequenceId = 1;

/** The trace in pieces, to be written one after another. */
export function perfettoChunks(timeline: Timeline): readonly Uint8Array[] {
  const writer = new PacketWriter();
  new TraceExport(timeline, writer).write();
  return writer.chunks();
}

/** Encodes packets; frequent names are encoded by number. */
class PacketWriter {
  readonly #chunks: Uint8Array[] = [];
  readonly #names = new Map<string, number>();
  #writer = protobuf.Writer.create();
  #packetCount = 0;
  #isFirst = true;
  #interned: Record<string, { iid: number; name: string }[]> = {};

  /** The number of a name in a table of InternedData; a new name is sent with the first packet that uses it. */
  intern(table: 'eventCategories' | 'eventNames' | 'debugAnnotationNames', name: string): number {
    const key = `${table} ${name}`;
    const known = this.#names.get(key);
    if (known !== undefined) return known;
    const iid = this.#names.size + 1;
    this.#names.set(key, iid);
    const rows = this.#interned[table] ?? [];
    rows.push({ iid, name });
    this.#interned[table] = rows;
    return iid;
  }

  packet(fields: Readonly<Record<string, unknown>>): void {
    const hasNew = Object.keys(this.#interned).length > 0;
    const message = {
      ...fields,
      trustedPacketSequenceId: sequenceId,
      sequenceFlags: this.#isFirst ? sequenceBegins | needsState : needsState,
      ...(hasNew ? { internedData: this.#interned } : {}),
    };
    this.#isFirst = false;
    if (hasNew) this.#interned = {};
    tracePacket.encode(message, this.#writer.uint32(tracePacketTag).fork()).ldelim();
    if (++this.#packetCount % packetsPerChunk === 0) this.#cut();
  }

  chunks(): readonly Uint8Array[] {
    this.#cut();
    return this.#chunks;
  }

  #cut(): void {
    this.#chunks.push(this.#writer.finish());
    this.#writer = protobuf.Writer.create();
  }
}

class TraceExport {
  readonly #timeline: Timeline;
  readonly #writer: PacketWriter;
  /** Flows by the index of a record in the timeline: those that pass it, and those that end there. */
  readonly #flows = new Map<
    TimelineRecord,
    { readonly ids: readonly number[]; readonly last: readonly number[] }
  >();
  #uuid = 0;

  constructor(timeline: Timeline, writer: PacketWriter) {
    this.#timeline = timeline;
    this.#writer = writer;
  }

  write(): void {
    const byTrack = this.#byTrack();
    for (const [number, process] of this.#timeline.processes.entries()) {
      const processUuid = this.#describe({
        name: process,
        process: { pid: number + 1, processName: process },
      });
      const groups = new Map<string, number>();
      this.#timeline.tracks.forEach((track, trackNumber) => {
        const records = byTrack.get(trackNumber);
        if (track.process !== process || records === undefined) return;
        const group =
          groups.get(track.group) ??
          this.#describe({
            name: track.group,
            parentUuid: processUuid,
            childOrdering: orderedExplicitly,
            siblingOrderRank: groups.size,
          });
        groups.set(track.group, group);
        this.#track(track.name, group, trackNumber, records);
        if (track.latencyPs !== undefined)
          this.#arrivals(track.name, group, trackNumber, records, track.latencyPs);
      });
    }
  }

  #byTrack(): Map<number, TimelineRecord[]> {
    const byTrack = new Map<number, TimelineRecord[]>();
    const records = [...this.#timeline.records()];
    for (const record of records) {
      const own = byTrack.get(record.trackNumber);
      if (own === undefined) byTrack.set(record.trackNumber, [record]);
      else own.push(record);
    }
    operationFlows(this.#timeline).forEach((flow, index) => {
      const id = index + 1;
      flow.records.forEach((place, position) => {
        const record = records[place]!;
        const { ids = [], last = [] } = this.#flows.get(record) ?? {};
        const isLast = position === flow.records.length - 1;
        this.#flows.set(record, isLast ? { ids, last: [...last, id] } : { ids: [...ids, id], last });
      });
    });
    return byTrack;
  }

  #describe(descriptor: Readonly<Record<string, unknown>>): number {
    const uuid = ++this.#uuid;
    this.#writer.packet({ trackDescriptor: { uuid, ...descriptor } });
    return uuid;
  }

  #track(name: string, parentUuid: number, rank: number, records: readonly TimelineRecord[]): void {
    const shapeOf = ({ kind }: TimelineRecord): string => timelineKinds[kind].shape;
    const levels = records.filter((record) => shapeOf(record) === 'level');
    if (levels.length > 0) {
      const counter = { unit: unitCount };
      const uuid = this.#describe({ name, parentUuid, siblingOrderRank: rank, counter });
      for (const { atPs, values } of levels)
        this.#event(nsOf(atPs), { type: eventTypes.counter, trackUuid: uuid, counterValue: values[0]! });
      return;
    }
    const instants = records.filter((record) => shapeOf(record) === 'instant');
    const rows = rowsOf(records.filter((record) => shapeOf(record) === 'interval'));
    if (instants.length > 0) {
      const uuid = this.#describe({ name, parentUuid, siblingOrderRank: rank });
      for (const record of instants)
        this.#event(nsOf(record.atPs), {
          type: eventTypes.instant,
          trackUuid: uuid,
          ...this.#contents(record),
        });
    }
    for (const row of rows) this.#row(this.#describe({ name, parentUuid, siblingOrderRank: rank }), row);
  }

  /** A link's other end: the same packets, whose last byte arrives one latency later. */
  #arrivals(
    name: string,
    parentUuid: number,
    rank: number,
    records: readonly TimelineRecord[],
    latencyPs: number,
  ): void {
    const later = records.map((record) => ({
      ...record,
      atPs: typeof record.atPs === 'bigint' ? record.atPs + BigInt(latencyPs) : record.atPs + latencyPs,
    }));
    for (const row of rowsOf(later)) {
      const uuid = this.#describe({ name: `${name}, arriving`, parentUuid, siblingOrderRank: rank });
      this.#row(uuid, row);
    }
  }

  #row(trackUuid: number, row: Row): void {
    for (const slice of row) this.#slice(trackUuid, slice);
  }

  #slice(trackUuid: number, { record, fromNs, toNs, parts }: Slice): void {
    this.#event(fromNs, { type: eventTypes.sliceBegin, trackUuid, ...this.#contents(record) });
    for (const part of parts) this.#slice(trackUuid, part);
    this.#event(toNs, { type: eventTypes.sliceEnd, trackUuid });
  }

  #contents(record: TimelineRecord): Readonly<Record<string, unknown>> {
    const writer = this.#writer;
    const { ids = [], last = [] } = this.#flows.get(record) ?? {};
    const facts: (readonly [string, string | number])[] = [
      ...argumentsOf(record),
      ['ps', String(record.atPs)],
    ];
    if (timelineKinds[record.kind].shape === 'interval') facts.push(['durationPs', record.durationPs]);
    return {
      nameIid: writer.intern('eventNames', labelOf(record)),
      categoryIids: [writer.intern('eventCategories', timelineKinds[record.kind].category)],
      debugAnnotations: facts.map(([name, value]) => ({
        nameIid: writer.intern('debugAnnotationNames', name),
        ...(typeof value === 'number' ? { intValue: value } : { stringValue: value }),
      })),
      flowIds: ids,
      terminatingFlowIds: last,
    };
  }

  #event(timestamp: number, trackEvent: Readonly<Record<string, unknown>>): void {
    this.#writer.packet({ timestamp, trackEvent });
  }
}
