/** The ports of the HCA, as one block: commands address each by its number, each may have a cable. */
import type { BlockState } from '../../../sim/index.ts';
import type { HcaPort, HcaPortPorts } from './hca-port.ts';

export class HcaPorts {
  readonly all: readonly HcaPort[];

  constructor(all: readonly HcaPort[]) {
    this.all = all;
  }

  /** A port without a cable never becomes active. */
  connect(ports: HcaPortPorts): void {
    for (const port of this.all) port.connect(ports);
  }

  /** See Block.inspect. */
  inspect(): BlockState[] {
    return this.all.map((port) => port.inspect());
  }

  reset(): void {
    for (const port of this.all) port.reset();
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    for (const port of this.all) port.rebase(cycles);
  }
}
