/** Clocks of a machine and the cost of crossing between them. */
import type { MachineConfig } from '../../machine/profile/index.ts';

const psPerMhzPeriod = 1e6;

export class Clocks {
  readonly corePs: number;
  readonly rootComplexPs: number;
  readonly hcaPs: number;
  /**
   * An arrival is served at the next edge of its clock domain: half a period on average, because no two clocks have a
   * ratio that preserves their phase.
   */
  readonly toRootComplexPs: number;
  readonly toHcaPs: number;

  constructor({ host, pcie, hca }: MachineConfig) {
    this.corePs = psPerMhzPeriod / host.core.clockMHz;
    this.rootComplexPs = psPerMhzPeriod / pcie.rootComplex.clockMHz;
    this.hcaPs = psPerMhzPeriod / hca.coreClockMHz;
    this.toRootComplexPs = this.rootComplexPs / 2;
    this.toHcaPs = this.hcaPs / 2;
  }

  /** A latency of the root complex is an integer number of cycles, rounded up (latencyCyclesOf in root-complex-writes.ts). */
  rootComplexLatencyPs(latencyPs: number): number {
    return Math.ceil(latencyPs / this.rootComplexPs) * this.rootComplexPs;
  }
}
