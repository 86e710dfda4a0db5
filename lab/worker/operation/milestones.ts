/** The instants of an operation that matter, each with what it means. */
import type { DecodedEvent, Milestone, PictureRecord, PictureTrack } from '../../protocol.ts';
import type { Scenario } from './scenarios.ts';

export interface Milestones {
  readonly milestones: readonly Milestone[];
  readonly cqePs: number | undefined;
  readonly lastBytesPs: number | undefined;
}

/** @param qpn of host 0 */
export function milestonesOf(
  qpn: number,
  { verb }: Scenario,
  records: readonly PictureRecord[],
  tracks: readonly PictureTrack[],
  decoded: readonly DecodedEvent[],
): Milestones {
  const milestones: Milestone[] = [];
  const add = (atPs: number | undefined, text: string): void => {
    if (atPs !== undefined) milestones.push({ atPs, text });
  };
  const all = (kind: string, process: string): PictureRecord[] =>
    records.filter((record) => record.kind === kind && tracks[record.track]!.process === process);
  const valueIn = ({ values }: PictureRecord, name: string): string | number | undefined =>
    values.find(([each]) => each === name)?.[1];
  const isOwn = (record: PictureRecord): boolean => valueIn(record, 'qpn') === `0x${qpn.toString(16)}`;
  const written = (host: string, trafficClass: string): number[] =>
    all('tlp', host)
      .filter((record) => valueIn(record, 'trafficClass') === trafficClass)
      .flatMap(({ inMemoryPs }) => inMemoryPs ?? []);

  add(all('posted', 'host0').find(isOwn)?.fromPs, 'The program has posted the request: its WQE is in memory');
  add(all('doorbell', 'hca0').find(isOwn)?.fromPs, 'The device of host 0 takes the doorbell');
  add(all('blueFlame', 'hca0').find(isOwn)?.fromPs, 'The device of host 0 takes the WQE by BlueFlame');
  const requests = all('packet', 'hca1');
  const readBefore = (name: string): number | undefined =>
    all('dmaRead', 'hca0').findLast(
      ({ track, toPs }) => tracks[track]!.name === `read: ${name}` && toPs <= (requests[0]?.fromPs ?? toPs),
    )?.toPs;
  add(readBefore('wqeRead'), 'The WQE is on the device');
  add(readBefore('payloadRead'), 'The payload is on the device');
  add(requests[0]?.fromPs, 'The first packet begins to leave');
  for (const packet of requests) {
    if (packet.arrivesPs === undefined) add(packet.toPs, `${packet.label}: lost on the cable`);
    else if (/ again/.test(packet.label)) add(packet.fromPs, `${packet.label}: sent again`);
  }
  add(
    requests.flatMap(({ arrivesPs }) => arrivesPs ?? []).at(-1),
    'The last packet of host 0 has arrived at the other device',
  );
  for (const packet of all('packet', 'hca0'))
    if (/NAK/.test(packet.label)) add(packet.arrivesPs, `${packet.label} has arrived at host 0`);
  for (const host of [0, 1]) {
    for (const { atPs, summary } of decoded)
      if (summary.startsWith(`host ${host}: EQE `) && !/ COMP$/.test(summary))
        add(atPs, `Host ${host} has an event: ${summary.replace(/^host \d: /, '')}`);
    for (const { fromPs } of all('interruptServed', `host${host}`))
      add(fromPs, `A core of host ${host} begins to handle an interrupt`);
  }
  const reader = verb === 'read' || verb === 'fetchAdd' || verb === 'compareSwap' ? 0 : 1;
  const lastBytesPs = written(`host${reader}`, 'payloadWrite').at(-1);
  add(lastBytesPs, `The last bytes are in the memory of host ${reader}`);
  add(
    all('packet', 'hca0')
      .flatMap(({ arrivesPs }) => arrivesPs ?? [])
      .at(-1),
    'The last packet of host 1 has arrived at host 0’s device',
  );
  add(written('host1', 'cqe').at(-1), 'The receiver’s CQE is in the memory of host 1');
  const cqePs = written('host0', 'cqe').at(0);
  add(cqePs, 'The CQE is in the memory of host 0');
  add(all('taken', 'host0').find(isOwn)?.fromPs, 'The program has taken the completion');
  return { milestones: milestones.toSorted((left, right) => left.atPs - right.atPs), cqePs, lastBytesPs };
}
