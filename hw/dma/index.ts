export { BusInterface, busWires, type SlotSetup } from './bus-interface.ts';
export { DmaReadEngine } from './dma-read-engine.ts';
export { DmaWriteEngine } from './dma-write-engine.ts';
export { DmaStatus } from './errors.ts';
export { type DmaConfig, dmaParameters } from './parameters.ts';
export { tlpCountOf } from './split.ts';
export {
  TrafficClass,
  trafficClassCount,
  trafficClassNames,
} from './traffic-class.ts';
export type { WriteRequesterPort } from './write-queue.ts';
