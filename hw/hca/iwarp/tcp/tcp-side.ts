/**
 * The TCP engine as a part of a transport: the device passes it to the iWARP transport, which knows its blocks by these
 * functions only.
 */
import type { ContextMemory, ContextMisses, SramAllocator } from '../../memory/index.ts';
import type { EngineBlocks, EngineParts } from '../../transport/index.ts';
import type { IwarpConfig } from '../iwarp-parameters.ts';
import type { TcpStreams } from '../streams.ts';
import { makeTcpBlocks, type TcpBlocks, tcpAccountsOf, tcpWires } from './tcp-blocks.ts';
import type { TcpEventSink } from './tcp-events.ts';

/** The device around the engine, in addition to what all parts of a transport get. */
interface TcpSideSite {
  readonly iwarp: IwarpConfig;
  readonly contextMemory: ContextMemory;
  readonly sram: SramAllocator;
  /** Port 1. */
  readonly address: { readonly isActive: boolean };
  /** Connections and listeners that the device may have. */
  readonly connectionsMax: number;
  readonly eventQueues: TcpEventSink;
  /** See ContextCacheSetup. */
  readonly misses?: ContextMisses | undefined;
}

export const tcpSide = (site: TcpSideSite) => ({
  /** @throws RangeError on a device whose ports are of InfiniBand */
  makeBlocks({ lp, domain, config, dmaRead, dmaWrite, ethernet }: EngineParts): TcpBlocks {
    if (ethernet === undefined) throw new RangeError('TCP on a port of InfiniBand');
    return makeTcpBlocks({ ...site, lp, domain, config, dmaRead, dmaWrite, ethernet });
  },
  accountsOf: tcpAccountsOf,
  streamsOf: ({ tcpStreams }: TcpBlocks): TcpStreams => tcpStreams,
  /** The block that receives frames from the port, and the block that waits for room in it. */
  portEndsOf: ({ tcpEngine, tcpTransmitter }: TcpBlocks) => ({ frameSink: tcpEngine, link: tcpTransmitter }),
  /** The wires of the engine, in addition to those of the RDMA side. */
  wires<Rdma extends object>(
    blocks: TcpBlocks,
    { frameTransmitter, frameReceiver }: EngineBlocks,
    rdma: Rdma,
  ): Rdma & ReturnType<typeof tcpWires> {
    const { eventQueues } = site;
    return { ...rdma, ...tcpWires(blocks, { eventQueues, frameTransmitter, frameReceiver }) };
  },
});
