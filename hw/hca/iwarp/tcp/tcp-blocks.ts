/** Makes the parts and the blocks of the TCP engine, and their wires: a transport that runs over TCP adds its own. */
import type { BlockAccount, ClockDomain, LogicalProcess, Wires } from '../../../../sim/index.ts';
import {
  type ContextMemory,
  type ContextMisses,
  type DmaReads,
  type DmaWrites,
  makeContextCache,
  type SramAllocator,
} from '../../memory/index.ts';
import type { HcaConfig } from '../../parameters.ts';
import type { EthernetAttachment } from '../../port/index.ts';
import type { IwarpConfig } from '../iwarp-parameters.ts';
import { ConnectionIndex } from './connection-index.ts';
import { placeBytesOf, placeCountOf, SegmentMemory } from './segment-memory.ts';
import { StreamSide } from './stream-side.ts';
import { TcpControl } from './tcp-control.ts';
import { TcpEngine } from './tcp-engine.ts';
import { TcpEvents, type TcpEventsPorts } from './tcp-events.ts';
import { segmentHeadersBytes } from './tcp-frames.ts';
import { TcpLoopback } from './tcp-loopback.ts';
import { TcpTable } from './tcp-table.ts';
import { TcpTransmitter, type TcpTransmitterPorts } from './tcp-transmitter.ts';

/** Parts of the device that the TCP engine uses. */
export interface TcpSite {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly config: HcaConfig;
  readonly iwarp: IwarpConfig;
  readonly ethernet: EthernetAttachment;
  readonly address: { readonly isActive: boolean };
  readonly contextMemory: ContextMemory;
  readonly dmaRead: DmaReads;
  readonly dmaWrite: DmaWrites;
  readonly sram: SramAllocator;
  /** Connections and listeners that the device may have. */
  readonly connectionsMax: number;
  /** See ContextCacheSetup. */
  readonly misses?: ContextMisses | undefined;
}

/** Payload of the largest segment: without options, over IPv4. */
const segmentBytesMaxOf = (mtuBytes: number): number => mtuBytes - segmentHeadersBytes(false);

/** On-chip memory that {@link makeTcpBlocks} allocates for segments; contexts being read and written come in addition. */
export function tcpSramBytes({ retransmissionBytes, reorderBytes }: IwarpConfig, mtuBytes: number): number {
  const segmentBytes = segmentBytesMaxOf(mtuBytes);
  const places = placeCountOf(retransmissionBytes, segmentBytes) + placeCountOf(reorderBytes, segmentBytes);
  return places * placeBytesOf(segmentBytes);
}

export type TcpBlocks = ReturnType<typeof makeTcpBlocks>;

/** The blocks by name, in the order of their stages, from the output side back. */
export function makeTcpBlocks(site: TcpSite) {
  const { lp, domain, config, iwarp, ethernet, address, contextMemory, connectionsMax, sram } = site;
  const { mtuBytes } = ethernet.side;
  const segmentBytes = segmentBytesMaxOf(mtuBytes);
  const table = new TcpTable(connectionsMax);
  const index = new ConnectionIndex();
  const memoryOf = (memoryBytes: number): SegmentMemory => {
    const count = placeCountOf(memoryBytes, segmentBytes);
    return new SegmentMemory(
      sram.bytes,
      sram.allocate(count * placeBytesOf(segmentBytes)),
      count,
      segmentBytes,
    );
  };
  const sendMemory = memoryOf(iwarp.retransmissionBytes);
  const reorderMemory = memoryOf(iwarp.reorderBytes);
  const tcpContexts = makeContextCache(site, 'auxc', table, iwarp.contextEntries, iwarp.contextWays);
  const tcpLoopback = new TcpLoopback(config, ethernet.port.frameBytesMax);
  const tcpTransmitter = new TcpTransmitter({
    ...{ lp, domain, config, ethernet, address, loopback: tcpLoopback },
    frameCount: iwarp.transmitFrames,
  });
  return {
    tcpContexts,
    tcpEvents: new TcpEvents({ domain, table }),
    tcpTransmitter,
    tcpLoopback,
    tcpEngine: new TcpEngine({
      ...{ lp, domain, config, iwarp, ethernet, address, contextMemory, table, index },
      ...{ contexts: tcpContexts, sendMemory, reorderMemory },
      ...{ loopback: tcpLoopback, frameBytes: tcpTransmitter.bytes },
    }),
    tcpStreams: new StreamSide({ table, sendMemory }),
    tcpControl: new TcpControl({ table, index, mtuBytes }),
  };
}

/** The cycle accounts of these blocks: reports have them, and a new epoch moves them. */
export const tcpAccountsOf = (b: TcpBlocks): readonly BlockAccount[] =>
  [b.tcpEngine, b.tcpTransmitter, b.tcpEvents].map(({ account }) => account);

/** Neighbours of the TCP engine outside of it. */
export interface TcpSurroundings {
  readonly eventQueues: TcpEventsPorts['eventQueues'];
  readonly frameTransmitter: TcpTransmitterPorts['frameTransmitter'];
  readonly frameReceiver: { frameArrived(slot: number): void };
}

export function tcpWires(b: TcpBlocks, surroundings: TcpSurroundings): Wires<TcpBlocks> {
  const { tcpEngine: engine, tcpEvents: events, tcpTransmitter: transmitter } = b;
  const { eventQueues, frameTransmitter, frameReceiver } = surroundings;
  return {
    tcpContexts: { tcpReceive: engine, tcpSend: engine },
    tcpEvents: { eventQueues, engine },
    tcpTransmitter: { engine, frameTransmitter },
    tcpLoopback: { transmitter, engine },
    tcpEngine: { transmitter, events, frameReceiver },
    tcpStreams: { engine, events },
    tcpControl: { engine },
  };
}
