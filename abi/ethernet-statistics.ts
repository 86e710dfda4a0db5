/**
 * Statistics of DUMP_ETH_STATS: frames and octets of a port by priority. A group has a counter for each of eight priorities,
 * then one for frames without a tag; transmission groups have one more, for frames that never left the port. Lengths include
 * the FCS. Source: interface sheet 3.19; offsets of transmission and of the errors: reference/ethernet-and-roce.md.
 */

import { array, bits32, layout, nested, u32, u64 } from '../base/index.ts';

/** Priorities of a tag, and the index of frames without one. */
export const priorityCount = 8;
export const untaggedPlace = priorityCount;

const receivedPlaces = priorityCount + 1;
const transmittedPlaces = priorityCount + 2;

/** Longest frame, with FCS, of each size bin except the last, which ends with the MTU. */
export const frameSizeBins = [64, 127, 255, 511, 1023, 1518, 1522, 1548] as const;

const source = 'sheet 3.19';

const octetCounters = layout(
  'octets of frames',
  { sizeBytes: 0x18, byteOrder: 'big', source },
  {
    withFraming: u64(0x00, 'preamble and gap, too'),
    withoutFraming: u64(0x08),
    good: u64(0x10, 'of frames without errors'),
  },
);

const frameTotals = layout(
  'totals of frames',
  { sizeBytes: 0x18, byteOrder: 'big', source },
  { frames: u64(0x00), tagged: u64(0x08) },
);

const group = (places: number, sizeBytes: number) =>
  layout('frames by priority', { sizeBytes, byteOrder: 'big', source }, { frames: array(u64(0x00), places) });
const received = group(receivedPlaces, 0x48);
const transmitted = group(transmittedPlaces, 0x50);
/** The bins, frames up to the MTU, and frames beyond it. */
const sizeGroups = frameSizeBins.length + 2;

/** Out box of DUMP_ETH_STATS. */
export const ethernetStatistics = layout(
  'DUMP_ETH_STATS',
  { sizeBytes: 0xbac, byteOrder: 'big', source },
  {
    receivedBySize: array(nested(0x000, received), sizeGroups),
    receivedBroadcast: nested(0x2d0, received),
    receivedMulticast: nested(0x318, received),
    receivedOtherGood: nested(0x360, received),
    receivedOctets: array(nested(0x3a8, octetCounters), receivedPlaces),
    receivedTotals: array(nested(0x480, frameTotals), receivedPlaces),
    receivedControl: u64(0x558),
    inRangeLengthErrors: u64(0x578),
    outOfRangeLengthErrors: u64(0x580),
    tooLong: u64(0x588),
    codingErrors: u64(0x590),
    transmittedBySize: array(nested(0x598, transmitted), sizeGroups),
    transmittedBroadcast: nested(0x8b8, transmitted),
    transmittedMulticast: nested(0x908, transmitted),
    transmittedOtherGood: nested(0x958, transmitted),
    transmittedOctets: array(nested(0x9a8, octetCounters), transmittedPlaces),
    transmittedTotals: array(nested(0xa98, frameTotals), transmittedPlaces),
    jabbers: u32(0xb88),
    crcErrors: u32(0xb8c),
    runts: u32(0xb90),
    tooShort: u32(0xb94),
    receiveDrops: u32(0xb98),
    overflowDrops: u32(0xb9c),
    lengthDrops: u32(0xba0),
    goodFrames: u32(0xba4),
    transmitDrops: u32(0xba8),
  },
);

const pauseCounters = layout(
  'pauses of a priority',
  { sizeBytes: 0x40, byteOrder: 'big', source },
  {
    receivedFrames: u64(0x00, 'PAUSE frames'),
    receivedUs: u64(0x08, 'time for which the far end had this one pause'),
    receivedTransitions: u64(0x10, 'ends of such pauses'),
    sentFrames: u64(0x18),
    sentUs: u64(0x20, 'time for which the far end was to pause'),
    sentTransitions: u64(0x28),
  },
);

/** Out box of DUMP_ETH_STATS for flow control. Pauses of the whole port are counted in all priorities (Linux, mlx4/en_port.c). */
export const flowControlStatistics = layout(
  'DUMP_ETH_STATS of flow control',
  { sizeBytes: 0x200, byteOrder: 'big', source },
  { priorities: array(nested(0x000, pauseCounters), priorityCount) },
);

/** Input modifier of DUMP_ETH_STATS. */
export const statisticsRequest = layout(
  'DUMP_ETH_STATS input modifier',
  { sizeBytes: 4, byteOrder: 'big', source: 'sheet 3.4' },
  {
    flowControl: bits32(0x00, 12, 12, 'the counters of flow control instead'),
    clears: bits32(0x00, 8, 8, 'the counters begin anew'),
    port: bits32(0x00, 7, 0),
  },
);
