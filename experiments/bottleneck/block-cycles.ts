/** Cycles of a message in a block, by the parameter that causes them. An advice names the parameter with the most cycles first. */
import { lengthsOf } from '../workloads/index.ts';
import { isRequest, isTarget, type Measured, overPackets, type Turn } from './measured.ts';

type Cycles = Readonly<Record<string, number>>;

const lineBytes = 64;
/** Control, remote address and one data segment, of 16 bytes each. */
const headBytes = 32;
const segmentBytes = 16;

/** A packet passes the data path while the receiver processes its headers: the longer of both counts. */
function ofReceiver(measured: Measured, node: number): Cycles {
  const { config, args } = measured;
  const { receivePacketCycles, receiveHeadCycles, receiveBytesPerCycle } = config.hca;
  if (args.verb === 'atomic' || !isTarget(measured, node))
    return { 'hca.receivePacketCycles': receivePacketCycles };
  const moves = overPackets(measured, (bytes) => Math.ceil(bytes / receiveBytesPerCycle));
  const packets = overPackets(measured, () => 1);
  const passes = moves + packets * receiveHeadCycles;
  return passes > packets * receivePacketCycles
    ? { 'hca.receiveBytesPerCycle': moves, 'hca.receiveHeadCycles': packets * receiveHeadCycles }
    : { 'hca.receivePacketCycles': packets * receivePacketCycles };
}

/** The first packet of a WQE is built while the rest of its lines passes. */
function ofRequester({ args, ...measured }: Measured): Cycles {
  const { hca } = measured.config;
  const { wqeDecodeCycles, wqeLineCycles, requestPacketCycles, gatherCycles, gatherBytesPerCycle } = hca;
  const isInline = (bytes: number): boolean => bytes <= args.inlineBytes;
  const lines = lengthsOf(args).reduce((sum, { bytes, share }) => {
    const wqeBytes = headBytes + (isRequest(args) && isInline(bytes) ? bytes : segmentBytes);
    return sum + share * Math.ceil(wqeBytes / lineBytes);
  }, 0);
  const linesCycles = lines * wqeLineCycles - requestPacketCycles;
  const takesUp: Cycles =
    linesCycles > wqeDecodeCycles
      ? { 'hca.wqeLineCycles': linesCycles }
      : { 'hca.wqeDecodeCycles': wqeDecodeCycles };
  if (!isRequest(args))
    return {
      ...takesUp,
      'hca.requestPacketCycles': requestPacketCycles,
      'hca.readRequestCycles': args.verb === 'read' ? hca.readRequestCycles : 0,
    };
  const gathered = (of: (bytes: number) => number): number =>
    overPackets({ ...measured, args }, (bytes) => (isInline(args.sizeBytes) || bytes === 0 ? 0 : of(bytes)));
  return {
    ...takesUp,
    'hca.requestPacketCycles': overPackets({ ...measured, args }, () => requestPacketCycles),
    'hca.gatherCycles': gathered(() => gatherCycles),
    'hca.gatherBytesPerCycle': gathered((bytes) =>
      gatherBytesPerCycle === 0 ? 0 : Math.ceil(bytes / gatherBytesPerCycle),
    ),
  };
}

/** A separate unit builds packets of READ responses: the longer of both counts. */
function ofResponder(measured: Measured): Cycles {
  const { config, args } = measured;
  const { responseCycles, readResponseCycles, readResponseBytesPerCycle: perCycle } = config.hca;
  if (args.verb !== 'read') return { 'hca.responseCycles': responseCycles };
  const ownCycles = overPackets(measured, () => responseCycles);
  const unitCycles = overPackets(measured, () => readResponseCycles);
  const moves = overPackets(measured, (bytes) => (perCycle === 0 ? 0 : Math.ceil(bytes / perCycle)));
  return unitCycles + moves > ownCycles
    ? { 'hca.readResponseCycles': unitCycles, 'hca.readResponseBytesPerCycle': moves }
    : { 'hca.responseCycles': ownCycles };
}

const ofBlock: Readonly<Record<string, (measured: Measured, node: number) => Cycles>> = {
  receiver: ofReceiver,
  requester: ofRequester,
  responseEngine: ofResponder,
};

/**
 * Sorts the advised changes of a block: first the path parameters that cost cycles, most expensive first; then all
 * changes outside the path. Omits path parameters that cost no cycles.
 */
export function byCycles(measured: Measured, node: number, block: string, turn: readonly Turn[]): Turn[] {
  const cycles = ofBlock[block]?.(measured, node);
  if (cycles === undefined) return [...turn];
  const isOfPath = ({ what }: Turn): boolean => what.startsWith('hca.') && what !== 'hca.coreClockMHz';
  const cyclesOf = ({ what }: Turn): number => cycles[what] ?? 0;
  const counted = turn.filter((each) => isOfPath(each) && cyclesOf(each) > 0);
  return [
    ...counted.toSorted((left, right) => cyclesOf(right) - cyclesOf(left)),
    ...turn.filter((each) => !isOfPath(each)),
  ];
}
