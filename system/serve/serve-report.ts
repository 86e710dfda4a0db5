/**
 * The report of a served machine, version "hca-serve-report/1": the device's part is that of "hca-report/1", figure for
 * figure; the host's part is what the slot saw of the guest, because the guest's processors are not simulated.
 *
 * What is a measurement and what is not stands in the report itself ({@link meaning}).
 */

import type { ExactPs } from '../../sim/index.ts';
import type { Analysis } from '../machine/analysis/index.ts';
import { type Fault, faultText } from '../machine/faults/index.ts';
import {
  behind,
  blockFailures,
  type CheckReport,
  checkOf,
  type DeviceInterruptRow,
  deviceInterruptsOf,
  deviceOf,
  type ExactDigits,
  ExactFigures,
  type FaultReport,
  faultsOf,
  linkFailures,
  linkOf,
  type NodeReport,
  nonZero,
  type OperationReport,
  operationFailures,
  operationsOf,
  sumOf,
  vectorFailures,
  type WireReport,
  wireFailures,
  wireOf,
} from '../machine/index.ts';
import { configHashOf, type MachineConfig } from '../machine/profile/index.ts';
import type { Defect } from './defect.ts';
import type { Cabling } from './served-plan.ts';
import type { NotModelled, SlotAccesses, SlotLedger } from './slot-ledger.ts';

const serveReportSchema = 'hca-serve-report/1';

/** Which figures mean what. */
export const meaning = {
  measured:
    'Everything under nodes, wire and operations counts what the device and its links did; times among them (Ps, cycles) ' +
    'are simulated time of the device, as in the simulated machine: the time a card of this configuration takes for it.',
  notMeasured:
    "The guest's processors are not simulated. Between its accesses simulated time follows the wall clock (followedPs), so " +
    'elapsedPs, idle cycles, rates over them, and whatever the guest itself measures (latency, bandwidth) say how fast ' +
    'this computer ran guest and emulator, not how fast a card is. run is wall-clock time of the emulator.',
} as const;

/**
 * One MSI-X vector from the device's reason to the guest.
 * @public
 */
export interface ServedInterruptRow extends DeviceInterruptRow {
  readonly vector: number;
  /** Messages that reached the guest's machine, and descriptors written to signal the guest. */
  readonly delivered: number;
  readonly raised: number;
  /** Of these, those since the guest's machine last enabled MSI-X: what a guest's driver has counted. */
  readonly raisedSinceEnabled: number;
}

export interface CommandRow {
  readonly count: number;
  /** Simulated time from latching to completing, of all of them. */
  readonly takenPs: number;
}

export interface ServedNodeReport {
  /** Guests that were connected, and resets that their machines asked for. */
  readonly sessions: number;
  readonly resets: number;
  readonly accesses: SlotAccesses;
  readonly interrupts: readonly ServedInterruptRow[];
  readonly intx: { readonly asserted: number; readonly raised: number };
  readonly pcie: NodeReport['pcie'];
  readonly hca: Omit<NodeReport['hca'], 'commands'> & {
    readonly commands: Readonly<Record<string, CommandRow>>;
  };
  readonly deviceFaults: Readonly<Record<string, number>>;
  readonly notModelled: NotModelled;
}

export interface ServeChecks {
  readonly balanced: boolean;
  readonly blocks: CheckReport;
  readonly pcie: CheckReport;
  readonly interrupts: CheckReport;
  readonly wire: CheckReport;
  readonly operations: CheckReport;
}

/** How the emulator itself fared: wall-clock time and turns of the loop. */
export interface ServeRun {
  readonly node: string;
  readonly wallMs: number;
  /** On the model, on guests' messages while it was busy, and waiting for them or for a timer. */
  readonly workMs: number;
  readonly pollMs: number;
  readonly waitMs: number;
  readonly slices: number;
  readonly cutSlices: number;
}

export interface ServeReport {
  readonly schema: typeof serveReportSchema;
  readonly meaning: typeof meaning;
  readonly configHash: string;
  readonly config: MachineConfig;
  /** Faults that were asked for, and how often each has happened; left out when there were none. */
  readonly faults?: readonly FaultReport[];
  readonly hcas: number;
  readonly cabling: Cabling;
  readonly timeScale: number;
  readonly elapsedPs: number;
  /** Of these, the time that passed because the wall clock did. */
  readonly followedPs: number;
  readonly nodes: readonly ServedNodeReport[];
  readonly wire: readonly WireReport[];
  readonly operations: Readonly<Record<string, OperationReport>>;
  readonly checks: ServeChecks;
  /** What the model threw; the statistics count from the last of them on. Not empty is a defect of the emulator. */
  readonly defects: readonly Defect[];
  /** What the analysers of the guests found; empty unless asked for. */
  readonly analyses: readonly Analysis[];
  readonly run: ServeRun;
  /** All digits of the figures above that are 2^53 ps or more, by their places; absent when there are none. */
  readonly exactPs?: ExactDigits;
}

export interface ServeReportParts {
  readonly config: MachineConfig;
  readonly faults: readonly Fault[];
  readonly cabling: Cabling;
  readonly timeScale: number;
  readonly elapsedPs: ExactPs;
  readonly followedPs: ExactPs;
  readonly slots: readonly SlotLedger[];
  readonly defects: readonly Defect[];
  readonly analyses: readonly Analysis[];
  readonly run: ServeRun;
}

export function buildServeReport(parts: ServeReportParts): ServeReport {
  const { config, faults, cabling, timeScale, elapsedPs, followedPs, slots, defects, analyses, run } = parts;
  const far = (node: number): SlotLedger => slots[cabling === 'cable' ? node ^ 1 : node]!;
  const exact = new ExactFigures();
  // A port without a plug has no peer to compare with.
  const cabled = cabling === 'open' ? [] : slots;
  return {
    schema: serveReportSchema,
    meaning,
    configHash: configHashOf(config, faults.map(faultText)),
    config,
    ...faultsOf(
      faults,
      slots.flatMap((slot) => [slot, slot.hca]),
    ),
    hcas: slots.length,
    cabling,
    timeScale,
    elapsedPs: exact.numberOf('elapsedPs', elapsedPs),
    followedPs: exact.numberOf('followedPs', followedPs),
    nodes: slots.map(nodeOf),
    wire: cabled.map(({ node, hca }) => wireOf(hca, far(node).hca)),
    operations: operationsOf(
      [],
      slots.map(({ hca }) => hca),
      exact,
    ),
    checks: checksOf(slots, cabled, far),
    defects,
    analyses,
    run,
    ...exact.field,
  };
}

function nodeOf(slot: SlotLedger): ServedNodeReport {
  const { hca, commandCycles } = slot;
  const device = deviceOf(hca);
  const commands = Object.entries(device.commands).map(([name, count]) => [
    name,
    { count, takenPs: Math.round(((commandCycles[name] ?? 0) * 1e6) / hca.clockMHz) },
  ]);
  return {
    sessions: slot.sessions,
    resets: slot.resets,
    accesses: slot.accesses,
    interrupts: interruptsOf(slot),
    intx: slot.pin,
    pcie: linkOf(slot.pcie, hca.pcie),
    hca: { ...device, commands: Object.fromEntries(commands) as Record<string, CommandRow> },
    deviceFaults: nonZero(slot.deviceFaults),
    notModelled: slot.notModelled,
  };
}

function interruptsOf({ hca, vectors }: SlotLedger): ServedInterruptRow[] {
  const known = [...new Set([...hca.vectors, ...vectors].map(({ vector }) => vector))];
  return known
    .toSorted((left, right) => left - right)
    .map((vector) => {
      const line = vectors.find((row) => row.vector === vector);
      return {
        ...deviceInterruptsOf(hca, vector),
        vector,
        delivered: line?.arrived ?? 0,
        raised: line?.raised ?? 0,
        raisedSinceEnabled: line?.raisedSinceEnabled ?? 0,
      };
    });
}

function checksOf(
  slots: readonly SlotLedger[],
  cabled: readonly SlotLedger[],
  far: (node: number) => SlotLedger,
): ServeChecks {
  const checks = {
    blocks: checkOf(slots.flatMap(({ hca }) => blockFailures(hca))),
    pcie: checkOf(slots.flatMap(({ node, pcie, hca }) => linkFailures(node, pcie, hca.pcie))),
    interrupts: checkOf(slots.flatMap(interruptFailures)),
    wire: checkOf(cabled.flatMap(({ node, hca }) => wireFailures(hca, far(node).hca))),
    operations: checkOf(slots.flatMap(({ hca }) => operationFailures({ operations: [] }, hca))),
  };
  return { balanced: Object.values(checks).every(({ holds }) => holds), ...checks };
}

/** From the device's messages to the guest's descriptors. What a descriptor was not there for is a guest's choice. */
function interruptFailures({ node, hca, pcie, messages, vectors }: SlotLedger): string[] {
  const isQuiet = pcie.isQuiet && hca.pcie.isQuiet;
  const what = `node ${node}`;
  const sent = sumOf(hca.vectors.map(({ delivered }) => delivered)) - hca.unsentMessages;
  const passed = messages.arrived - messages.lost - messages.held + messages.spurious;
  const delivered = sumOf(vectors.map(({ arrived }) => arrived));
  return [
    ...hca.vectors.flatMap((vector) => vectorFailures(what, vector)),
    ...behind(`${what}, messages at the root complex`, messages.arrived, sent + messages.stray, isQuiet),
    ...behind(`${what}, messages of vectors`, delivered + messages.stray, passed, isQuiet),
    ...vectors.flatMap(({ vector, arrived, raised }) =>
      behind(`${what} vector ${vector}, raised`, raised, arrived, false),
    ),
  ];
}
