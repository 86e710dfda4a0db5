/** The parts of a report that a NIC fills, from its statistics and its host's. */
import { blocksOf, nonZero } from './block-rows.ts';
import type { HostLedger } from './host-ledger.ts';
import type { NicLedger } from './nic-ledger.ts';
import type { NicReport, NodeReport, WireReport } from './schema.ts';

export function nicOf(host: HostLedger, nic: NicLedger): NicReport {
  const { kernel, programmed, systemDma } = host.net!;
  return {
    blocks: blocksOf(nic),
    device: nonZero(nic.counters),
    transmitted: nonZero(nic.transmitted),
    received: nonZero(nic.received),
    kernel: nonZero(kernel),
    programmed: nonZero(programmed),
    systemDma,
  };
}

/** Empty figures of the absent HCA. */
export const nicDeviceOf = (): NodeReport['hca'] => ({
  blocks: {},
  caches: {},
  commands: {},
  doorbells: {},
  loopback: { transmitted: {}, retransmitted: {}, received: {}, dropped: 0, held: 0 },
  transport: {},
  violations: {},
});

/** An adapter's counters of its end of an Ethernet cable. */
type FrameEnd = Pick<NicLedger, 'node' | 'transmitted' | 'received' | 'busyPs'> & {
  /** Flow control counters of an HCA: wire/ethernet-counters.ts. */
  readonly flowControl?: Readonly<Record<string, number>>;
};

/** Bytes of the line before and after each frame: parameters of `ethernet`. */
export interface BetweenFrames {
  readonly preambleBytes: number;
  readonly interFrameGapBytes: number;
}

/** One direction of an Ethernet cable. */
export function ethernetOf(
  sender: FrameEnd,
  receiver: FrameEnd,
  { preambleBytes, interFrameGapBytes }: BetweenFrames,
): WireReport {
  const { lostFrames = 0, copiedFrames = 0, copiedBytes = 0, heldBackFrames = 0 } = sender.transmitted;
  const { discardedFrames = 0 } = sender.transmitted;
  const frames = (sender.transmitted['frames'] ?? 0) + copiedFrames;
  const bytes = (sender.transmitted['bytes'] ?? 0) + copiedBytes;
  const { sentFrames = 0, sentBytes = 0, pauseWaitPs = 0, priorityWaitPs = 0 } = sender.flowControl ?? {};
  const { corruptedFrames = 0, fifoDrops = 0, linkDownDrops = 0, fcsErrorsDelivered = 0 } = receiver.received;
  return {
    from: sender.node,
    to: receiver.node,
    opcodes: { FRAME: { packets: frames, bytes, payloadBytes: bytes - frames * frameOverheadBytes } },
    retransmitted: {},
    corrupted: corruptedFrames,
    ...(fcsErrorsDelivered === 0 ? {} : { relayedDamage: fcsErrorsDelivered }),
    dropped: fifoDrops + linkDownDrops,
    ...(lostFrames === 0 ? {} : { lost: lostFrames }),
    ...(copiedFrames + heldBackFrames === 0 ? {} : { duplicated: copiedFrames, reordered: heldBackFrames }),
    discarded: discardedFrames,
    packets: frames,
    bytes,
    flowControlPackets: sentFrames,
    linkBytes: bytes + sentBytes + (frames + sentFrames) * (preambleBytes + interFrameGapBytes),
    busyPs: sender.busyPs,
    creditWaitPs: 0,
    serializerWaitPs: 0,
    ...(sender.flowControl === undefined ? {} : { pauseWaitPs: pauseWaitPs + priorityWaitPs }),
  };
}

/** Header and frame check sequence. */
export const frameOverheadBytes = 18;
