import type { Stream } from '../stream.ts';

/** The track of what happens to a queue pair, of both its operations and its errors. */
export const queuePairTrack = (stream: Stream, qpn: number): number =>
  stream.track('queue pairs', `QP 0x${qpn.toString(16)}`);
