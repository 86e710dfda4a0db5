/**
 * The arithmetic of FPDUs (RFC 5044, 4): one DDP segment in MPA's frame, in a stream that has a marker in each 512 bytes or none.
 *
 *     [marker] length 16 │ DDP segment │ pad to 4 bytes │ CRC32c       a marker lies wherever the place in the stream is a multiple of 512
 *
 * The place in the stream counts from the first byte after the request or reply of its direction. Places are kept modulo 512: a phase.
 */
import { ReflectedCrc } from '../../base/index.ts';

export const LENGTH_BYTES = 2;
export const CRC_BYTES = 4;
export const MARKER_BYTES = 4;
export const MARKER_DISTANCE_BYTES = 512;
export const PHASE_MASK = MARKER_DISTANCE_BYTES - 1;
/** Bytes between two markers. */
const BETWEEN_MARKERS_BYTES = MARKER_DISTANCE_BYTES - MARKER_BYTES;
const ALIGNMENT_BYTES = 4;

/** Bounds of the longest DDP segment, whatever the segment size of TCP (RFC 5044, 3 and 4.5). */
const MULPDU_MIN_BYTES = 128;
const MULPDU_MAX_BYTES = 64_768;

/** CRC of an FPDU; its low byte is sent first. Source: RFC 5044, 4.4; RFC 3385. */
export const crc32c = new ReflectedCrc(0x1edc_6f41, 32);

/** Bytes of length, segment and pad: everything before the CRC but markers. */
export const paddedBytes = (segmentBytes: number): number =>
  (LENGTH_BYTES + segmentBytes + ALIGNMENT_BYTES - 1) & -ALIGNMENT_BYTES;

/** Bytes of an FPDU without markers. */
export const plainBytes = (segmentBytes: number): number => paddedBytes(segmentBytes) + CRC_BYTES;

/** Markers among `bytes` other bytes that begin at `phase`; one that follows the last byte is not counted. */
function markersAmong(phase: number, bytes: number): number {
  if (bytes === 0) return 0;
  if (phase === 0) return Math.ceil(bytes / BETWEEN_MARKERS_BYTES);
  const first = MARKER_DISTANCE_BYTES - phase;
  return bytes <= first ? 0 : Math.ceil((bytes - first) / BETWEEN_MARKERS_BYTES);
}

/** Bytes in the stream of an FPDU with markers that begins at `phase`. */
export const markedBytes = (phase: number, segmentBytes: number): number =>
  plainBytes(segmentBytes) + MARKER_BYTES * markersAmong(phase, plainBytes(segmentBytes));

/**
 * MULPDU: bytes of the longest DDP segment whose FPDU fits into one segment of TCP, wherever markers lie (RFC 5044, 4.5).
 * @param effectiveSegmentBytes EMSS: the maximum segment size less the options of each segment
 */
export function multiplePduBytes(effectiveSegmentBytes: number, hasMarkers: boolean): number {
  const markers = hasMarkers ? MARKER_BYTES * Math.ceil(effectiveSegmentBytes / MARKER_DISTANCE_BYTES) : 0;
  const overhead = LENGTH_BYTES + CRC_BYTES + markers + (effectiveSegmentBytes % ALIGNMENT_BYTES);
  return Math.min(Math.max(effectiveSegmentBytes - overhead, MULPDU_MIN_BYTES), MULPDU_MAX_BYTES);
}

/** Bytes of the longest DDP segment whose FPDU fits into `roomBytes` of the stream from `phase` on; negative if none does. */
export function segmentBytesWithin(roomBytes: number, phase: number, hasMarkers: boolean): number {
  const whole = roomBytes & -ALIGNMENT_BYTES;
  if (!hasMarkers) return whole - LENGTH_BYTES - CRC_BYTES;
  const first = phase === 0 ? 0 : Math.min(MARKER_DISTANCE_BYTES - phase, whole);
  const markers = MARKER_BYTES * Math.ceil((whole - first) / MARKER_DISTANCE_BYTES);
  return whole - markers - LENGTH_BYTES - CRC_BYTES;
}
