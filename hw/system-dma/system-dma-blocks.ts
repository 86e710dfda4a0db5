/** The blocks of the controller, and who calls whom: system-dma.ts puts them between ports, memory and the root complex. */
import type { Wires } from '../../sim/index.ts';
import { SystemDmaPorts } from './system-dma-ports.ts';
import {
  type RootComplexPort,
  type SystemDmaCore,
  TransferMachine,
  type TransferMachinePorts,
} from './transfer-machine.ts';

export function makeBlocks(core: SystemDmaCore) {
  return { machine: new TransferMachine(core), registers: new SystemDmaPorts(core.channels) };
}

export type SystemDmaBlocks = ReturnType<typeof makeBlocks>;
/** With its own port of the root complex, which is made before them. */
export type SystemDmaBlocksAndPort = SystemDmaBlocks & { readonly rootComplex: RootComplexPort };

/** Who calls whom. */
export function systemDmaWires(
  b: SystemDmaBlocksAndPort & Pick<TransferMachinePorts, 'interrupts'>,
): Wires<SystemDmaBlocksAndPort> {
  return {
    machine: { registers: b.registers, rootComplex: b.rootComplex, interrupts: b.interrupts },
    registers: { machine: b.machine },
    rootComplex: { stores: b.machine },
  };
}
