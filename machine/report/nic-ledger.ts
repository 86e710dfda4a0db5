/** The statistics of one NIC, copied as plain data at the end of a run. */
import type { ExactPs } from '../../sim/index.ts';
import type { NicNode } from '../node/nic-node.ts';
import { transmittedOf } from './frame-ledger.ts';
import { type BlockLedger, blockLedgerOf, type VectorLedger } from './hca-ledger.ts';
import { type LinkEndLedger, linkEndLedgerOf, unsentMessagesOf } from './ledger-link.ts';

export type NicCounts = Readonly<Record<string, number>>;

export interface NicLedger {
  readonly node: number;
  readonly nowPs: ExactPs;
  readonly clockMHz: number;
  readonly elapsedCycles: number;
  readonly blocks: Readonly<Record<string, BlockLedger>>;
  /** Causes and moderation are counted for the whole device ({@link counters}); here `requested` counts messages. */
  readonly vectors: readonly VectorLedger[];
  readonly unsentMessages: number;
  readonly pcie: LinkEndLedger;
  /** The two halves of the port of the cable: wire/ethernet-counters.ts. */
  readonly transmitted: NicCounts;
  readonly received: NicCounts;
  readonly busyPs: number;
  readonly isQuiet: boolean;
  /** hw/nic/nic-counters.ts. */
  readonly counters: NicCounts;
  /** Messages by vector, as the interrupt block sent them. */
  readonly messages: readonly number[];
  /** Transmitted frames that a fault still delays, with their bytes. */
  readonly heldBack: { readonly frames: number; readonly bytes: number };
  /** Frames that the port has handed to the MAC and that the MAC has not processed. */
  readonly heldFrames: number;
  /** Received frames in the packet buffer. */
  readonly bufferedFrames: number;
  /** Occurrences of each fault of the plan in this device. */
  readonly faultsFired: readonly number[];
}

export function nicLedgerOf({ node, lp, nic, faultLog }: NicNode): NicLedger {
  const { domain, port } = nic;
  const cycle = domain.clock.cyclesElapsed(lp.nowPs);
  return {
    node,
    nowPs: lp.instantPs,
    clockMHz: domain.clock.frequencyMHz,
    elapsedCycles: lp.epochUs * domain.clock.frequencyMHz + cycle,
    blocks: Object.fromEntries(nic.accounts.map((account) => [account.name, blockLedgerOf(account, cycle)])),
    vectors: vectorsOf(nic),
    unsentMessages: unsentMessagesOf(nic.dmaWrite),
    pcie: linkEndLedgerOf(nic.linkPort, lp.nowPs, lp.isDrained),
    transmitted: transmittedOf(port),
    received: { ...port.received },
    busyPs: Math.floor(port.busyPs),
    isQuiet: lp.isDrained,
    counters: { ...nic.counters },
    messages: [...nic.blocks.interrupts.messages],
    heldBack: port.heldBack,
    heldFrames: port.heldFrames,
    bufferedFrames: nic.blocks.receiveBuffer.count,
    faultsFired: faultLog.counts(),
  };
}

function vectorsOf({ pcieFunction, blocks }: NicNode['nic']): VectorLedger[] {
  const { messages } = blocks.interrupts;
  const { counters, vectorCount } = pcieFunction.msix;
  const rows = Array.from({ length: vectorCount }, (_, vector) => ({
    vector,
    requested: messages[vector] ?? 0,
    moderated: 0,
    messages: messages[vector] ?? 0,
    masked: counters.masked[vector]!,
    coalesced: counters.coalesced[vector]!,
    dropped: counters.dropped[vector]!,
    delivered: counters.delivered[vector]!,
  }));
  return rows.filter(({ messages }) => messages > 0);
}
