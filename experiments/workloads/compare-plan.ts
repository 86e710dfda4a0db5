/**
 * The agreement between the two programs of a comparison: they move the same bytes from host 0 to host 1 by one of the
 * paths, measured the same way. One path is one simulation, on a machine of its own.
 */
import type { HostSpent } from '../../machine/index.ts';
import type { CompareNetwork } from './compare-networks.ts';

/** From the oldest to the newest. `dma` uses the system DMA controller. */
export const comparePaths = ['pio', 'dma', 'sockets', 'send', 'write', 'read'] as const;
export type ComparePath = (typeof comparePaths)[number];

/** Names of the paths in tables. */
export const pathTitles: Readonly<Record<ComparePath, string>> = {
  pio: 'programmed I/O',
  dma: 'system DMA',
  sockets: 'NIC, sockets',
  send: 'SEND/RECV',
  write: 'RDMA WRITE',
  read: 'RDMA READ',
};

/** Greatest number of bytes of one run: word-by-word copying takes long in simulated and real time. */
export const pathLimitBytes: Readonly<Record<ComparePath, number>> = {
  pio: 64 * 1024,
  dma: 256 * 1024,
  sockets: 64 * 1024 ** 2,
  send: 64 * 1024 ** 2,
  write: 64 * 1024 ** 2,
  read: 64 * 1024 ** 2,
};

/** Parameters that a path's machine needs. */
export function machineOf(path: ComparePath): Readonly<Record<string, string>> {
  if (path === 'pio' || path === 'dma') return { 'machine.adapter': 'nic', 'machine.nicDriver': 'none' };
  return { 'machine.adapter': path === 'sockets' ? 'nic' : 'hca' };
}

/** Arguments of both programs. */
export interface CompareArgs {
  readonly path: ComparePath;
  /** Bytes of a message; the last one of a file may be shorter. */
  readonly sizeBytes: number;
  readonly totalBytes: number;
  /** Single messages before the stream, whose time is the latency. */
  readonly latencyRounds: number;
  /** A file whose beginning is moved; otherwise the bytes are drawn from the machine's seed. */
  readonly file: string | null;
  /** The network that carries an RDMA path; left out: the machine's own. */
  readonly network?: CompareNetwork;
  /** Whether the bytes on the cable are counted. */
  readonly countsCable?: boolean;
}

/** A message in the memory of either side. */
export interface Message {
  readonly address: number;
  readonly lengthBytes: number;
}

/** Messages begin at multiples of this. */
const alignmentBytes = 64;
export const strideOf = ({ sizeBytes }: CompareArgs): number =>
  Math.ceil(sizeBytes / alignmentBytes) * alignmentBytes;

export const messageCountOf = ({ totalBytes, sizeBytes }: CompareArgs): number =>
  Math.ceil(totalBytes / sizeBytes);

/** Places of the messages in a buffer at `address`. */
export function messagesAt(args: CompareArgs, address: number): Message[] {
  return Array.from({ length: messageCountOf(args) }, (_, index) => ({
    address: address + index * strideOf(args),
    lengthBytes: Math.min(args.sizeBytes, args.totalBytes - index * args.sizeBytes),
  }));
}

/** One transfer from the view of one side. */
export interface SideTransfer {
  readonly isActive: boolean;
  readonly startPs: number;
  /** When this side had finished its part; for a side that does nothing, the start. */
  readonly endPs: number;
  readonly spent: HostSpent;
}

export interface SideResult {
  readonly latencies: readonly SideTransfer[];
  readonly stream: SideTransfer;
  /** Digest of all bytes of the stream: equal on both sides after a correct transfer. For a file, SHA-256 in hexadecimal. */
  readonly digest: string;
}

/** A side of a path, connected. */
export interface CompareSide {
  /** Whether the program of this side takes part; false for the passive side of a one-sided operation. */
  readonly isActive: boolean;
  /** Work before the start: posting receives. */
  prepare(messages: readonly Message[]): Promise<void>;
  run(messages: readonly Message[]): Promise<void>;
  close(): Promise<void>;
}
