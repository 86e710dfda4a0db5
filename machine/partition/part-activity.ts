/**
 * Due work in a part of a machine between two runs: events of its own, or only the next polls of programs that have
 * done nothing else for a while.
 */
import { type Core, cpuCauses } from '../../host/index.ts';
import { exactPs, type LogicalProcess, type ProcessInstant } from '../../sim/index.ts';
import type { HostNode } from '../node/host-node.ts';

/** Plain data. */
export interface PartActivity {
  /** Whether only polls and checks of the health timer are due. */
  readonly isQuiescent: boolean;
  /** Whether programs of a host have polled since the last report, and done nothing else. */
  readonly isPolling: boolean;
  /** Hosts whose programs have not ended, with the instant since which they only poll, or the present instant. */
  readonly waiting: readonly ProcessInstant[];
  /** The wait of each program that has not ended, in a sentence. */
  readonly programs: readonly string[];
  /** Instant of the epoch at which the last program of the part ended so far, in picoseconds; -Infinity if none has. */
  readonly endedPs: number;
  /** Earliest instant of the epoch at which anything is due; Infinity if nothing is. */
  readonly nextPs: number;
}

/** Reports the activity of one part. */
export class PartMonitor {
  readonly #hosts: readonly HostMonitor[];
  readonly #devices: readonly LogicalProcess[];

  /** @param devices the logical processes of the part that are not hosts */
  constructor(hosts: readonly HostNode[], devices: readonly LogicalProcess[]) {
    this.#hosts = hosts.map((host) => new HostMonitor(host));
    this.#devices = devices;
    for (const host of this.#hosts) host.node.lp.addTimeKeeper(host);
  }

  /** The activity since the last report. */
  take(): Omit<PartActivity, 'nextPs'> {
    for (const host of this.#hosts) host.sample();
    const waiting = this.#hosts.filter(({ node }) => !node.lp.isEnded);
    return {
      isQuiescent:
        this.#devices.every(({ dueCount }) => dueCount === 0) &&
        this.#hosts.every(({ isQuiescent }) => isQuiescent),
      isPolling: this.#hosts.some(({ isPolling }) => isPolling),
      waiting: waiting.map(({ node, sincePs }) => ({
        name: node.lp.name,
        instantPs: exactPs(node.lp.epochUs, sincePs),
      })),
      programs: waiting.flatMap(({ node }) => programWaitsOf(node)),
      endedPs: Math.max(
        ...[...this.#devices, ...this.#hosts.map(({ node }) => node.lp)].map((lp) => lp.endedPs),
      ),
    };
  }
}

/** The wait of each program of a host that has not ended, in a sentence. */
export function programWaitsOf({ node, host }: HostNode): string[] {
  return host.cores.flatMap(({ program }) =>
    program === undefined ? [] : [`program '${program.name}' on node ${node} waits in ${program.waitText}`],
  );
}

const pollIndex = cpuCauses.indexOf('poll');
const idleIndex = cpuCauses.indexOf('idle');

/** One host, with its statistics at the last report. */
class HostMonitor {
  readonly node: HostNode;
  isQuiescent = false;
  isPolling = false;
  /** Instant since which it only polls; the present instant if it does anything else. */
  sincePs = 0;
  #sampledPs = 0;
  #recordCount = 0;
  #workCycles = 0;
  #pollCycles = 0;

  constructor(node: HostNode) {
    this.node = node;
  }

  /** Starts a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    this.sincePs -= ps;
    this.#sampledPs -= ps;
  }

  sample(): void {
    const { lp, host, healthTimerCount } = this.node;
    const work = cyclesOf(host.cores, (cause) => cause !== pollIndex && cause !== idleIndex);
    const polls = cyclesOf(host.cores, (cause) => cause === pollIndex);
    const isIdleElse = work === this.#workCycles && lp.recordCount === this.#recordCount;
    const wasPolling = this.isPolling;
    this.isPolling = isIdleElse && polls > this.#pollCycles;
    if (!this.isPolling) this.sincePs = lp.nowPs;
    else if (!wasPolling) this.sincePs = this.#sampledPs;
    const pollers = this.isPolling ? host.cores.filter(({ current }) => current?.mode === 'busy').length : 0;
    this.isQuiescent = lp.dueCount === healthTimerCount + pollers;
    [this.#sampledPs, this.#recordCount] = [lp.nowPs, lp.recordCount];
    [this.#workCycles, this.#pollCycles] = [work, polls];
  }
}

function cyclesOf(cores: readonly Core[], isMeant: (cause: number) => boolean): number {
  return cores
    .flatMap(({ account }) => [...account.cycles].filter((_, cause) => isMeant(cause)))
    .reduce((total, cycles) => total + cycles, 0);
}
