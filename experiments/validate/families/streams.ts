/** Common parts of the benches of groups C to F: threads with QPs, those of C to E on the machines of the Apt cluster. */
import type { Figures, Point, PointMachine, StreamPlan } from '../points.ts';

/** Messages of all threads together, enough for a steady state. */
const messagesTotal = 12_000;

/**
 * A machine of Emulab's Apt cluster: a ConnectX-3 at FDR, all machines on one switch. Its latency is fitted to C-019,
 * half an echo; a pair on one cable is 0.3 us faster.
 */
export const apt: PointMachine = {
  profile: 'connectx3-fdr-fitted',
  set: {
    'wire.switchLatencyNs': 300,
    'host.core.clockMHz': 2800,
    'pcie.rootComplex.completionCombineBytes': 128,
  },
};

/**
 * One machine that represents many requesters: its requester spends one cycle per request, and its slot is so fast that
 * posting is not the limit. Nor is the responder's slot, which carries 55.9 Gb/s while at most 50.7 were measured
 * (C-039). Each QP keeps its own interval, and responders have none of these parameters.
 */
export const requestersOf = (machine: PointMachine): PointMachine => ({
  ...machine,
  set: {
    ...machine.set,
    'pcie.link.generation': 5,
    'hca.scheduleCycles': 1,
    'hca.wqeDecodeCycles': 1,
    'hca.requestPacketCycles': 1,
    'hca.wqeLineCycles': 0,
    'hca.wqeBufferLines': 0,
    'hca.gatherCycles': 0,
    'hca.gatherBytesPerCycle': 0,
    'hca.readRequestCycles': 1,
  },
});
export const manyRequesters = requestersOf(apt);

const presets = {
  transport: 'RC',
  sizeBytes: 8,
  inlineBytes: 0,
  threads: 1,
  qpsPerThread: 1,
  window: 64,
  waits: 'each',
  signalEvery: 1,
  list: 1,
  order: 'turn',
  regionBytes: 0,
  isBothWays: false,
} as const satisfies Partial<StreamPlan>;

export function stream(machine: PointMachine, plan: Partial<StreamPlan> & Pick<StreamPlan, 'verb'>): Point {
  const threads = plan.threads ?? presets.threads;
  const messages = plan.messages ?? Math.ceil(messagesTotal / Math.max(threads, 4));
  // The authors of C to E use MLNX_OFED's library: PCIe reads of READs are rare while few are in flight (D-032).
  const isBlueFlameForAll = machine.profile === apt.profile;
  return {
    machine,
    workload: { kind: 'stream', plan: { ...presets, messages, isBlueFlameForAll, ...plan } },
  };
}

/** Streams without a completion for each message, as HERD posts WRITEs and SENDs. */
export const unsignalled = { signalEvery: 16, window: 64 } as const;
/** The same streams with no more requests in flight than WQEs that the card keeps from BlueFlame posts. */
export const shallow = { signalEvery: 4, window: 8 } as const;

/** If the source says that the window was tuned: several windows, the best of which counts. */
export const tuned = [
  { window: 4, signalEvery: 1 },
  { window: 8, signalEvery: 2 },
  { window: 12, signalEvery: 4 },
  { window: 64, signalEvery: 16 },
] as const;

/** The best rate of several points. */
export const bestOf = (figures: readonly Figures[]): number => Math.max(...figures.map(mopsOf));

export const mopsOf = (figures: Figures | undefined): number => figures?.['mops'] ?? Number.NaN;
