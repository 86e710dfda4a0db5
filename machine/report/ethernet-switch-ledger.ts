/** The statistics of one Ethernet switch, copied as plain data at the end of a run, and their balance. */
import type { EthernetSwitchNode } from '../node/ethernet-switch-node.ts';
import { sumOf, unequal } from './failures.ts';
import { portFramesOf } from './frame-ledger.ts';
import type { WireEndLedger } from './hca-ledger.ts';
import type { SwitchBufferReport } from './schema.ts';
import type { SwitchLedger, SwitchPortLedger } from './switch-ledger.ts';

/** The shared buffer of an Ethernet switch. */
export interface SwitchBufferLedger extends SwitchBufferReport {
  /** Bytes of the frames in its queues, counted one by one; left out of reports. */
  readonly queuedBytes: number;
}

export function ethernetSwitchLedgerOf({ node, lp, device, faultLog }: EthernetSwitchNode): SwitchLedger {
  const ports = device.ports.flatMap((port, index): SwitchPortLedger[] => {
    if (port === undefined) return [];
    const own = device.statisticsOf(index + 1);
    const isQuiet = lp.isDrained && own.waiting === 0;
    return [
      {
        port: index + 1,
        wire: noPackets(isQuiet),
        ethernet: {
          ...portFramesOf(port),
          completed: own.done,
          packets: 0,
          dropped: { ...own.drops },
          held: own.waiting,
        },
        notForwarded: { ...own.drops },
        wrongCrc: {
          dropped: port.received.corruptedFrames,
          accepted: port.relayed.received,
          sent: port.relayed.sent,
        },
        waitingPackets: own.waiting,
        inPipeline: own.inPipeline,
        waitingPacketsMax: own.waitingMax,
        bufferedBytesMax: own.inputBytesMax,
        ...(own.cutFrames === undefined ? {} : { cutThroughFrames: own.cutFrames }),
        output: {
          queuedFrames: own.queued,
          queuedBytesMax: own.queuedBytesMax,
          queueDrops: own.queueDrops,
          watchdogDrops: own.watchdogDrops,
          markedFrames: own.marked,
        },
      },
    ];
  });
  const { buffer, routes, copyCount } = device;
  const { usedBytes, usedBytesMax } = buffer;
  return {
    node,
    nowPs: lp.instantPs,
    ports,
    copies: copyCount,
    faultsFired: faultLog.counts(),
    buffer: {
      usedBytes,
      usedBytesMax,
      queuedBytes: device.countQueuedBytes(),
      floodedFrames: routes.floodedCount,
    },
  };
}

/** The end of a cable that carries frames: it has no packets of InfiniBand. */
const noPackets = (isQuiet: boolean): WireEndLedger => ({
  transmitted: {},
  retransmitted: {},
  transmittedPackets: 0,
  transmittedBytes: 0,
  discardedPackets: 0,
  discarded: {},
  received: {},
  corrupted: {},
  dropped: {},
  flowControlPackets: 0,
  linkBytes: 0,
  busyPs: 0,
  linkPs: 0,
  faultyPackets: 0,
  creditWaitPs: 0,
  serializerWaitPs: 0,
  isQuiet,
});

/**
 * Every frame that came has been dropped for a reason, is in the pipeline, or was admitted; every admitted one, and every copy, has been
 * sent, discarded at an output whose link is down, dropped by a full queue or one that a pause held too long, or waits in one. The buffer holds the bytes of what waits.
 */
export function ethernetSwitchFailures({ node, ports, copies, buffer }: SwitchLedger): string[] {
  const sum = (pick: (port: SwitchPortLedger) => number): number => sumOf(ports.map(pick));
  const came = sum(({ ethernet }) => ethernet?.received['deliveredFrames'] ?? 0);
  const stopped = sum(({ notForwarded, inPipeline = 0 }) => sumOf(Object.values(notForwarded)) + inPipeline);
  const sent = sum(
    ({ ethernet }) =>
      (ethernet?.transmitted['frames'] ?? 0) + (ethernet?.transmitted['discardedFrames'] ?? 0),
  );
  const kept = sum(
    ({ output }) => (output?.queueDrops ?? 0) + (output?.watchdogDrops ?? 0) + (output?.queuedFrames ?? 0),
  );
  const what = `switch ${node}`;
  return [
    ...unequal(`${what}, frames that left, wait or were dropped`, sent + kept + stopped, came + copies),
    ...unequal(`${what}, bytes in its buffer`, buffer?.usedBytes ?? 0, buffer?.queuedBytes ?? 0),
  ];
}
