export { BullmqEngine } from './bullmq-engine.ts';
export type { QueueAddress } from './connection.ts';
export { serveQueue } from './worker.ts';
