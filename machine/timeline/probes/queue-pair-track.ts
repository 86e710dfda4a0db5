import type { Stream } from '../stream.ts';

/** The track of a queue pair's events, both operations and errors. */
export const queuePairTrack = (stream: Stream, qpn: number): number =>
  stream.track('queue pairs', `QP 0x${qpn.toString(16)}`);
