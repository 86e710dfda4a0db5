/**
 * iWARP: cycles of a message in the TCP engine and in the blocks around it, by the parameter that causes them, and the windows of TCP. A
 * message is a number of DDP segments, each with a CRC and, if the peer wants them, markers; each travels in a TCP segment of its own.
 */
import type { NodeReport } from '../../machine/index.ts';
import {
  hostText,
  isTarget,
  less,
  type Measured,
  more,
  overPackets,
  type Resource,
  type Turn,
} from './measured.ts';

/** RFC 5681, 4.2: at least every second segment is acknowledged. */
const segmentsPerAck = 2;
/** Bytes of the stream from one marker of MPA to the next (RFC 5044, 4.3). */
const markerDistanceBytes = 512;
/** Headers of Ethernet, IPv4 and TCP, and the framing of a tagged DDP segment. */
const frameHeaderBytes = 14 + 20 + 20 + 2 + 14 + 4;

/** Cycles by parameter, and whether more of the parameter takes fewer. */
interface Cost {
  readonly what: string;
  readonly towards: Turn['towards'];
  readonly cycles: number;
}

/** Things that a block does at the same time: only the longest of them takes time. */
type AtOnce = readonly Cost[];

const cost = (what: string, towards: Turn['towards'], cycles: number): Cost => ({ what, towards, cycles });

/** Steps of a block, one after another; undefined for a block that does not differ from other transports. */
function stepsOf(measured: Measured, block: string, node: number): readonly AtOnce[] | undefined {
  if (block === 'tcpEngine') return engineSteps(measured, node);
  if (block === 'tcpTransmitter') return [frameSteps(measured)];
  if (block === 'transmitter') return pathSteps(measured, 'transmit');
  return block === 'receiver' ? pathSteps(measured, 'receive') : undefined;
}

function engineSteps(measured: Measured, node: number): readonly AtOnce[] {
  const { receiveCycles, sendCycles, bytesPerCycle } = measured.config.hca.iwarp;
  const segments = overPackets(measured, () => 1);
  const passed = overPackets(measured, (bytes) => Math.ceil((bytes + frameHeaderBytes) / bytesPerCycle));
  const acks = segments / segmentsPerAck;
  const [received, sent] = isTarget(measured, node) ? [segments, acks] : [acks, segments];
  return [
    [
      cost('hca.iwarp.receiveCycles', 'less', received * receiveCycles),
      cost('hca.iwarp.bytesPerCycle', 'more', isTarget(measured, node) ? passed : 0),
    ],
    [cost('hca.iwarp.sendCycles', 'less', sent * sendCycles)],
  ];
}

function frameSteps(measured: Measured): AtOnce {
  const { transmitBytesPerCycle, transmitPacketCycles } = measured.config.hca;
  const frames = overPackets(measured, (bytes) =>
    Math.ceil((bytes + frameHeaderBytes) / transmitBytesPerCycle),
  );
  return [
    cost('hca.transmitBytesPerCycle', 'more', frames),
    cost(
      'hca.transmitPacketCycles',
      'less',
      overPackets(measured, () => transmitPacketCycles),
    ),
  ];
}

/** Payload is copied while its CRC is computed; markers are written or removed one by one. A header takes the packet's cycles meanwhile. */
function pathSteps(measured: Measured, way: 'transmit' | 'receive'): readonly AtOnce[] {
  const { hca, driver } = measured.config;
  const { crcBytesPerCycle, markerCycles } = hca.iwarp;
  const widthBytes = hca[`${way}BytesPerCycle`];
  const segments = overPackets(measured, () => 1);
  const heads = way === 'receive' ? segments * hca.receiveHeadCycles : 0;
  const copied = overPackets(measured, (bytes) => Math.ceil(bytes / widthBytes));
  const checked = driver.mpaCrc ? overPackets(measured, (bytes) => Math.ceil(bytes / crcBytesPerCycle)) : 0;
  const markers = driver.mpaMarkers
    ? overPackets(measured, (bytes) => Math.floor(bytes / markerDistanceBytes))
    : 0;
  const path = Math.max(copied + heads, checked) + markers * markerCycles;
  const packets = segments * hca[`${way}PacketCycles`];
  if (packets >= path) return [[cost(`hca.${way}PacketCycles`, 'less', packets)]];
  return [
    [
      cost(`hca.${way}BytesPerCycle`, 'more', copied),
      cost('hca.iwarp.crcBytesPerCycle', 'more', checked - heads),
    ],
    [cost('hca.iwarp.markerCycles', 'less', markers * markerCycles)],
    ...(way === 'receive' ? [[cost('hca.receiveHeadCycles', 'less', heads)]] : []),
  ];
}

/** Ratio from which on a thing that a block does at the same time leaves little to gain. */
const nearlyAsLong = 0.9;

/** The changes that make a block faster, the most cycles first; undefined where iWARP changes nothing. */
export function iwarpTurns(measured: Measured, node: number, block: string): Turn[] | undefined {
  const steps = stepsOf(measured, block, node);
  if (steps === undefined) return undefined;
  return [
    ...steps
      .flatMap((step) => stepTurn(step))
      .toSorted((left, right) => right.cycles - left.cycles)
      .map(({ turn }) => turn),
    ...more('hca.coreClockMHz'),
  ];
}

function stepTurn(step: AtOnce): { readonly cycles: number; readonly turn: Turn }[] {
  const [first, second] = step.toSorted((left, right) => right.cycles - left.cycles);
  if (first === undefined || first.cycles <= 0) return [];
  const { what, towards, cycles } = first;
  if (second === undefined || second.cycles < nearlyAsLong * cycles)
    return [{ cycles, turn: { what, towards } }];
  const because = `${what} and ${second.what} take as long, at the same time.`;
  const along = [{ what: second.what, towards: second.towards, because }];
  return [{ cycles, turn: { what, towards, along } }];
}

const windowWords: Readonly<Record<string, string>> = {
  sendBuffer: 'send buffers of TCP',
  congestionWindow: 'congestion windows of TCP',
  receiveWindow: 'receive windows of TCP at the peer',
  recovery: 'retransmissions of TCP',
};

/** Causes with less than this part of the longest one are not named. */
const partNamed = 0.25;

/** TCP has something to send, or room is wanted in its memory, and what is in flight has not been acknowledged. */
export const tcpWindows = (measured: Measured): Resource[] =>
  measured.figures.nodes.flatMap((report, node) => tcpWindow(measured, report, node));

function tcpWindow(measured: Measured, { hca }: NodeReport, node: number): Resource[] {
  const { args, durationPs } = measured;
  const waits = Object.entries(hca.iwarp?.waitedPs ?? {})
    .filter(([cause]) => cause in windowWords)
    .toSorted(([, left], [, right]) => right - left);
  const [longest] = waits;
  if (longest === undefined) return [];
  const [cause, ps] = longest;
  const turn = waits
    .filter(([, each]) => each >= partNamed * ps)
    .flatMap(([each]) => windowTurns(measured, each));
  return [
    {
      name: `${windowWords[cause]} of ${hostText(measured, node)}`,
      kind: 'window',
      share: Math.min(1, waits.reduce((sum, [, each]) => sum + each, 0) / durationPs / args.qpCount),
      turn: [...once(turn), ...less('ethernet.cableMetres', 'ethernet.portLatencyNs')],
    },
  ];
}

/** Two causes may name one parameter. */
const once = (turn: readonly Turn[]): Turn[] =>
  turn.filter(({ what }, index) => turn.findIndex((other) => other.what === what) === index);

function windowTurns({ config, args }: Measured, cause: string): Turn[] {
  if (cause === 'congestionWindow') return more('--warmup', 'hca.iwarp.initialWindowSegments', '--qps');
  if (cause !== 'sendBuffer') return cause === 'receiveWindow' ? more('driver.tcpWindowBytes', '--qps') : [];
  const { connectionBytes, retransmissionBytes } = config.hca.iwarp;
  const wantedBytes = 2 * connectionBytes * args.qpCount;
  const what = 'hca.iwarp.connectionBytes';
  if (wantedBytes <= retransmissionBytes) return more(what, '--qps');
  const because = `Twice the send buffers have ${wantedBytes} bytes, and all connections share ${retransmissionBytes}.`;
  const along = [{ what: 'hca.iwarp.retransmissionBytes', towards: 'more', because } as const];
  return [{ what, towards: 'more', along }, ...more('hca.iwarp.retransmissionBytes')];
}
