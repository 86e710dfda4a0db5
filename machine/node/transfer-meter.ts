/**
 * A meter on a host: its costs between two instants, read from its statistics from outside. Reading costs the host
 * nothing and wakes no thread, so that a host whose program sleeps shows its true cost: zero for a passive side.
 *
 *     programs agree on an instant ─► begins there          ends when both sides have ended
 *
 * The arrival of the exchanged value {@link endLabel} marks the peer's end: the statistics are read before any thread
 * wakes.
 */
import { psPerUs } from '../../base/index.ts';
import { type CpuCause, cpuCauses } from '../../host/index.ts';
import { PHASE_HARDWARE } from '../../sim/index.ts';
import type { HostNode } from './host-node.ts';
import { type MemoryTraffic, memoryTrafficOf } from './memory-traffic.ts';

/** Name under which each program publishes that its side of a transfer has ended. */
export const endLabel = 'transfer.end';

/** Costs of a host since the beginning, or between two readings. */
export interface HostSpent {
  /** Cycles of all cores by cause, without idle ones. */
  readonly cycles: Readonly<Partial<Record<CpuCause, number>>>;
  readonly cyclesTotal: number;
  readonly interrupts: number;
  readonly systemCalls: number;
  readonly contextSwitches: number;
  /** Moved by the CPU, between buffers or between a buffer and a card. */
  readonly copies: number;
  readonly copiedBytes: number;
  readonly memory: MemoryTraffic;
  /** TLPs and their bytes on the link, both directions. */
  readonly tlps: number;
  readonly linkBytes: number;
}

export class TransferMeter {
  readonly #node: HostNode;
  readonly #beginHandler: number;
  #begin: HostSpent | undefined;
  #end: HostSpent | undefined;
  #beginPs = 0;
  #durationPs = 0;

  constructor(node: HostNode) {
    this.#node = node;
    this.#beginHandler = node.lp.queue.addHandler(() => {
      this.#begin = this.#read();
      this.#beginPs = this.#nowPs;
      this.#end = undefined;
    }, PHASE_HARDWARE);
  }

  /** Schedules a reading of the statistics at a future instant. */
  beginAt(atPs: number): void {
    this.#begin = undefined;
    const { lp } = this.#node;
    lp.queue.schedule(atPs - lp.epochUs * psPerUs, this.#beginHandler);
  }

  /** Marks the end of this side, now. */
  end(): void {
    this.#end = this.#read();
    this.#durationPs = this.#nowPs - this.#beginPs;
  }

  /** Handles a value from another host. */
  arrived(label: string): void {
    if (label === endLabel && this.#begin !== undefined) this.end();
  }

  /** Time between start and end. */
  get spanPs(): number {
    return this.#durationPs;
  }

  /** Costs between start and end; undefined without a transfer. */
  spent(): HostSpent | undefined {
    if (this.#begin === undefined || this.#end === undefined) return undefined;
    return differenceOf(this.#end, this.#begin);
  }

  /** Since power-on. */
  get #nowPs(): number {
    const { epochUs, nowPs } = this.#node.lp;
    return epochUs * psPerUs + nowPs;
  }

  #read(): HostSpent {
    const { host, nic, port, userCopies } = this.#node;
    const { cores, interrupts, systemCalls } = host.report();
    const cycles: Partial<Record<CpuCause, number>> = {};
    let cyclesTotal = 0;
    for (const cause of cpuCauses) {
      if (cause === 'idle') continue;
      const sum = cores.reduce((total, core) => total + core.cycles[cause], 0);
      cycles[cause] = sum;
      cyclesTotal += sum;
    }
    const counts = nic?.network?.counts;
    const programmed = nic?.programmed;
    const { transmitter, receiver } = port;
    return {
      cycles,
      cyclesTotal,
      interrupts: interrupts.reduce((total, { handled }) => total + handled, 0),
      systemCalls: systemCalls.control + systemCalls.dataPath,
      contextSwitches: host.cores.reduce((total, { contextSwitchCount }) => total + contextSwitchCount, 0),
      copies: (counts?.copies ?? 0) + (programmed?.copies ?? 0) + userCopies.count,
      copiedBytes: (counts?.copiedBytes ?? 0) + (programmed?.copiedBytes ?? 0) + userCopies.bytes,
      memory: memoryTrafficOf(this.#node),
      tlps: sumOf(transmitter.tlpCount) + sumOf(receiver.received.tlps),
      linkBytes: sumOf(transmitter.tlpLinkBytes) + sumOf(receiver.received.linkBytes),
    };
  }
}

const sumOf = (values: Float64Array): number => values.reduce((sum, value) => sum + value, 0);

type Numbers = Readonly<Record<string, number>>;

/** Costs between two readings; causes without cycles are left out. */
function differenceOf(end: HostSpent, begin: HostSpent): HostSpent {
  const minus = <Part extends object>(left: Part, right: Part): Part =>
    Object.fromEntries(
      Object.entries(left as Numbers).map(([name, value]) => [name, value - ((right as Numbers)[name] ?? 0)]),
    ) as Part;
  const { cycles, memory, ...endCounts } = end;
  const { cycles: cyclesBefore, memory: memoryBefore, ...beginCounts } = begin;
  const spent = Object.entries(minus(cycles, cyclesBefore)).filter(([, value]) => value !== 0);
  return {
    ...minus(endCounts, beginCounts),
    cycles: Object.fromEntries(spent),
    memory: minus(memory, memoryBefore),
  };
}
