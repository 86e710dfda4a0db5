/**
 * Keeps the packets that pass one end of a cable, at an adapter or a switch, as bytes with exact times, for a capture
 * file. Bounded: at the limit it drops and counts the newest packets, or with `keepsLatest` the
 * oldest.
 */
import { type ExactPs, exactPs, type LogicalProcess } from '../../sim/index.ts';
import { byteTimeOf, EthernetPort, type WirePort, type WireTap } from '../../wire/index.ts';
import { type CaptureOptions, capturedEndAt } from '../analysis/index.ts';

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
  /** Port of the node, from 1. */
  readonly port: number;
  /** Name of the process at this end. */
  readonly name: string;
  /** Whether the packets are Ethernet frames; else they are InfiniBand packets. */
  readonly isEthernet: boolean;
  /** Rate of its cable. */
  readonly bitsPerSecond: bigint;
  readonly packets: readonly CapturedPacket[];
  /** Packets dropped because the log was full. */
  readonly droppedPackets: number;
}

/** Approximate overhead of an entry in addition to its bytes: in memory, and in a file. */
const ENTRY_BYTES = 64;

class WireLog implements WireTap {
  readonly isEthernet: boolean;
  readonly bitsPerSecond: bigint;
  droppedPackets = 0;
  readonly #packets: CapturedPacket[] = [];
  /** Index of the first packet that is kept; those before it await {@link #makeRoom}. */
  #first = 0;
  readonly #keepsLatest: boolean;
  readonly #lp: LogicalProcess;
  readonly #direction: CapturedPacket['direction'] | undefined;
  #bytesLeft: number;

  constructor(
    lp: LogicalProcess,
    direction: CapturedPacket['direction'] | undefined,
    { sizeBytes, keepsLatest = false }: CaptureOptions,
    port: WirePort | EthernetPort,
  ) {
    this.isEthernet = port instanceof EthernetPort;
    this.bitsPerSecond = bitsPerSecondOf(port);
    this.#lp = lp;
    this.#direction = direction;
    this.#bytesLeft = sizeBytes;
    this.#keepsLatest = keepsLatest;
  }

  get packets(): readonly CapturedPacket[] {
    return this.#packets.slice(this.#first);
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
    if (this.#keepsLatest) this.#makeRoom();
    if (this.#bytesLeft < 0) {
      // The earliest packets end for good with the first that does not fit; among the latest, a packet that is too long
      // is left out.
      this.#bytesLeft = this.#keepsLatest ? this.#bytesLeft + lengthBytes + ENTRY_BYTES : 0;
      this.droppedPackets++;
      return;
    }
    this.#packets.push({
      atPs: exactPs(this.#lp.epochUs, atPs),
      direction,
      bytes: new Uint8Array(bytes.subarray(first, first + lengthBytes)),
      note,
    });
  }

  /**
   * Drops the earliest packets until the new one fits. They leave the array in batches, so that a packet costs constant
   * time.
   */
  #makeRoom(): void {
    while (this.#bytesLeft < 0 && this.#first < this.#packets.length) {
      this.#bytesLeft += this.#packets[this.#first++]!.bytes.length + ENTRY_BYTES;
      this.droppedPackets++;
    }
    if (this.#first <= this.#packets.length / 2) return;
    this.#packets.splice(0, this.#first);
    this.#first = 0;
  }
}

export type { WireLog };

const BITS_PER_BYTE = 8n;
const BITS_PER_GIGABIT = 1e9;
const PS_PER_SECOND = 1_000_000_000_000n;

function bitsPerSecondOf(port: WirePort | EthernetPort): bigint {
  if (port instanceof EthernetPort) return BigInt(port.config.gigabitsPerSecond * BITS_PER_GIGABIT);
  const { numeratorPs, denominator } = byteTimeOf(port.config);
  return (BITS_PER_BYTE * PS_PER_SECOND * BigInt(denominator)) / BigInt(numeratorPs);
}

/** Logs at a node's ends of cables, for those that the options name. @param ports by number from 1; undefined for one without a cable */
export const attachWireLogs = (
  options: CaptureOptions | undefined,
  node: number,
  lp: LogicalProcess,
  ports: readonly (WirePort | EthernetPort | undefined)[],
): (WireLog | undefined)[] =>
  ports.map((port, index) => {
    if (options === undefined || port === undefined) return undefined;
    const end = capturedEndAt(options, node, index + 1);
    if (end === undefined) return undefined;
    const log = new WireLog(lp, end.direction, options, port);
    port.tap = log;
    return log;
  });

/** The kept packets of a node's logs. @param logs by port from 1 */
export const wireCapturesOf = (
  node: number,
  name: string,
  logs: readonly (WireLog | undefined)[],
): WireCapture[] =>
  logs.flatMap((log, index) => {
    if (log === undefined) return [];
    const { isEthernet, bitsPerSecond, packets, droppedPackets } = log;
    return [{ node, port: index + 1, name, isEthernet, bitsPerSecond, packets, droppedPackets }];
  });
