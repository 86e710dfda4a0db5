/**
 * The parts of an operation's time on a fabric: the way of its last request to the far device, that device, and the way of the answer that
 * completes the operation. They follow one another without a gap.
 */
import { packetRetransmitted, type Timeline, type TimelineRecord } from '../../machine/timeline/index.ts';
import { opcodeRow } from '../../wire/index.ts';
import type { OperationFlow } from './flows.ts';
import { type Way, Ways } from './ways.ts';

/** Instants since power-on. */
export interface FabricPart {
  readonly where: string;
  readonly fromPs: number;
  readonly toPs: number;
  readonly text: string;
}

interface Travelled {
  readonly way: Way;
  readonly record: TimelineRecord;
  readonly host: string;
  readonly fromPs: number;
  readonly toPs: number;
}

/** Empty if the operation's packets crossed no switch. */
export function partsOnFabric(timeline: Timeline, flow: OperationFlow): readonly FabricPart[] {
  const ways = new Ways(timeline);
  if (!ways.hasSwitches) return [];
  const own = flow.records.map((place) => timeline.record(place)).filter(({ kind }) => kind === 'packet');
  const answer = lastOf(
    ways,
    own.filter((record) => !isRequest(record)),
  );
  const request = lastOf(ways, own.filter(isRequest), answer?.fromPs);
  if (request === undefined) return [];
  const there = [idle(`hca${flow.node}`, departureText(request), -Infinity, request.fromPs)];
  if (answer === undefined)
    return [
      ...there,
      ...request.way.steps,
      idle(
        request.host,
        'carries it out, and answers it together with later requests',
        request.toPs,
        Infinity,
      ),
    ];
  return [
    ...there,
    ...request.way.steps,
    ...partsOfFarDevice(timeline, request, answer),
    ...answer.way.steps,
    idle(answer.host, 'the answer is matched to the request', answer.toPs, Infinity),
  ];
}

/** The far device's time, and the answer's wait for its cable, if the answer is recorded. */
function partsOfFarDevice(timeline: Timeline, request: Travelled, answer: Travelled): FabricPart[] {
  const { host, toPs: sincePs } = request;
  const formedPs = formedBefore(timeline, host, answer);
  if (formedPs === undefined)
    return [
      idle(host, 'carries it out, and sends the answer when its cable is free', sincePs, answer.fromPs),
    ];
  const waitsPs = Math.min(answer.fromPs, Math.max(sincePs, formedPs));
  return [
    idle(host, 'carries it out, and forms the answer', sincePs, waitsPs),
    idle(host, 'the answer waits for its cable', waitsPs, answer.fromPs),
  ];
}

/** When the answer that left at an instant was formed: the last one with its QP and PSN. */
function formedBefore(timeline: Timeline, host: string, { record, fromPs }: Travelled): number | undefined {
  const [, destinationQpn, psn] = record.values;
  let formedPs: number | undefined;
  for (const { kind, track, values, atPs } of timeline.records())
    if (kind === 'answerFormed' && track.process === host && Number(atPs) <= fromPs)
      if (values[0] === destinationQpn && values[1] === psn) formedPs = Number(atPs);
  return formedPs;
}

/** Until the packet leaves that arrives in the end. */
const departureText = ({ record }: Travelled): string =>
  (record.values[4]! & packetRetransmitted) === 0
    ? 'the packet waits for its cable'
    : 'an earlier copy of the packet was lost or refused (NAK, time-out): until this one leaves';

const idle = (where: string, text: string, fromPs: number, toPs: number): FabricPart => ({
  where,
  text,
  fromPs,
  toPs,
});

const isRequest = ({ values }: TimelineRecord): boolean => opcodeRow(values[0]!)?.isRequest ?? false;

/** The packet that arrived last, at the latest by an instant, with its way. */
function lastOf(ways: Ways, packets: readonly TimelineRecord[], untilPs = Infinity): Travelled | undefined {
  for (const record of packets.toReversed()) {
    const way = ways.of(record);
    if (way === undefined) continue;
    const [fromPs, toPs] = [way.steps[0]!.fromPs, way.steps.at(-1)!.toPs];
    if (toPs <= untilPs) return { way, record, host: record.track.process, fromPs, toPs };
  }
  return undefined;
}

/** Parts cut to a time. Nothing is left out: they follow one another from before it until after it. */
export const cutTo = (parts: readonly FabricPart[], fromPs: number, toPs: number): readonly FabricPart[] =>
  parts.map((part) => ({
    ...part,
    fromPs: Math.min(toPs, Math.max(fromPs, part.fromPs)),
    toPs: Math.min(toPs, Math.max(fromPs, part.toPs)),
  }));
