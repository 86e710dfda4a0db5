export { SystemDmaChannel } from './channel.ts';
export { BUS_WAIT_CAUSE, MemoryBus } from './memory-bus.ts';
export { type SystemDmaConfig, systemDmaParameters } from './parameters.ts';
export { SystemDma, type SystemDmaDevicePort, type SystemDmaOptions } from './system-dma.ts';
