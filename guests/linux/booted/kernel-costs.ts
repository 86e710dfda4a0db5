/**
 * The costs of a guest's system calls, interrupts, exceptions and accesses of the HCA, and the same costs in the simulated host's table
 * (host/host-parameters.ts) beside them. The costs of a guest add up to the time that its processor spent.
 */
import type { MachineConfig } from '../../../machine/profile/index.ts';
import type { ContextCost, Pc, PcTimeAccount } from '../../pc/index.ts';
import { registeredBytes } from './i386-calls.ts';

/** Cost of an action in the guest, beside the cost that the simulated host has for it. */
export interface CostComparison {
  readonly what: string;
  /** Times that the guest did it. */
  readonly count: number;
  /** Cycles of the guest's processor each time, without those in which it was halted. */
  readonly guestCycles: number;
  /** Cycles of the simulated host's. */
  readonly modelCycles: number;
}

/** Costs of a host's processor since its profile began. */
export interface KernelCosts {
  readonly name: string;
  /** Picoseconds of a cycle. */
  readonly cyclePs: number;
  /** Sum of the costs. */
  readonly elapsedPs: number;
  readonly instructions: number;
  /** Largest time of the processor first, halted time left out. */
  readonly contexts: readonly ContextCost[];
  readonly comparison: readonly CostComparison[];
}

const pageBytes = 4096;

/** The costs of a host up to now; undefined without a profile. */
export function kernelCostsOf(name: string, pc: Pc, config: MachineConfig): KernelCosts | undefined {
  const profile = pc.profile;
  if (profile?.contexts === undefined) return undefined;
  const { cyclePs } = pc.clock;
  const contexts = profile.contexts
    .filter(({ entries, time }) => entries > 0 || spentPs(time) > 0)
    .sort((left, right) => busyPs(right) - busyPs(left) || (contextText(left) < contextText(right) ? -1 : 1));
  return {
    ...{ name, cyclePs, contexts },
    elapsedPs: contexts.reduce((sum, { time }) => sum + spentPs(time), 0),
    instructions: contexts.reduce((sum, each) => sum + each.instructions, 0),
    comparison: comparisonOf(contexts, cyclePs, config.host),
  };
}

const spentPs = (time: PcTimeAccount): number => Object.values(time).reduce((sum, ps) => sum + ps, 0);

/** Time of the processor in a context, without that in which it was halted. */
export const busyPs = ({ time }: ContextCost): number => spentPs(time) - time.idlePs;

/** A context in words: `call read`, `interrupt 40 (HCA)`. */
export function contextText({ kind, number, name, isDevice }: ContextCost): string {
  if (kind === 'call') return `call ${name ?? number}`;
  if (kind === 'user') return `program ${name?.split('/').at(-1) ?? '(not known)'}`;
  if (kind === 'kernel') return 'threads of the kernel, idle loop';
  const meaning = kind === 'interrupt' ? (isDevice ? ' (HCA)' : '') : (exceptionNames.get(number) ?? '');
  return `${kind} ${number}${meaning}`;
}

/** Intel SDM, volume 3A, table 6-1. */
const exceptionNames: ReadonlyMap<number, string> = new Map([
  [6, ' (invalid opcode)'],
  [7, ' (no FPU)'],
  [13, ' (general protection)'],
  [14, ' (page fault)'],
]);

function comparisonOf(
  contexts: readonly ContextCost[],
  cyclePs: number,
  { cost, interrupt }: MachineConfig['host'],
): CostComparison[] {
  const crossing = cost.systemCallEntry + cost.systemCallExit;
  const cyclesOf = (of: readonly ContextCost[]): number =>
    of.reduce((sum, each) => sum + busyPs(each), 0) / cyclePs;
  const row = (
    what: string,
    of: readonly ContextCost[],
    count: number,
    modelCycles: number,
    cycles = cyclesOf(of),
  ): CostComparison[] => (count === 0 ? [] : [{ what, count, guestCycles: cycles / count, modelCycles }]);
  const entriesOf = (of: readonly ContextCost[]): number => of.reduce((sum, { entries }) => sum + entries, 0);
  const calls = contexts.filter(({ kind, entries }) => kind === 'call' && entries > 0);
  const meanOf = (each: ContextCost): number => busyPs(each) / each.entries;
  const [shortest] = calls.toSorted((left, right) => meanOf(left) - meanOf(right));
  const handlers = contexts.filter(({ kind, isDevice }) => kind === 'interrupt' && isDevice);
  const handled = interrupt.entryCycles + cost.interruptHandler + cost.eventDispatch + interrupt.exitCycles;
  const registrations = calls
    .map((each) => ({ each, bytes: registeredBytes(each.name) ?? 0 }))
    .filter(({ bytes }) => bytes > 0)
    .sort((left, right) => left.bytes - right.bytes)
    .flatMap(({ each, bytes }) => {
      const perPage = cost.registerRegionPerPage + cost.pinPerPage;
      const command = cost.commandPost + cost.commandComplete;
      const fixed = crossing + cost.createObject + command + cost.registerRegionFixed;
      return row(
        `reg_mr of ${bytes} bytes`,
        [each],
        each.entries,
        fixed + Math.ceil(bytes / pageBytes) * perPage,
      );
    });
  const sumOf = (what: (each: ContextCost) => number): number =>
    contexts.reduce((sum, each) => sum + what(each), 0);
  const stores = sumOf((each) => each.stores);
  const loads = sumOf((each) => each.loads);
  return [
    ...(shortest === undefined
      ? []
      : row(`system call, the shortest (${shortest.name})`, [shortest], shortest.entries, crossing)),
    ...row('interrupt of the HCA', handlers, entriesOf(handlers), handled),
    ...registrations,
    ...row('MMIO store', [], stores, cost.mmioStore, sumOf(({ time }) => time.storesPs) / cyclePs),
    ...row(
      'MMIO load, its wait included',
      [],
      loads,
      cost.mmioLoad,
      sumOf(({ time }) => time.loadsPs) / cyclePs,
    ),
  ];
}
