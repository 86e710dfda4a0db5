/** Interface of this room: see docs/timeline.md. */
export { hcaStream, hostStream, nicStream, slotStream } from './attach.ts';
export * from './kinds.ts';
export { type Stream, type TimelineOptions, timelineRecordsMax } from './stream.ts';
export {
  type DroppedRecords,
  mergedTimeline,
  Timeline,
  type TimelineRecord,
  type TimelineTrack,
} from './timeline.ts';
