/** Interface of this room: see docs/how-to/timeline.md. */
export { around } from './around.ts';
export { hcaStream, hostStream, nicStream, portOfTrack, slotStream, switchStream } from './attach.ts';
export * from './kinds.ts';
export type { HostAddresses } from './probes/hca.ts';
export { watchAccesses, watchCompletions, watchRequests } from './refusals.ts';
export { type Stream, type TimelineOptions, timelineRecordsMax } from './stream.ts';
export {
  type DroppedRecords,
  mergedTimeline,
  Timeline,
  type TimelineRecord,
  type TimelineTrack,
} from './timeline.ts';
