/**
 * Compares the output of `explain` for an operation with the records of its time, by rules of this file alone: steps
 * tile the time, each listed event occurred then and there, every TLP of the time is listed, and exactly the packets of
 * this operation are.
 */
import type { Timeline, TimelineRecord } from '../../../machine/timeline/index.ts';
import type { Explanation, OperationFlow } from '../index.ts';

/** IBTA vol 1, table 38: the upper bits of an opcode, and the lower bits of responses. */
const serviceOf = (opcode: number): number => opcode >> 5;
const isAnswer = (opcode: number): boolean => (opcode & 0x1f) >= 13 && (opcode & 0x1f) <= 18;
const reliableServices: ReadonlySet<number> = new Set([0, 5]);
const psnMask = 0xffffff;
const packetAgain = 1;

/** All errors, in words. */
export function explanationFailures(
  { timeline, pathMtuBytes }: { readonly timeline: Timeline; readonly pathMtuBytes: number },
  { records: places }: OperationFlow,
  explanation: Explanation,
): string[] {
  const own = places.map((place) => timeline.record(place));
  return [
    ...stepFailures(explanation),
    ...eventFailures(timeline, explanation),
    ...packetFailures(own, pathMtuBytes, explanation),
  ];
}

function stepFailures({ steps, latencyPs }: Explanation): string[] {
  const failures: string[] = [];
  let endPs = 0;
  for (const { stage, afterPs, durationPs, text, events } of steps) {
    if (afterPs !== endPs) failures.push(`${stage} begins at ${afterPs}, ${endPs} is due`);
    if (durationPs <= 0 || text === '') failures.push(`${stage} of ${durationPs} ps, ${text}`);
    endPs = afterPs + durationPs;
    for (const event of events)
      if (event.afterPs < afterPs || event.afterPs > endPs)
        failures.push(`${stage} to ${endPs} has ${event.text} at ${event.afterPs}`);
  }
  return endPs === latencyPs ? failures : [...failures, `steps of ${endPs} of ${latencyPs} ps`];
}

/** Compares a list of events with the records of the time, by instant, duration and place: neither may have more. */
function eventFailures(timeline: Timeline, { steps, postedPs, latencyPs }: Explanation): string[] {
  const recorded = new Map<string, number>();
  for (const { kind, atPs, durationPs, track } of timeline.records()) {
    const afterPs = Number(atPs) - postedPs;
    if (kind !== 'tlp' || afterPs < 0 || afterPs > latencyPs) continue;
    const key = `${afterPs} ${durationPs} ${track.process} ${track.name}`;
    recorded.set(key, (recorded.get(key) ?? 0) + 1);
  }
  const failures: string[] = [];
  for (const { afterPs, durationPs, where, text } of steps.flatMap(({ events }) => events)) {
    if (!/^(MWr|MRd|Cpl|CplD|CfgRd0|CfgWr0|Msg) /.test(text)) continue;
    const key = `${afterPs} ${durationPs} ${where}`;
    const count = recorded.get(key) ?? 0;
    if (count === 0) failures.push(`${text} at ${key} is in no record`);
    else if (count === 1) recorded.delete(key);
    else recorded.set(key, count - 1);
  }
  return [...failures, ...[...recorded.keys()].map((key) => `a TLP at ${key} is not listed`)];
}

function packetFailures(
  own: readonly TimelineRecord[],
  pathMtuBytes: number,
  { operation, payloadBytes, steps, postedPs, latencyPs }: Explanation,
): string[] {
  const executed = own.find(({ kind }) => kind === 'operation');
  if (executed === undefined) return [];
  const [qpn, , , , , firstPsn, psnCount, destinationQpn] = executed.values;
  const packets = own.filter(({ kind }) => kind === 'packet');
  const failures = packets
    .filter(({ values: [opcode, toQpn, psn] }) => {
      const isOwnQp = toQpn === (isAnswer(opcode!) ? qpn : destinationQpn);
      return !isOwnQp || ((psn! - firstPsn!) & psnMask) >= psnCount!;
    })
    .map(({ values }) => `packet ${values.join(' ')} is none of ${executed.values.join(' ')}`);
  // IBTA vol 1, 9.7.2: a message has at least one packet; a READ and an atomic are requested by one packet.
  const due = /READ|CMP_SWAP|FETCH_ADD/.test(operation)
    ? 1
    : Math.max(1, Math.ceil(payloadBytes / pathMtuBytes));
  const requests = packets.filter(({ values: [opcode] }) => !isAnswer(opcode!));
  const firsts = requests.filter(({ values }) => (values[4]! & packetAgain) === 0);
  if (firsts.length !== due) failures.push(`${firsts.length} packets of ${due}`);
  const isReliable = requests.every(({ values: [opcode] }) => reliableServices.has(serviceOf(opcode!)));
  if (!isReliable && requests.length !== due) failures.push(`${requests.length} packets, unreliable`);
  // The listed packets are those that belong to the operation and fall into its time.
  const within = packets.filter(({ atPs }) => Number(atPs) - postedPs <= latencyPs).length;
  const listed = steps
    .flatMap(({ events }) => events)
    .filter(({ text }) => /^(RC|UC|UD|XRC)_/.test(text)).length;
  return listed === within ? failures : [...failures, `${listed} packets listed, ${within} are its own`];
}
