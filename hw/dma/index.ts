export { type ArbitrationPolicy, REQUESTER_COUNT_MAX } from './arbiter.ts';
export { DmaRequestError, DmaStatus } from './errors.ts';
export type { DmaReadFunction, DmaReadLink, DmaWriteFunction, DmaWriteLink } from './link.ts';
export { DmaMessageSender } from './message-sender.ts';
export { type DmaConfig, dmaParameters } from './parameters.ts';
export { DmaReadEngine } from './read-engine.ts';
export type { ReadDone, ReadRequesterOptions } from './read-queue.ts';
export type { DmaReadEngineOptions } from './read-return.ts';
export {
  TrafficClass,
  type TrafficClassName,
  trafficClassCount,
  trafficClassNames,
} from './traffic-class.ts';
export { DmaRequesterCounters } from './waiting.ts';
export { DmaWriteEngine, type DmaWriteEngineOptions } from './write-engine.ts';
export type { WriteDone, WriteRequesterOptions } from './write-queue.ts';
