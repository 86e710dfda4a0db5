/**
 * When an Ethernet switch may forward a frame that is still arriving:
 *
 *     all its outputs are idle ── nothing is sent, waits or is paused there
 *     no output is faster than its input ── it would run out of bytes within the frame
 *     its first 64 bytes have come ── what a switch reads of it is among them
 *
 * Otherwise the frame is stored whole. A frame for several outputs is cut through if all of them permit it. A frame
 * that has begun to leave cannot be dropped any more: if its frame check sequence proves wrong, it leaves with a wrong
 * one, and the next port that stores it drops it. Sources: Microchip, Cut-Through; HPE 5700; Dell OS10; Linux
 * drivers/net/dsa/ocelot/felix_vsc9959.c.
 */
import type { Picoseconds } from '../../base/index.ts';
import { type EthernetConfig, type EthernetPort, ethernetByteTime } from '../../wire/index.ts';

/** Bytes of the shortest frame, FCS included. */
const HEADER_BYTES = 64;

/** Time from the first bit of a frame until a switch has what it reads of it. */
export function headerDurationPs(config: EthernetConfig): Picoseconds {
  const { numeratorPs, denominator } = ethernetByteTime(config);
  return Math.ceil(((config.preambleBytes + HEADER_BYTES) * numeratorPs) / denominator);
}

type Rate = Pick<EthernetConfig, 'gigabitsPerSecond'>;

/** Whether an output sends faster than an input receives. */
export const isFaster = (output: Rate, input: Rate): boolean =>
  output.gigabitsPerSecond > input.gigabitsPerSecond;

/** Whether a port sends nothing, neither frames nor pauses, and the far end has not paused this priority. */
export function isIdle(port: EthernetPort, priority: number, nowPs: Picoseconds): boolean {
  const { pausedUntilPs, priorities } = port.flowControl;
  return port.freePs <= nowPs && Math.max(pausedUntilPs, priorities.pausedUntilPs(priority)) <= nowPs;
}
