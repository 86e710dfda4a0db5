/**
 * The transport iWARP: RDMAP over DDP over MPA over TCP connections of this card (RFC 5040, 5041, 5044, 6581). The RDMA side is `rdma/`; the TCP
 * engine is handed in.
 */
import type { BlockAccount, Wires } from '../../../sim/index.ts';
import { PACKET_PAYLOAD_BYTES_MAX, PacketQueue } from '../packets/index.ts';
import type {
  EngineBlocks,
  EngineParts,
  Transport,
  TransportRoles,
  TransportSite,
} from '../transport/index.ts';
import type { IwarpConfig } from './iwarp-parameters.ts';
import {
  IwarpRequests,
  Placement,
  PlacementQueue,
  RdmaConnections,
  RdmaPacket,
  RdmaTransmitter,
  ReadResponder,
  SegmentCounters,
  StreamEnds,
} from './rdma/index.ts';
import type { TcpStreams } from './streams.ts';

/** The TCP engine, as the device hands it to the transport. */
export interface TcpSide<Blocks extends object> {
  /** Makes its blocks, whose stages come before those of the RDMA side. */
  makeBlocks(parts: EngineParts): Blocks;
  streamsOf(blocks: Blocks): TcpStreams;
  accountsOf(blocks: Blocks): readonly BlockAccount[];
  /** The block that receives frames from the port, and the block that waits for room in it. */
  portEndsOf(blocks: Blocks): {
    readonly frameSink: TransportRoles['frameSink'];
    readonly link: { spaceFreed(): void };
  };
  /** The wires of all blocks: its own, and those of the RDMA side. */
  wires(blocks: Blocks, engines: EngineBlocks, rdma: Wires<RdmaBlocks>): Wires<RdmaBlocks & Blocks>;
}

export type IwarpParts = ReturnType<typeof makeParts>;
type Parts = EngineParts & IwarpParts;
export type RdmaBlocks = ReturnType<typeof makeRdmaBlocks>;

function makeParts(
  { domain, config, qps, allocateSram, requestSlotBytes, ethernet }: TransportSite,
  iwarp: IwarpConfig,
  hasExtensions: boolean,
) {
  const queueOf = (packets: number) =>
    new PacketQueue<RdmaPacket>(
      packets,
      allocateSram(packets * requestSlotBytes),
      (slot, payloadOffset, pair) => new RdmaPacket(slot, payloadOffset, pair),
      requestSlotBytes,
    );
  const frameBytesMax = ethernet?.port.frameBytesMax ?? PACKET_PAYLOAD_BYTES_MAX;
  const placementQueue = new PlacementQueue({
    domain,
    config,
    iwarp,
    // With the segment that closes a gap, TCP hands over all that it kept after the gap.
    burstBytesMax: frameBytesMax + iwarp.reorderBytes,
  });
  const requestPackets = queueOf(config.transmitBufferPackets);
  const responsePackets = queueOf(config.responseBufferPackets);
  const segmentCounters = new SegmentCounters();
  return {
    iwarp,
    hasExtensions,
    placementQueue,
    requestPackets,
    responsePackets,
    segmentCounters,
    connections: new RdmaConnections({
      domain,
      qps,
      placementQueue,
      segmentCounters,
      hasExtensions,
      earlySegmentsMax: iwarp.earlySegments,
      requestPackets,
      responsePackets,
    }),
    receiveBuffers: {
      receivePacketsMax: placementQueue.receivePacketsMax + (ethernet?.port.slotCount ?? 0),
      /** Segments have negative names, frames those of their slots. */
      consume: (name: number): void => {
        if (name < 0) placementQueue.consume(~name);
        else ethernet!.port.consume(name);
      },
    },
    frameNames: { frameName: (slot: number): number => slot },
  };
}

function makeRdmaBlocks(parts: Parts) {
  const {
    domain,
    config,
    iwarp,
    hasExtensions,
    dmaRead,
    dmaWrite,
    sram,
    sramView,
    allocateSram,
    translator,
    pageFaults,
    qpcCache,
    receiveTurns,
  } = parts;
  const { records, readUnit, costs, placementQueue, connections, requestPackets, responsePackets } = parts;
  return {
    connections,
    placementQueue,
    rdmaTransmitter: new RdmaTransmitter({
      domain,
      config,
      iwarp,
      dmaRead,
      sram,
      requestPackets,
      responsePackets,
    }),
    readResponder: new ReadResponder({
      domain,
      config,
      dmaRead,
      dmaWrite,
      sram,
      sramView,
      allocateSram,
      translator,
      pageFaults,
      readUnit,
      responsePackets,
      costs,
    }),
    placement: new Placement({
      domain,
      config,
      iwarp,
      placementQueue,
      qpcCache,
      translator,
      pageFaults,
      receiveTurns,
      costs,
    }),
    streamEnds: new StreamEnds({ domain }),
    iwarpRequests: new IwarpRequests({
      domain,
      connections,
      recordCount: records.capacity,
      hasExtensions,
      costs,
    }),
  };
}

/** @param streams of the TCP engine, and what waits for room in the port */
const rdmaWires = (
  b: RdmaBlocks,
  streams: TcpStreams,
  link: { spaceFreed(): void },
  engines: EngineBlocks,
): Wires<RdmaBlocks> => ({
  connections: {
    streams,
    scheduler: engines.scheduler,
    ends: b.streamEnds,
    transmitter: b.rdmaTransmitter,
    responder: b.readResponder,
    errors: engines.errors,
  },
  placementQueue: { streams, placement: b.placement },
  rdmaTransmitter: {
    streams,
    connections: b.connections,
    requester: engines.requests,
    responder: b.readResponder,
    errors: engines.errors,
    link,
  },
  readResponder: {
    transmitter: b.rdmaTransmitter,
    connections: b.connections,
    streamEnds: b.streamEnds,
    writer: engines.writer,
  },
  placement: {
    writer: engines.writer,
    scatter: engines.scatter,
    completions: engines.completions,
    completion: engines.completion,
    keys: engines.keys,
    connections: b.connections,
    streamEnds: b.streamEnds,
    responder: b.readResponder,
    requests: b.iwarpRequests,
    ends: engines.ends,
  },
  streamEnds: {
    streams,
    connections: b.connections,
    placement: b.placement,
    transmitter: b.rdmaTransmitter,
    responder: b.readResponder,
    errors: engines.errors,
  },
  iwarpRequests: { ends: engines.ends },
});

/** @param hasExtensions whether messages of RFC 7306 are allowed: atomics and immediate data */
export const iwarpTransport = <Tcp extends object>(
  iwarp: IwarpConfig,
  hasExtensions: boolean,
  tcp: TcpSide<Tcp>,
): Transport<IwarpParts, RdmaBlocks & Tcp> => ({
  makeParts: (site) => makeParts(site, iwarp, hasExtensions),
  makeBlocks: (parts) => ({ ...tcp.makeBlocks(parts), ...makeRdmaBlocks(parts) }),
  rolesOf: (b) => ({
    connections: b.connections,
    requestTransport: b.iwarpRequests,
    outbound: b.rdmaTransmitter,
    inbound: b.placement,
    responses: b.readResponder,
    otherAccounts: tcp.accountsOf(b),
    frameSink: tcp.portEndsOf(b).frameSink,
  }),
  wires: (b, engines) =>
    tcp.wires(b, engines, rdmaWires(b, tcp.streamsOf(b), tcp.portEndsOf(b).link, engines)),
});
