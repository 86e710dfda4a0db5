/** Interface of this room: see README.md. */
export { DataPathObjects } from './data-path-objects.ts';
export { Flusher, type WordMonitors } from './flusher.ts';
export { QueuePairErrors } from './queue-pair-errors.ts';
export { RequestEnds } from './request-ends.ts';
