export type { QueueAddress } from './connection.ts';
export { BullmqEngine } from './engine.ts';
export { serveQueue } from './worker.ts';
