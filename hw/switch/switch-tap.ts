/**
 * Observation of packets inside a switch: when each came, why it waited, and when it left. A switch without a tap does nothing for it.
 *
 * A packet is subject to the queue that it waits in: the input of an InfiniBand switch, whose first packet blocks those after it, or the
 * queue of an output and priority of an Ethernet switch. The switch reports the cause for which the first packet of a queue waits whenever
 * packets may have moved; it changes at no other instant.
 */
import type { Picoseconds } from '../../base/index.ts';

/**
 * Causes of waits, by their numbers in records:
 * - `headOfLine`: another packet of the input is first.
 * - `output`: the output sends another packet, or packets of the same queue that came before.
 * - `input`: the input is still read for the packet before, which leaves by another output.
 * - `credits`: the far end has not granted room for the packet.
 * - `pause`: the far end has paused the port or the priority.
 * - `link`: the port sends a packet of its own, for flow control, or a fault holds the link.
 */
export const switchWaits = ['headOfLine', 'output', 'input', 'credits', 'pause', 'link'] as const;
export type SwitchWait = (typeof switchWaits)[number];

/** Reasons for which a switch drops a packet, by their numbers in records. */
export const switchDrops = [
  'noRoute',
  'ownPort',
  'hoqLife',
  'linkLocal',
  'noRoom',
  'queueFull',
  'pauseWatchdog',
  'noLane',
  'inboundPkey',
  'outboundPkey',
  'wrongFcs',
  'vlStalled',
  'switchLifetime',
] as const;
export type SwitchDrop = (typeof switchDrops)[number];

/** A packet that leaves. */
export interface Departure {
  /** Port from 1. */
  readonly output: number;
  /** The queue that it waited in. */
  readonly queue: number;
  /** Since when it was the first of its input; left out where packets after the first are subject to the same cause. */
  readonly firstSincePs?: Picoseconds;
  /** When its last byte has left; with a gap to the next frame on Ethernet. */
  readonly untilPs: Picoseconds;
}

/** @typeParam Packet identity of a packet from its arrival until it has left by all its outputs */
export interface SwitchTap<Packet> {
  /** A packet came by port `input`, from 1, and may leave from `readyPs` on. */
  arrived(packet: Packet, input: number, readyPs: Picoseconds): void;
  /** A packet is not cut through: its last bit comes at `tailPs`, and it may leave from `readyPs` on. */
  stores(packet: Packet, tailPs: Picoseconds, readyPs: Picoseconds): void;
  /** The first packet of a queue waits for this cause to leave by port `output`; undefined: none waits. */
  waits(queue: number, cause: SwitchWait | undefined, output: number): void;
  /** A packet begins to leave by one of its outputs. */
  leaves(packet: Packet, departure: Departure): void;
  /** A packet, or its copy for an output, is dropped. */
  dropped(packet: Packet, reason: SwitchDrop, output?: number): void;
  /** The packet is no longer stored. */
  released(packet: Packet): void;
  /** A switch stops the sender at a port, for one class of traffic, or lets it continue. */
  stops(port: number, priority: number, isToStop: boolean): void;
  /** All that was due at this instant is done. */
  settled(): void;
}
