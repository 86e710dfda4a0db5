/** What the benches of groups C to F have in common: threads with QPs on a ConnectX-3 at FDR. */
import type { Figures, Point, PointMachine, StreamPlan } from '../points.ts';

/** Messages of all threads together, enough for a steady state. */
const messagesTotal = 32_000;

export const fdr: PointMachine = { profile: 'connectx3-fdr' };

/**
 * One machine that stands for the many which ask: its requester spends a cycle on a request, so that the responder is what
 * limits. Each QP keeps its own interval, and no responder has any of these parameters.
 */
export const manyRequesters: PointMachine = {
  ...fdr,
  set: { 'hca.scheduleCycles': 1, 'hca.wqeDecodeCycles': 1, 'hca.requestPacketCycles': 1 },
};

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
  return { machine, workload: { kind: 'stream', plan: { ...presets, messages, ...plan } } };
}

/** Without a completion for each message, as HERD posts WRITEs and SENDs. */
export const unsignalled = { signalEvery: 16, window: 64 } as const;

/** Where the source says that the window was tuned: some, of which the best counts. */
export const tuned = [
  { window: 8, signalEvery: 2 },
  { window: 12, signalEvery: 4 },
  { window: 64, signalEvery: 16 },
] as const;

/** The best rate of several points. */
export const bestOf = (figures: readonly Figures[]): number => Math.max(...figures.map(mopsOf));

export const mopsOf = (figures: Figures | undefined): number => figures?.['mops'] ?? Number.NaN;
