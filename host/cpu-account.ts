/**
 * The cycle account of one core: every cycle has one cause.
 *
 * Work is added when it is charged; idle time, polling and stalls are measured as intervals when they end. The
 * core's own cycle counter and the clock of the simulation are kept elsewhere, so that the sum of the causes can
 * be checked against both.
 */

/**
 * Why a core's cycles were spent. `memory`: faults, mappings, page-table walks and shootdowns; `reclaim`: finding frames to
 * give back; `swapWait`: the core stalled for the swap or file device in a synchronous access. From `socket` on, the causes of
 * the traditional path: the layers of the kernel's network stack, words moved by the core to or from a card, and cycles in
 * which a DMA controller had the bus.
 */
export const cpuCauses = [
  'post',
  'poll',
  'systemCall',
  'pin',
  'copy',
  'interrupt',
  'contextSwitch',
  'driver',
  'memory',
  'reclaim',
  'swapWait',
  'application',
  'idle',
  'socket',
  'protocol',
  'checksum',
  'softirq',
  'wakeUp',
  'programmedIo',
  'busWait',
] as const;

export type CpuCause = (typeof cpuCauses)[number];

/** Index of each cause in {@link CpuAccount.cycles}. */
export const causeIndexOf = Object.fromEntries(cpuCauses.map((cause, index) => [cause, index])) as Readonly<
  Record<CpuCause, number>
>;

const postIndex = causeIndexOf.post;
const pollIndex = causeIndexOf.poll;
const applicationIndex = causeIndexOf.application;

/** Index of a cause: like {@link causeIndexOf}, but faster for causes of the data path. */
export function indexOfCause(cause: CpuCause): number {
  if (cause === 'post') return postIndex;
  if (cause === 'poll') return pollIndex;
  if (cause === 'application') return applicationIndex;
  return causeIndexOf[cause];
}

export class CpuAccount {
  readonly cycles = new Float64Array(cpuCauses.length);

  add(causeIndex: number, cycles: number): void {
    this.cycles[causeIndex] = this.cycles[causeIndex]! + cycles;
  }
}

/** Account of a core up to an instant. */
export interface CpuReport {
  /** Whole cycles of the core's clock up to the instant. */
  readonly totalCycles: number;
  /** Cycles charged by threads for work beyond the instant: 0 after all programs have ended. */
  readonly aheadCycles: number;
  readonly cycles: Readonly<Record<CpuCause, number>>;
  /** Whether the causes sum to the total plus the cycles ahead of it. */
  readonly isBalanced: boolean;
}

/** Compares an account with the cycles to which it must sum. */
export function cpuReportOf(cycles: Float64Array, totalCycles: number, aheadCycles: number): CpuReport {
  const entries = cpuCauses.map((cause, index) => [cause, cycles[index]!] as const);
  const sum = entries.reduce((total, [, value]) => total + value, 0);
  return {
    totalCycles,
    aheadCycles,
    cycles: Object.fromEntries(entries) as Record<CpuCause, number>,
    isBalanced: sum === totalCycles + aheadCycles && entries.every(([, value]) => value >= 0),
  };
}
