/** The statistics of one end of a PCIe link, copied: total transmissions, and receptions by traffic class. */
import { type DmaWriteEngine, TrafficClass, trafficClassNames } from '../../hw/dma/index.ts';
import { type PcieLinkPort, STALL_REASONS } from '../../hw/pcie/index.ts';

/** TLPs, and bytes on the link: header, payload and framing. */
export interface TlpCount {
  readonly tlps: number;
  readonly bytes: number;
  readonly payloadBytes: number;
}

export interface LinkEndLedger {
  /** Counted by the transmitter as it puts TLPs on the lanes. */
  readonly transmitted: TlpCount & {
    readonly acks: number;
    readonly creditUpdates: number;
    readonly paddingBytes: number;
    readonly linkBytes: number;
    readonly busyPs: number;
    /** Picoseconds that the oldest TLP of a flow waited, by flow and reason. */
    readonly waitedPs: Readonly<Record<string, Readonly<Record<string, number>>>>;
  };
  /** Counted by the receiver as TLPs arrive, by traffic class. */
  readonly received: Readonly<Record<string, TlpCount>>;
  readonly creditOverflows: number;
  /** Whether this end has nothing left to send, nothing more is known to arrive at it, and everything that has arrived has taken effect. */
  readonly isQuiet: boolean;
}

const flowNames = ['posted', 'nonPosted', 'completion'] as const;

/** @param isDrained whether no record waits to be delivered to this logical process */
export function linkEndLedgerOf(port: PcieLinkPort, nowPs: number, isDrained: boolean): LinkEndLedger {
  port.closeAccounts(nowPs);
  const { transmitter, receiver } = port;
  const received = trafficClassNames.map((name, index) => [
    name,
    {
      tlps: receiver.received.classes[index]!.tlps,
      bytes: receiver.received.classes[index]!.linkBytes,
      payloadBytes: receiver.received.classes[index]!.payloadBytes,
    },
  ]);
  const waitedPs = flowNames.map((flow, index) => [
    flow,
    Object.fromEntries(
      STALL_REASONS.map((reason, at) => [reason, transmitter.stallPs[index * STALL_REASONS.length + at]!]),
    ),
  ]);
  return {
    transmitted: {
      tlps: sumOf(transmitter.tlpCount),
      bytes: sumOf(transmitter.tlpLinkBytes),
      payloadBytes: sumOf(transmitter.payloadBytes),
      acks: transmitter.lanes.ackCount,
      creditUpdates: transmitter.lanes.updateFcCount,
      paddingBytes: transmitter.lanes.paddingBytes,
      linkBytes: transmitter.linkBytes,
      busyPs: transmitter.busyPs,
      waitedPs: Object.fromEntries(waitedPs) as LinkEndLedger['transmitted']['waitedPs'],
    },
    received: Object.fromEntries(received) as LinkEndLedger['received'],
    creditOverflows: receiver.overflowCount,
    // Delivered records that have not taken effect keep their slot in the channel.
    isQuiet: transmitter.waitingCount === 0 && isDrained && port.reader.takenBytes === 0,
  };
}

const sumOf = (values: Float64Array): number => values.reduce((sum, value) => sum + value, 0);

/** Handed to the DMA engine but not on the link: they wait there, or were discarded when the driver was removed. A message is one TLP. */
export function unsentMessagesOf({ requesters }: Pick<DmaWriteEngine, 'requesters'>): number {
  const sender = requesters.find(({ trafficClass }) => trafficClass === TrafficClass.msix);
  return sender === undefined ? 0 : sender.counters.requests - sender.counters.tlps;
}
