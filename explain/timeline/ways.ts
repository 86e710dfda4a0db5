/**
 * The ways of packets over a fabric, from the records of its switches: at a host's port, over each cable, and through each switch with its
 * waits. The steps of a way tile the time from the first byte's departure to the packet's arrival at the far host.
 *
 *     hca0 ══cable══▶ switch4.1 · finds its output · waits · leaves by 2 ══cable══▶ hca1
 *
 * A switch that forwards a packet before its end is complete (cut-through) is followed by the first byte, one that stores it by the last.
 * Records meet by time: one port sends one packet at a time.
 */
import {
  type HopStep,
  hopSteps,
  noOpcode,
  portOfTrack,
  type Timeline,
  type TimelineRecord,
} from '../../machine/timeline/index.ts';
import { farEndOf, isSwitch, type NodePort, type Topology } from '../../machine/topology/index.ts';
import { timeText } from '../text/format.ts';
import { hopWords } from './labels.ts';

/** A step of a packet's way; instants since power-on. */
export interface WayStep {
  readonly where: string;
  readonly step: HopStep | 'cable';
  readonly fromPs: number;
  readonly toPs: number;
  readonly text: string;
}

/** The way of a packet that arrived. */
export interface Way {
  /** The host's port that sent it. */
  readonly source: NodePort;
  readonly steps: readonly WayStep[];
  /** Places in the timeline of its departures from switches. */
  readonly places: readonly number[];
}

/** A packet in a switch. */
interface Passage {
  readonly node: number;
  readonly input: number;
  readonly output: number;
  readonly arrivedPs: number;
  /** In order; the last is its departure. */
  readonly steps: readonly TimelineRecord[];
  readonly sending: TimelineRecord;
  /** Place of its departure in the timeline. */
  readonly place: number;
}

const fromPsOf = ({ atPs }: TimelineRecord): number => Number(atPs);
const toPsOf = ({ atPs, durationPs }: TimelineRecord): number => Number(atPs) + durationPs;
const latencyPsOf = ({ track }: TimelineRecord): number => track.latencyPs ?? 0;
const nodeOf = ({ track }: TimelineRecord): number => Number(track.process.replace(/^\D+/, ''));
const stepOf = ({ values }: TimelineRecord): HopStep => hopSteps[values[0]!]!;

export class Ways {
  readonly #topology: Topology;
  /** Passages by switch and output, in the order of their departures. */
  readonly #byOutput = new Map<string, Passage[]>();
  /** Packets on the cable to a port of a switch, by port and the instant at which the first or last byte arrived. */
  readonly #arrivals = new Map<string, TimelineRecord>();

  /** Waits of the first packets of inputs, by switch and port. */
  readonly #waits = new Map<string, TimelineRecord[]>();

  constructor(timeline: Timeline) {
    this.#topology = timeline.topology;
    const open = new Map<string, TimelineRecord[]>();
    for (let place = 0; place < timeline.count; place++) {
      const record = timeline.record(place);
      if (record.kind === 'hop') this.#addHop(open, record, place);
      else if (record.kind === 'queueWait') this.#addWait(record);
      else if (isOnCable(record) && isSwitch(this.#topology, nodeOf(record))) this.#addArrival(record);
    }
  }

  /** Whether the timeline has packets in switches. */
  get hasSwitches(): boolean {
    return this.#byOutput.size > 0;
  }

  /** The way of a packet, by its record at a host; undefined if no switch forwarded it, or records are missing. */
  of(arrived: TimelineRecord): Way | undefined {
    const legs: { readonly cable: TimelineRecord; readonly passage: Passage | undefined }[] = [];
    let cable = arrived;
    for (;;) {
      const end = { node: nodeOf(cable), port: portOfTrack(cable.track.name) };
      const far = farEndOf(this.#topology, end);
      if (far === undefined) return undefined;
      if (!isSwitch(this.#topology, far.node)) {
        legs.unshift({ cable, passage: undefined });
        return legs.length === 1 ? undefined : this.#wayOf(far, legs);
      }
      const passage = this.#departureAt(far, (fromPsOf(cable) + toPsOf(cable)) / 2);
      const before = passage && this.#arrivalAt(passage);
      if (before === undefined) return undefined;
      legs.unshift({ cable, passage });
      cable = before;
    }
  }

  /** Packets that left by an output within a time, by input. */
  departuresBetween(node: number, output: number, fromPs: number, toPs: number): ReadonlyMap<number, number> {
    const counts = new Map<number, number>();
    for (const { sending, input } of this.#byOutput.get(`${node} ${output}`) ?? [])
      if (fromPsOf(sending) < toPs && toPsOf(sending) > fromPs)
        counts.set(input, (counts.get(input) ?? 0) + 1);
    return counts;
  }

  #addHop(open: Map<string, TimelineRecord[]>, record: TimelineRecord, place: number): void {
    const [, number, input = 0, output = 0] = record.values;
    const node = nodeOf(record);
    const key = `${node} ${number}`;
    const steps = open.get(key) ?? [];
    open.set(key, steps);
    steps.push(record);
    if (stepOf(record) !== 'sending') return;
    open.delete(key);
    const passage = { node, input, output, arrivedPs: fromPsOf(steps[0]!), steps, sending: record, place };
    const byOutput = this.#byOutput.get(`${node} ${output}`) ?? [];
    this.#byOutput.set(`${node} ${output}`, byOutput);
    byOutput.push(passage);
  }

  #addWait(record: TimelineRecord): void {
    const key = `${nodeOf(record)} ${portOfTrack(record.track.group)}`;
    const waits = this.#waits.get(key) ?? [];
    this.#waits.set(key, waits);
    waits.push(record);
  }

  #addArrival(record: TimelineRecord): void {
    const at = `${nodeOf(record)} ${portOfTrack(record.track.name)}`;
    this.#arrivals.set(`${at} ${fromPsOf(record) + latencyPsOf(record)} first`, record);
    this.#arrivals.set(`${at} ${toPsOf(record) + latencyPsOf(record)} last`, record);
  }

  #departureAt({ node, port }: NodePort, atPs: number): Passage | undefined {
    const all = this.#byOutput.get(`${node} ${port}`) ?? [];
    let [low, high] = [0, all.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (toPsOf(all[middle]!.sending) < atPs) low = middle + 1;
      else high = middle;
    }
    const found = all[low];
    return found !== undefined && fromPsOf(found.sending) <= atPs ? found : undefined;
  }

  /** The record of a packet's arrival at a switch. Rounding of a byte's time may move the first byte by a picosecond. */
  #arrivalAt({ node, input, arrivedPs, sending }: Passage): TimelineRecord | undefined {
    const candidates = ([0, -1, 1] as const).flatMap((off) => {
      const at = `${node} ${input} ${arrivedPs + off}`;
      return [this.#arrivals.get(`${at} last`), this.#arrivals.get(`${at} first`)];
    });
    return candidates.find((record) => record !== undefined && isSamePacket(record, sending));
  }

  #wayOf(
    source: NodePort,
    legs: readonly { readonly cable: TimelineRecord; readonly passage: Passage | undefined }[],
  ): Way {
    const steps: WayStep[] = [];
    let from = source;
    let last: Passage | undefined;
    for (const [index, { cable }] of legs.entries()) {
      const next = legs[index + 1]?.passage;
      const to = { node: nodeOf(cable), port: portOfTrack(cable.track.name) };
      steps.push(...this.#cableSteps(from, to, cable, last, next));
      if (next === undefined) break;
      for (const record of next.steps) if (record !== next.sending) steps.push(this.#hopStep(next, record));
      last = next;
      from = { node: next.node, port: next.output };
    }
    return { source, steps, places: legs.flatMap(({ passage }) => passage?.place ?? []) };
  }

  /** A packet's bytes leave and cross a cable; towards a switch that did not await its end, the first byte alone. */
  #cableSteps(
    from: NodePort,
    to: NodePort,
    cable: TimelineRecord,
    last: Passage | undefined,
    next: Passage | undefined,
  ): WayStep[] {
    const latencyPs = latencyPsOf(cable);
    const endPs = toPsOf(cable);
    const arrivedPs = next?.arrivedPs ?? endPs + latencyPs;
    const where = `${this.#nameOf(from)} → ${this.#nameOf(to)}`;
    const isWhole = arrivedPs === endPs + latencyPs;
    const leavesPs = isWhole ? fromPsOf(cable) : arrivedPs - latencyPs;
    const handedPs = last === undefined ? leavesPs : fromPsOf(last.sending);
    // Rounding of a byte's time may move the first byte by a picosecond.
    const isHeld = leavesPs - handedPs > 1;
    const startPs = isHeld ? leavesPs : handedPs;
    const held: WayStep[] = isHeld
      ? [
          {
            where,
            step: 'link',
            fromPs: handedPs,
            toPs: leavesPs,
            text: 'a fault, or flow control, holds it up',
          },
        ]
      : [];
    if (!isWhole) {
      const text = 'the first byte crosses the cable';
      return [...held, { where, step: 'cable', fromPs: startPs, toPs: arrivedPs, text }];
    }
    const sending = { where, step: 'sending', text: 'all its bytes leave' } as const;
    return [
      ...held,
      { ...sending, fromPs: startPs, toPs: endPs },
      { where, step: 'cable', fromPs: endPs, toPs: arrivedPs, text: 'the last byte crosses the cable' },
    ];
  }

  #hopStep({ node, input, output }: Passage, record: TimelineRecord): WayStep {
    const step = stepOf(record);
    const [fromPs, toPs] = [fromPsOf(record), toPsOf(record)];
    const where = `switch${node}, port ${input} to ${output}`;
    return { where, step, fromPs, toPs, text: `${hopWords[step]}${this.#causeText(record)}` };
  }

  /** More about the cause of a wait: the packets that it waited for, or the end that held it back. */
  #causeText(record: TimelineRecord): string {
    const [, , input = 0, output = 0] = record.values;
    const node = nodeOf(record);
    const step = stepOf(record);
    const far = farEndOf(this.#topology, { node, port: output });
    const farName = far === undefined ? 'the far end' : this.#nameOf(far);
    if (step === 'credits') return `: ${farName} has no room`;
    if (step === 'pause') return `: ${farName} has stopped this port`;
    if (step === 'headOfLine') return this.#othersText(node, input, fromPsOf(record), toPsOf(record));
    if (step !== 'output') return '';
    const counts = this.departuresBetween(node, output, fromPsOf(record), toPsOf(record));
    const parts = inOrder(counts).map(
      ([from, count]) => `${count} of ${from === input ? 'its own' : `port ${from}`}`,
    );
    return parts.length === 0 ? '' : `: packets that leave before it are ${parts.join(', ')}`;
  }

  /** The waits of the first packets of an input within a time, by cause. */
  #othersText(node: number, input: number, fromPs: number, toPs: number): string {
    const totals = new Map<HopStep, number>();
    for (const record of this.#waits.get(`${node} ${input}`) ?? []) {
      const sharedPs = Math.min(toPs, toPsOf(record)) - Math.max(fromPs, fromPsOf(record));
      if (sharedPs > 0) totals.set(stepOf(record), (totals.get(stepOf(record)) ?? 0) + sharedPs);
    }
    const parts = [...totals].map(([cause, ps]) => `${timeText(ps)} ${causeWords[cause]}`);
    return parts.length === 0 ? '' : `: these wait ${parts.join(', ')}`;
  }

  #nameOf({ node, port }: NodePort): string {
    return isSwitch(this.#topology, node)
      ? `switch${node}.${port}`
      : `hca${node}${port === 1 ? '' : `.${port}`}`;
  }
}

const inOrder = (counts: ReadonlyMap<number, number>): (readonly [port: number, count: number])[] =>
  [...counts].toSorted(([left], [right]) => left - right);

/** Causes as the end of a sentence. */
const causeWords: Readonly<Record<HopStep, string>> = {
  forwarding: 'to find their output',
  headOfLine: 'for others',
  output: 'for the busy output',
  input: 'for the busy input',
  credits: 'for credits',
  pause: 'in a pause',
  link: 'for the link',
  sending: 'to leave',
  storing: 'for their last byte',
};

/** Whether a packet on a cable may be one in a switch: one ends on the cable when the next one begins. */
const isSamePacket = (
  { kind, values }: TimelineRecord,
  { values: [, , , , ...seen] }: TimelineRecord,
): boolean =>
  kind === 'frame' ? seen[0] === noOpcode : [0, 1, 2].every((index) => values[index] === seen[index]);

const isOnCable = ({ kind }: TimelineRecord): boolean => kind === 'packet' || kind === 'frame';
