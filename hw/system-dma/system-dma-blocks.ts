/** The blocks of the controller, and their wires: system-dma.ts connects them between ports, memory and the root complex. */
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
/** The blocks and their own port of the root complex, which is created before them. */
export type SystemDmaBlocksAndPort = SystemDmaBlocks & { readonly rootComplex: RootComplexPort };

/** The wires of the blocks. */
export function systemDmaWires(
  b: SystemDmaBlocksAndPort & Pick<TransferMachinePorts, 'interrupts'>,
): Wires<SystemDmaBlocksAndPort> {
  return {
    machine: { registers: b.registers, rootComplex: b.rootComplex, interrupts: b.interrupts },
    registers: { machine: b.machine },
    rootComplex: { stores: b.machine },
  };
}
