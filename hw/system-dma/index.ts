export { MemoryBus } from './memory-bus.ts';
export { systemDmaParameters } from './parameters.ts';
export { SystemDma } from './system-dma.ts';
export { systemDmaWires } from './system-dma-blocks.ts';
