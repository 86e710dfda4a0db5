/** The frames of an HCA with Ethernet ports, copied as plain data at the end of a run; and their balance over a cable. */
import type { Hca } from '../../hw/hca/index.ts';
import { type EthernetPort, ethernetByteTime } from '../../wire/index.ts';
import { behind, sumOf } from './failures.ts';
import { type PacketLedger, packetsOf } from './packet-ledger.ts';

export interface FrameLedger {
  /** The two halves of the port: wire/ethernet-counters.ts. */
  readonly transmitted: Readonly<Record<string, number>>;
  readonly received: Readonly<Record<string, number>>;
  /** Pauses that flow control has sent, received and obeyed: see there too. */
  readonly flowControl: Readonly<Record<string, number>>;
  /**
   * Frames that the port has passed on: written to a ring's buffer, delivered as RoCE packets to their receiver, and
   * dropped, by reason.
   */
  readonly completed: number;
  readonly packets: number;
  readonly dropped: Readonly<Record<string, number>>;
  /** Frames that wait for transmission. */
  readonly held: number;
  readonly busyPs: number;
  /** Line time of its frames, with preambles and gaps; left out of reports. */
  readonly linkPs?: number;
  /** Frames that a fault still delays, with their bytes; left out of reports. */
  readonly heldBack?: { readonly frames: number; readonly bytes: number };
  /** The RoCE packets among the frames; left out without RoCE. */
  readonly roce?: RocePacketLedger;
}

/** RoCE packets by opcode; bytes are those of their frames, from the destination to the FCS. */
export interface RocePacketLedger {
  /** First transmissions; packets whose PSN had been sent before; and packets never sent because the link was down. */
  readonly transmitted: Readonly<Record<string, PacketLedger>>;
  readonly retransmitted: Readonly<Record<string, PacketLedger>>;
  readonly discarded: Readonly<Record<string, PacketLedger>>;
  readonly received: Readonly<Record<string, PacketLedger>>;
}

/** Undefined for an HCA with InfiniBand ports. */
export function frameLedgerOf({
  ethernetPort: port,
  control,
  dataPath,
  ibta,
  iwarp,
}: Hca): FrameLedger | undefined {
  const side = control.ports[0]!.ethernet;
  if (port === undefined || side === undefined) return undefined;
  const { frameReceiver } = dataPath.blocks;
  const roceLink = ibta?.blocks.roceLink;
  return {
    ...portFramesOf(port),
    completed: frameReceiver.completedCount,
    packets: (roceLink?.receivedCount ?? 0) + (iwarp?.blocks.tcpEngine.arrivedCount ?? 0),
    dropped: { ...side.steering.drops },
    held: frameReceiver.heldCount,
    ...(side.roce === undefined || roceLink === undefined ? {} : { roce: rocePacketsOf(roceLink) }),
  };
}

/** Counters of a port of the wire, of an adapter or of a switch. */
export const portFramesOf = (
  port: EthernetPort,
): Pick<FrameLedger, 'transmitted' | 'received' | 'flowControl' | 'busyPs' | 'linkPs' | 'heldBack'> => ({
  transmitted: transmittedOf(port),
  received: {
    ...port.received,
    ...(port.relayed.received > 0 ? { fcsErrorsDelivered: port.relayed.received } : {}),
  },
  flowControl: { ...port.flowControl.totals(), ...port.flowControl.priorities.totals() },
  busyPs: Math.floor(port.busyPs),
  linkPs: linkPsOf(port),
  heldBack: port.heldBack,
});

const rocePacketsOf = ({
  sent,
  received,
}: NonNullable<Hca['ibta']>['blocks']['roceLink']): RocePacketLedger => ({
  transmitted: packetsOf(sent.first),
  retransmitted: packetsOf(sent.retransmitted),
  discarded: packetsOf(sent.discarded),
  received: packetsOf(received),
});

function linkPsOf({ config, transmitted, rearranged, flowControl, unsent }: EthernetPort): number {
  const { numeratorPs, denominator } = ethernetByteTime(config);
  const { sentFrames, sentBytes } = flowControl.counters;
  const frames = transmitted.frames + rearranged.copiedFrames + sentFrames - unsent.frames;
  const bytes = transmitted.bytes + rearranged.copiedBytes + sentBytes - unsent.bytes;
  const linkBytes = bytes + frames * (config.preambleBytes + config.interFrameGapBytes);
  return (linkBytes * numeratorPs) / denominator;
}

/** Frames that a port has sent, and changes of their order by faults, if any. */
export function transmittedOf({
  transmitted,
  rearranged,
  relayed,
}: EthernetPort): FrameLedger['transmitted'] {
  const isRearranged = sumOf(Object.values(rearranged)) > 0;
  return {
    ...transmitted,
    ...(isRearranged ? rearranged : {}),
    ...(relayed.sent > 0 ? { fcsErrorsSent: relayed.sent } : {}),
  };
}

/** Frames that one end lost on the cable, did not send or did not pass on, and frames that faults duplicated or delayed there. */
export function framesGone({ transmitted, received, dropped }: FrameLedger): {
  readonly missing: number;
  readonly copied: number;
  readonly heldBack: number;
} {
  const { lostFrames = 0, discardedFrames = 0, copiedFrames = 0, heldBackFrames = 0 } = transmitted;
  const arrived = ['corruptedFrames', 'fifoDrops', 'linkDownDrops'].map((name) => received[name] ?? 0);
  const missing = lostFrames + discardedFrames + sumOf(arrived) + sumOf(Object.values(dropped));
  return { missing, copied: copiedFrames, heldBack: heldBackFrames };
}

/** One end of a cable in its balance. */
export interface CableEnd {
  readonly node: number;
  readonly ethernet?: FrameLedger | undefined;
  readonly wire: { readonly isQuiet: boolean };
}

/**
 * Each sent frame (PAUSE frames too) has arrived, been dropped at the far port, or been lost. Each frame that the far
 * port has passed on is in a buffer, is a packet, was dropped, or waits.
 */
export function frameCableFailures(sender: CableEnd, receiver: CableEnd): string[] {
  if (sender.ethernet === undefined || receiver.ethernet === undefined) return [];
  const { transmitted } = sender.ethernet;
  const { received, completed, packets, dropped, held } = receiver.ethernet;
  const { sentFrames = 0, sentBytes = 0 } = sender.ethernet.flowControl;
  const { receivedFrames = 0, receivedBytes = 0 } = receiver.ethernet.flowControl;
  const isQuiet = sender.wire.isQuiet && receiver.wire.isQuiet;
  const what = `cable ${sender.node} to ${receiver.node}`;
  const arrived = (...names: string[]): number => sumOf(names.map((name) => received[name] ?? 0));
  const { frames = 0, lostFrames = 0, bytes = 0, lostBytes = 0 } = transmitted;
  const { copiedFrames = 0, copiedBytes = 0 } = transmitted;
  const { heldBack = { frames: 0, bytes: 0 } } = sender.ethernet;
  const farFrames = arrived('deliveredFrames', 'corruptedFrames', 'fifoDrops', 'linkDownDrops');
  const farBytes = arrived('deliveredBytes', 'corruptedBytes', 'droppedBytes');
  const handedOn = completed + packets + sumOf(Object.values(dropped)) + held;
  return [
    ...busyFailures(what, sender.ethernet, frames + sentFrames + copiedFrames),
    ...packetFailures(what, sender.ethernet, receiver.ethernet, isQuiet),
    ...behind(
      `${what}, frames`,
      farFrames + receivedFrames + lostFrames,
      frames + sentFrames + copiedFrames - heldBack.frames,
      isQuiet,
    ),
    ...behind(
      `${what}, bytes of frames`,
      farBytes + receivedBytes + lostBytes,
      bytes + sentBytes + copiedBytes - heldBack.bytes,
      isQuiet,
    ),
    ...behind(`${what}, frames in buffers or dropped`, handedOn, received['deliveredFrames'] ?? 0, isQuiet),
  ];
}

/** The cable's busy time equals the time of its frames, minus at most a picosecond for each time that it was idle. */
function busyFailures(what: string, { busyPs, linkPs = busyPs }: FrameLedger, frames: number): string[] {
  const isRight = busyPs <= linkPs + 1 && busyPs >= linkPs - frames - 1;
  return isRight ? [] : [`${what}, busy: ${busyPs} ps where its frames take ${linkPs}`];
}

/** Each packet on the cable is in a frame; if none is lost, delayed or dropped, all arrive as they were sent. */
function packetFailures(
  what: string,
  { roce: near, transmitted, heldBack }: FrameLedger,
  { roce: far, received, dropped }: FrameLedger,
  isQuiet: boolean,
): string[] {
  if (near === undefined || far === undefined) return [];
  const packetsIn = (...ledgers: Readonly<Record<string, PacketLedger>>[]): number =>
    sumOf(ledgers.flatMap((ledger) => Object.values(ledger).map(({ packets }) => packets)));
  const sent = packetsIn(near.transmitted, near.retransmitted);
  const { frames = 0, lostFrames = 0, copiedFrames = 0 } = transmitted;
  const missing =
    lostFrames +
    sumOf(['corruptedFrames', 'fifoDrops', 'linkDownDrops'].map((name) => received[name] ?? 0)) +
    sumOf(Object.values(dropped));
  const names = new Set([near.transmitted, near.retransmitted, far.received].flatMap(Object.keys));
  const isLossless = missing + copiedFrames + (heldBack?.frames ?? 0) === 0;
  return [
    ...(sent > frames ? [`${what}, packets of RoCE: ${sent} of ${frames} frames`] : []),
    ...[...names].flatMap((name) =>
      isLossless
        ? behind(
            `${what}, ${name}`,
            far.received[name]?.packets ?? 0,
            (near.transmitted[name]?.packets ?? 0) + (near.retransmitted[name]?.packets ?? 0),
            isQuiet,
          )
        : [],
    ),
  ];
}
