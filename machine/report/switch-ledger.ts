/** The statistics of one switch of either kind, copied as plain data at the end of a run, and their balance. */
import type { ExactPs } from '../../sim/index.ts';
import { EthernetSwitchNode } from '../node/ethernet-switch-node.ts';
import type { FabricSwitch } from '../node/fabric-switch.ts';
import type { SwitchNode } from '../node/switch-node.ts';
import type { NodePort } from '../topology/index.ts';
import {
  ethernetSwitchFailures,
  ethernetSwitchLedgerOf,
  type SwitchBufferLedger,
} from './ethernet-switch-ledger.ts';
import { behind, sumOf } from './failures.ts';
import { type FrameLedger, framesGone } from './frame-ledger.ts';
import {
  atPort,
  type CableEndLedger,
  type HcaLedger,
  type WireEndLedger,
  wireLedgerOf,
} from './hca-ledger.ts';
import type { PacketLedger } from './packet-ledger.ts';
import type { SwitchOutputReport, WrongCrcReport } from './schema.ts';

/** A port of a switch with a cable. */
export interface SwitchPortLedger {
  /** Number from 1. */
  readonly port: number;
  readonly wire: WireEndLedger;
  /** Frames of its end of the cable, for which `wire` is empty; left out for InfiniBand. */
  readonly ethernet?: FrameLedger;
  /** Packets that came by this port and were not forwarded, by reason. */
  readonly notForwarded: Readonly<Record<string, number>>;
  readonly wrongCrc: WrongCrcReport;
  /** Packets that came by this port and wait, and the most that have waited at once. */
  readonly waitingPackets: number;
  readonly waitingPacketsMax: number;
  /** Waiting packets that have no place in a queue yet; left out for InfiniBand. */
  readonly inPipeline?: number;
  /** Most bytes held at once: of data in its receive buffer, or on Ethernet of its frames in the shared buffer. */
  readonly bufferedBytesMax: number;
  /** Frames that came by this port and were cut through; left out for switches that store all of them. */
  readonly cutThroughFrames?: number;
  /** Packets that left by this port marked with FECN; left out without marks, and on Ethernet. */
  readonly markedPackets?: number;
  /** Queues of the frames that leave by this port; left out for InfiniBand. */
  readonly output?: SwitchOutputReport;
}

/**
 * The statistics of a switch.
 * @public
 */
export interface SwitchLedger {
  readonly node: number;
  readonly nowPs: ExactPs;
  readonly ports: readonly SwitchPortLedger[];
  /** Copies made for groups: packets that left in addition to the ones that came. */
  readonly copies: number;
  /** Management packets that ended at port 0, and those that it sent; left out without any. */
  readonly management?: { readonly taken: number; readonly sent: number };
  /** Shared buffer; left out for InfiniBand. */
  readonly buffer?: SwitchBufferLedger;
  /** Occurrences of each fault of the plan in this switch. */
  readonly faultsFired: readonly number[];
}

export function switchLedgerOf(node: FabricSwitch): SwitchLedger {
  return node instanceof EthernetSwitchNode ? ethernetSwitchLedgerOf(node) : infinibandLedgerOf(node);
}

function infinibandLedgerOf({ node, lp, device, faultLog }: SwitchNode): SwitchLedger {
  const ports = device.ports.flatMap((wire, index): SwitchPortLedger[] => {
    if (wire === undefined) return [];
    const port = index + 1;
    const { packets, highWater } = device.waitingAt(port);
    const markedPackets = device.markedAt(port);
    return [
      {
        port,
        wire: wireLedgerOf(wire, lp.isDrained && packets === 0 && device.management.isIdle),
        notForwarded: { ...device.dropsOf(port) },
        wrongCrc: {
          dropped: wire.received.corrupted.packetTotal,
          accepted: wire.received.relayedDamageCount,
          sent: wire.transmitted.relayedDamageCount,
        },
        waitingPackets: packets,
        waitingPacketsMax: highWater,
        bufferedBytesMax: wire.receiveBufferHighWaterBytes,
        ...(markedPackets === undefined ? {} : { markedPackets }),
      },
    ];
  });
  const { taken, sent } = device.management.counts;
  return {
    node,
    nowPs: lp.instantPs,
    ports,
    copies: device.copyCount,
    ...(taken + sent === 0 ? {} : { management: { taken, sent } }),
    faultsFired: faultLog.counts(),
  };
}

/** Whether a switch has forwarded everything that was sent to it, undamaged. */
export const keepsAll = ({ ports }: SwitchLedger): boolean =>
  ports.every(
    ({ wire, ethernet, notForwarded, waitingPackets, output }) =>
      sumOf(Object.values(notForwarded)) +
        waitingPackets +
        (output?.queueDrops ?? 0) +
        (output?.watchdogDrops ?? 0) ===
        0 &&
      sumOf(Object.values(wire.dropped)) + wire.discardedPackets + Object.keys(wire.corrupted).length === 0 &&
      (ethernet === undefined || framesGone(ethernet).missing === 0),
  );

/** The ends of cables, in ports of HCAs and of switches. */
export function cableEndsOf(
  hcas: readonly HcaLedger[],
  switches: readonly SwitchLedger[],
): (end: NodePort) => CableEndLedger {
  return (end) => {
    const hca = hcas.find(({ node }) => node === end.node);
    if (hca !== undefined) return atPort(hca, end);
    const { node, nowPs, ports } = switches.find((own) => own.node === end.node)!;
    const { wire, ethernet } = ports.find(({ port }) => port === end.port)!;
    return { node, nowPs, wire, ethernet, iwarp: undefined };
  };
}

/**
 * Every packet that has come by any port of a switch has left it, ended at its port 0, is dropped for a named reason, or waits; copies
 * for groups and packets of port 0 are added. Nothing may leave that has not come, nor damaged without having come so.
 */
export function switchFailures(ledger: SwitchLedger): string[] {
  if (ledger.buffer !== undefined) return ethernetSwitchFailures(ledger);
  const { node, ports, copies, management = { taken: 0, sent: 0 } } = ledger;
  const came = sumOf(ports.map(({ wire }) => packetsIn(wire.received)));
  const left = sumOf(ports.map(({ wire }) => wire.transmittedPackets + wire.discardedPackets));
  const kept = sumOf(
    ports.map(({ notForwarded, waitingPackets }) => sumOf(Object.values(notForwarded)) + waitingPackets),
  );
  const damaged = (side: 'received' | 'sent'): number =>
    sumOf(ports.map(({ wire }) => wire.relayedDamage?.[side] ?? 0));
  return [
    ...behind(
      `switch ${node}, packets that left, wait or were dropped`,
      left + kept + management.taken,
      came + copies + management.sent,
      true,
    ),
    ...behind(
      `switch ${node}, damaged packets that left`,
      damaged('sent'),
      damaged('received') + copies + sumOf(ports.map(({ wire }) => packetsIn(wire.rearranged?.copied ?? {}))),
      false,
    ),
  ];
}

const packetsIn = (byOpcode: Readonly<Record<string, PacketLedger>>): number =>
  sumOf(Object.values(byOpcode).map(({ packets }) => packets));
