/**
 * Static rates: a QP sends the data of a flow no faster than the rate of its path, by a capture of the sender's cable
 * (IBTA volume 1, 9.11 and 15.2.5.16). A packet may be made when those before it would have passed a cable of that
 * rate; as many as the buffers of the sender hold may then leave together.
 */
import { cableEndsOf, type SeenFrame } from '../../judges/index.ts';
import type { FabricFlow } from '../fabric-story.ts';
import type { PlayedFabric } from '../played.ts';

/** Picoseconds of a byte at 2.5, 10, 5 and 20 Gb/s with 8b/10b codes, by the code of the rate. */
const bytePsByCode: Readonly<Record<number, number>> = { 2: 4000, 3: 1000, 5: 2000, 6: 500 };
/** Instants are of a packet's last byte: one long packet on the slowest cable, and cycles of the sender. */
const slackPs = 4200 * 4000 + 100_000;
const recordHeaderBytes = 16;
const groupLid = 0xc001;
const groupQpn = 0xff_ffff;

export function judgeRates(played: PlayedFabric): string[] {
  const { story, capture, outcomes, hostCount, error } = played;
  const isJudged = story.flows.some(({ rate }) => rate !== undefined) && error === undefined;
  if (!isJudged || capture === undefined || outcomes.length < hostCount) return [];
  const ends = cableEndsOf(capture);
  return story.flows.flatMap((flow, index) => {
    const { rate, from } = flow;
    if (rate === undefined) return [];
    const { lid, qpn } = receiverOf(played, flow, index);
    const sent = ends[from]!.sent.filter((frame) => isDataFor(frame, lid, qpn));
    const early = earliest(sent, bytePsByCode[rate]!, buffersOf(played));
    return early === undefined
      ? []
      : [`flow ${index} of host ${from} at ${early} ps: faster than rate ${rate}`];
  });
}

/** Packets that wait for the wire after they were made. */
function buffersOf({ report: { config } }: PlayedFabric): number {
  const { transmitBufferPackets, responseBufferPackets, lanePackets } = config.hca;
  return (
    Math.max(transmitBufferPackets, responseBufferPackets) + (config.wire.dataVls === '1' ? 0 : lanePackets)
  );
}

function receiverOf(
  { outcomes }: PlayedFabric,
  { kind, to }: FabricFlow,
  index: number,
): { readonly lid: number; readonly qpn: number } {
  if (kind === 'group') return { lid: groupLid + index, qpn: groupQpn };
  const { lid, ends } = outcomes[to]!;
  return { lid, qpn: ends.find(({ flow }) => flow === index)!.qpn };
}

/** Packets of SENDs and WRITEs, READ responses, and datagrams. */
function isDataFor({ bytes }: SeenFrame, lid: number, qpn: number): boolean {
  const view = new DataView(bytes.buffer, bytes.byteOffset + recordHeaderBytes);
  const base = (view.getUint8(1) & 3) === 3 ? 48 : 8;
  const operation = view.getUint8(base) & 0x1f;
  const isData = operation < 12 || (operation >= 13 && operation <= 16);
  return isData && view.getUint16(2) === lid && (view.getUint32(base + 4) & 0xff_ffff) === qpn;
}

/** The first packet that left too early, even if as many as `buffers` before it had waited. */
function earliest(frames: readonly SeenFrame[], bytePs: number, buffers: number): bigint | undefined {
  let duePs = 0;
  let longestPs = 0;
  for (const { atPs, bytes } of frames) {
    const ownPs = (bytes.length - recordHeaderBytes) * bytePs;
    longestPs = Math.max(longestPs, ownPs);
    if (Number(atPs) + slackPs + buffers * longestPs < duePs) return atPs;
    duePs = Math.max(Number(atPs), duePs) + ownPs;
  }
  return undefined;
}
