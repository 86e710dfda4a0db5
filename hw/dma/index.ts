export { BusInterface, busWires, type SlotSetup } from './bus-interface.ts';
export { DmaStatus } from './errors.ts';
export { type DmaConfig, dmaParameters } from './parameters.ts';
export { DmaReadEngine } from './read-engine.ts';
export { firstTlpBytes } from './split.ts';
export {
  TrafficClass,
  trafficClassCount,
  trafficClassNames,
} from './traffic-class.ts';
export { DmaWriteEngine } from './write-engine.ts';
export type { WriteRequesterPort } from './write-queue.ts';
