/**
 * MAC control frames as bytes, without FCS: building PAUSE and PFC frames, and parsing received ones.
 *
 *     PAUSE  01-80-c2-00-00-01 │ source │ 88 08 │ 00 01 │ quanta │ 42 bytes of zeros
 *     PFC    01-80-c2-00-00-01 │ source │ 88 08 │ 01 01 │ priorities │ 8 quanta, of priority 0 first │ 26 bytes of zeros
 *
 * Source: IEEE 802.3-2018, clause 31 and annexes 31A, 31B, 31D.
 */
import { array, joined, layout, u16, u32, viewOf } from '../base/index.ts';
import { ETHERNET_FRAME_MIN_BYTES } from './ethernet-sizing.ts';

/** EtherType of all MAC control frames. */
const CONTROL_TYPE = 0x8808;
const PAUSE_OPCODE = 0x0001;
const PRIORITY_PAUSE_OPCODE = 0x0101;
/** The group of this link only: no bridge forwards it. */
const PAUSE_GROUP = 0x0180_c200_0001;
const TYPE_PLACE = 12;

/** Bit times of one quantum of a pause. */
export const QUANTUM_BITS = 512;

const controlFrame = layout(
  'MAC control frame',
  { sizeBytes: ETHERNET_FRAME_MIN_BYTES, byteOrder: 'big', source: 'IEEE 802.3-2018, 31.4.1 and 31B.3' },
  {
    destination: joined(u16(0x00), u32(0x02)),
    source: joined(u16(0x06), u32(0x08)),
    type: u16(0x0c),
    opcode: u16(0x0e),
    quanta: u16(0x10),
  },
);

/** Priorities of IEEE 802.1Q. */
export const PRIORITY_COUNT = 8;

const priorityFrame = layout(
  'PFC frame',
  { sizeBytes: ETHERNET_FRAME_MIN_BYTES, byteOrder: 'big', source: 'IEEE 802.3-2018, 31D.3' },
  {
    destination: joined(u16(0x00), u32(0x02)),
    source: joined(u16(0x06), u32(0x08)),
    type: u16(0x0c),
    opcode: u16(0x0e),
    enabled: u16(0x10, 'bit n: priority n'),
    quanta: array(u16(0x12, 'of priority 0 first'), PRIORITY_COUNT),
  },
);

/** Quanta for each priority; undefined for one that a frame leaves as it is. */
export type PriorityQuanta = readonly (number | undefined)[];

/** Used instead of quanta: an opcode other than PAUSE; a PAUSE of another length, or for another station. */
export const UNKNOWN_OPCODE = -1;
export const MALFORMED = -2;

/** A PAUSE frame of the station with this MAC: the receiver must send nothing for this many quanta; 0 ends the pause. */
export const pauseFrame = (mac: number, quanta: number): Uint8Array =>
  controlFrame.encode({
    destination: PAUSE_GROUP,
    source: mac,
    type: CONTROL_TYPE,
    opcode: PAUSE_OPCODE,
    quanta,
  });

export const isControlFrame = (bytes: Uint8Array, at: number): boolean =>
  ((bytes[at + TYPE_PLACE]! << 8) | bytes[at + TYPE_PLACE + 1]!) === CONTROL_TYPE;

/** Quanta of a PAUSE for the station with this MAC, or the reason why a MAC control frame is not one. */
export function quantaOf(bytes: Uint8Array, at: number, frameBytes: number, mac: number): number {
  const view = viewOf(bytes);
  const { destination, opcode, quanta } = controlFrame.fields;
  if (opcode.get(view, at) !== PAUSE_OPCODE) return UNKNOWN_OPCODE;
  const to = destination.get(view, at);
  if (frameBytes !== ETHERNET_FRAME_MIN_BYTES || (to !== PAUSE_GROUP && to !== mac)) return MALFORMED;
  return quanta.get(view, at);
}

/** A PFC frame of the station with this MAC: the receiver must send nothing of a priority for its quanta; 0 ends its pause. */
export const priorityPauseFrame = (mac: number, quanta: PriorityQuanta): Uint8Array =>
  priorityFrame.encode({
    destination: PAUSE_GROUP,
    source: mac,
    type: CONTROL_TYPE,
    opcode: PRIORITY_PAUSE_OPCODE,
    enabled: quanta.reduce(
      (mask: number, count, priority) => mask | (count === undefined ? 0 : 1 << priority),
      0,
    ),
    quanta: quanta.map((count) => count ?? 0),
  });

/** The quanta of a PFC frame; undefined for any other MAC control frame. PFC has no other destination than the group. */
export function priorityQuantaOf(
  bytes: Uint8Array,
  at: number,
  frameBytes: number,
): PriorityQuanta | undefined {
  const view = viewOf(bytes);
  const { destination, opcode, enabled, quanta } = priorityFrame.fields;
  if (opcode.get(view, at) !== PRIORITY_PAUSE_OPCODE || frameBytes !== ETHERNET_FRAME_MIN_BYTES)
    return undefined;
  if (destination.get(view, at) !== PAUSE_GROUP) return undefined;
  const mask = enabled.get(view, at);
  return Array.from({ length: PRIORITY_COUNT }, (_, priority) =>
    ((mask >>> priority) & 1) === 0
      ? undefined
      : quanta.element.get(view, at + priority * quanta.strideBytes),
  );
}
