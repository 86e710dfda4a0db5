/** The statistics of one slot used by a real guest, copied as plain data. */

import {
  byCommandName,
  byOperationName,
  type HcaLedger,
  type HcaNode,
  hcaLedgerOf,
  type LinkEndLedger,
  linkEndLedgerOf,
} from '../../machine/index.ts';
import type { AccessCount } from './access-counters.ts';
import type { GuestNode } from './guest-node.ts';
import type { Slot } from './slot.ts';

/** One MSI-X vector outside the device. */
interface LineLedger {
  readonly vector: number;
  /** Messages that arrived after the fault gate, and descriptors written because of them. */
  readonly arrived: number;
  readonly raised: number;
  /** Interrupts raised since the guest's machine last enabled MSI-X. */
  readonly raisedSinceEnabled: number;
  /** Event queues of the vector that the guest has not served yet. */
  readonly unservedQueues: number;
}

/** Requests of the guest's software for features that the model lacks; a real card may have them. */
export interface NotModelled {
  /** Offsets in the BARs. */
  readonly registers: Readonly<Record<string, AccessCount>>;
  /** Commands, each with its opcode modifier, that ended with BAD_OP. */
  readonly commands: Readonly<Record<string, number>>;
}

export interface SlotLedger {
  readonly node: number;
  readonly sessions: number;
  readonly resets: number;
  readonly accesses: SlotAccesses;
  readonly vectors: readonly LineLedger[];
  readonly pin: { readonly asserted: number; readonly raised: number };
  /** Messages from the root complex; those that faults lost, held back or injected; those without a valid vector. */
  readonly messages: {
    readonly arrived: number;
    readonly lost: number;
    readonly held: number;
    readonly spurious: number;
    readonly stray: number;
  };
  readonly pcie: LinkEndLedger;
  readonly deviceFaults: Readonly<Record<string, number>>;
  /** Number of times that each fault of the plan has occurred on this side of the slot. */
  readonly faultsFired: readonly number[];
  readonly hca: HcaLedger;
  /** Cycles from latching to completing all commands of a kind, by name. */
  readonly commandCycles: Readonly<Record<string, number>>;
  readonly notModelled: NotModelled;
}

/** Messages received over the socket. */
export interface SlotAccesses {
  readonly configuration: AccessCount;
  /** BAR0, by register. */
  readonly registers: Readonly<Record<string, AccessCount>>;
  /** BAR2, by kind of place. */
  readonly doorbells: Readonly<Record<string, AccessCount>>;
  /** Loads that read all ones; those of them without an answer in time; stores dropped because nothing progressed. */
  readonly failedLoads: number;
  readonly givenUpLoads: number;
  readonly droppedStores: number;
  /** Stores into the MSI-X table, which the platform owns. */
  readonly tableStores: number;
  /** Lines of the write-combining buffer that left whole, and in pieces. */
  readonly combinedLines: number;
  readonly partLines: number;
}

export function slotLedgerOf(slot: Slot, guest: GuestNode, hca: HcaNode): SlotLedger {
  const { interrupts, interruptGate, rootComplex, port, lp } = guest;
  const { processor } = hca.hca.control;
  return {
    node: slot.node,
    sessions: slot.sessionCount,
    resets: slot.resetCount,
    accesses: accessesOf(slot),
    vectors: linesOf(guest, hca),
    pin: { asserted: interrupts.pinAssertedCount, raised: interrupts.pinRaisedCount },
    messages: {
      arrived: interruptGate.messageCount,
      lost: interruptGate.lostCount,
      held: interruptGate.heldCount,
      spurious: interruptGate.spuriousCount,
      stray: interrupts.unroutedCount,
    },
    pcie: linkEndLedgerOf(port, lp.nowPs, lp.isDrained),
    deviceFaults: { ...rootComplex.log.counts },
    faultsFired: guest.faultLog.counts(),
    hca: hcaLedgerOf(hca),
    commandCycles: byCommandName(processor.takenCyclesByOpcode),
    notModelled: {
      registers: slot.accesses.unknown(),
      commands: byOperationName(processor.badOperations),
    },
  };
}

function accessesOf({ accesses, access, combiner, tableWriteCount }: Slot): SlotAccesses {
  return {
    configuration: { reads: accesses.configReads, writes: accesses.configWrites },
    registers: accesses.registers(),
    doorbells: accesses.doorbells(),
    failedLoads: access.failedLoadCount,
    givenUpLoads: access.abandonedLoadCount,
    droppedStores: access.droppedStoreCount,
    tableStores: tableWriteCount,
    combinedLines: combiner.wholeLineCount,
    partLines: combiner.partLineCount,
  };
}

function linesOf({ interrupts }: GuestNode, { hca }: HcaNode): LineLedger[] {
  const { arrived, raised, raisedBefore } = interrupts.counters;
  const rows = Array.from(arrived, (count, vector) => ({
    vector,
    arrived: count,
    raised: raised[vector]!,
    raisedSinceEnabled: raised[vector]! - raisedBefore[vector]!,
    unservedQueues: count === 0 ? 0 : hca.control.eqs.unservedOf(vector),
  }));
  return rows.filter((row) => row.arrived > 0);
}
