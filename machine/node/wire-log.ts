/**
 * Keeps the packets that pass one end of the cable, as bytes with exact times, for a capture file. Bounded: packets
 * beyond the limit are counted.
 */
import { type ExactPs, exactPs, type LogicalProcess } from '../../sim/index.ts';
import { EthernetPort, type WirePort, type WireTap } from '../../wire/index.ts';
import type { CaptureOptions } from '../analysis/index.ts';

interface CapturedPacket {
  /** When its last byte passed this end. */
  readonly atPs: ExactPs;
  readonly direction: 'inbound' | 'outbound';
  /** Bytes from LRH to VCRC; for an Ethernet port a frame without FCS. */
  readonly bytes: Uint8Array;
  /** Effect of a fault on it, if any. */
  readonly note: string;
}

/** Packets of one end of the cable, by time. */
export interface WireCapture {
  readonly node: number;
  /** Port of the node's adapter, from 1. */
  readonly port: number;
  /** Name of the process at this end. */
  readonly name: string;
  /** Whether the packets are Ethernet frames; else they are InfiniBand packets. */
  readonly isEthernet: boolean;
  readonly packets: readonly CapturedPacket[];
  /** Packets dropped because the log was full. */
  readonly droppedPackets: number;
}

/** Approximate overhead of an entry in addition to its bytes: in memory, and in a file. */
const ENTRY_BYTES = 64;

class WireLog implements WireTap {
  readonly isEthernet: boolean;
  readonly packets: CapturedPacket[] = [];
  droppedPackets = 0;
  readonly #lp: LogicalProcess;
  readonly #direction: CapturedPacket['direction'] | undefined;
  #bytesLeft: number;

  constructor(
    lp: LogicalProcess,
    direction: CapturedPacket['direction'] | undefined,
    sizeBytes: number,
    isEthernet: boolean,
  ) {
    this.isEthernet = isEthernet;
    this.#lp = lp;
    this.#direction = direction;
    this.#bytesLeft = sizeBytes;
  }

  packetPassed(
    direction: CapturedPacket['direction'],
    atPs: number,
    bytes: Uint8Array,
    first: number,
    lengthBytes: number,
    note: string,
  ): void {
    if (this.#direction !== undefined && direction !== this.#direction) return;
    this.#bytesLeft -= lengthBytes + ENTRY_BYTES;
    if (this.#bytesLeft < 0) {
      this.#bytesLeft = 0;
      this.droppedPackets++;
      return;
    }
    this.packets.push({
      atPs: exactPs(this.#lp.epochUs, atPs),
      direction,
      bytes: new Uint8Array(bytes.subarray(first, first + lengthBytes)),
      note,
    });
  }
}

export type { WireLog };

/** A log at a node's end of the cable, if the options request one. */
export function attachWireLog(
  options: CaptureOptions | undefined,
  node: number,
  lp: LogicalProcess,
  port: WirePort | EthernetPort,
): WireLog | undefined {
  const end = options?.ends.find((found) => found.node === node);
  if (options === undefined || end === undefined) return undefined;
  const log = new WireLog(lp, end.direction, options.sizeBytes, port instanceof EthernetPort);
  port.tap = log;
  return log;
}

/** The kept packets of a node's logs. @param logs by port from 1 */
export const wireCapturesOf = (
  node: number,
  name: string,
  logs: readonly (WireLog | undefined)[],
): WireCapture[] =>
  logs.flatMap((log, index) => {
    if (log === undefined) return [];
    const { isEthernet, packets, droppedPackets } = log;
    return [{ node, port: index + 1, name, isEthernet, packets, droppedPackets }];
  });
