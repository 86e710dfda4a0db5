/**
 * Makes the blocks of the data path and hands each of them, by name, the parts that it declares. Blocks of one group are made
 * together; the order is that of their stages, from the output side back. The transport makes its own.
 */
import type { BlockAccount } from '../../sim/index.ts';
import type { EthernetPort } from '../../wire/index.ts';
import { CompletionWriter } from './completion/index.ts';
import type { DataPathParts } from './data-path-parts.ts';
import { AsyncEvents } from './events/index.ts';
import { FrameReceiver, FrameRequests, FrameTransmitter, Inbound, Outbound } from './frames/index.ts';
import { KeyUnit } from './keys/index.ts';
import { DataPathObjects, Flusher, QueuePairErrors, RequestEnds } from './lifecycle/index.ts';
import {
  PayloadWriter,
  type ReceiveBuffers,
  ReceiveScatter,
  ReceiveWqeFetch,
} from './receive-queue/index.ts';
import { RequestCompletion, Requester } from './requester/index.ts';
import { SendScheduler, WorkArrivals, WqeFetch } from './send-queue/index.ts';
import type { RequestTransport, Transport, TransportParts, TransportRoles } from './transport/index.ts';

/** The engines by name. */
export type Engines = ReturnType<typeof makeOutput> & ReturnType<typeof makeEngines>;

/** The blocks by name: the engines, and those of the transport. */
export type DataPathBlocks<Blocks extends object = object> = Engines & Blocks;

export interface MadeBlocks<Blocks extends object> {
  readonly engines: Engines;
  /** The transport's. */
  readonly own: Blocks;
  /** All blocks of both; a reset visits them from the last to the first. */
  readonly all: DataPathBlocks<Blocks>;
}

export function makeBlocks<Own extends TransportParts, Blocks extends object>(
  parts: DataPathParts<Own>,
  transport: Transport<Own, Blocks>,
): MadeBlocks<Blocks> {
  const output = makeOutput(parts);
  const own = transport.makeBlocks(parts);
  const engines = makeEngines(parts, transport.rolesOf(own));
  return { engines: { ...output, ...engines }, own, all: { ...own, ...output, ...engines } };
}

/** Blocks that the transport's blocks follow, the memories that all share first. */
function makeOutput(parts: DataPathParts) {
  const { translator, qpcCache, cqcCache, srqcCache, pageFaults } = parts;
  return {
    translator,
    qpcCache,
    cqcCache,
    srqcCache,
    pageFaults,
    ...makeCompletions(parts),
    writer: makeWriter(parts),
    receives: makeReceives(parts),
  };
}

function makeEngines(parts: DataPathParts, { inbound, requestTransport }: TransportRoles) {
  const { requestPackets, receiveTurns, ethernet } = parts;
  const frameTransmitter = makeFrameTransmitter(parts);
  const frameReceiver = makeFrameReceiver(parts, receiveTurns && inbound.account);
  const frameRequests = new FrameRequests();
  return {
    frameTransmitter,
    frameReceiver,
    frameRequests,
    outbound: new Outbound(requestPackets),
    inbound: new Inbound(receiveTurns),
    ...makeSendSide(parts, requestTransport, frameRequests),
    scatter: makeScatter(parts, ethernet === undefined ? inbound.account : frameReceiver.account),
    ...makeLifecycle(parts),
  };
}

function makeCompletions(parts: DataPathParts) {
  const { lp, domain, config, dmaRead, dmaWrite, qps, cqs, operations, diagnostics, costs } = parts;
  const { sram, sramView, allocateSram, translator, cqcCache } = parts;
  const { completions: format } = parts.formats;
  const completions = new CompletionWriter({
    lp,
    domain,
    config,
    dmaRead,
    dmaWrite,
    qps,
    cqs,
    sram,
    sramView,
    allocateSram,
    format,
    translator,
    cqcCache,
    operations,
    diagnostics,
    costs,
  });
  return { completions, asyncEvents: new AsyncEvents({ domain }) };
}

function makeFrameTransmitter(parts: DataPathParts): FrameTransmitter {
  const { lp, domain, config, ethernet, qps, sram, records, requestPackets, violations } = parts;
  return new FrameTransmitter({
    lp,
    domain,
    config,
    ethernet,
    qps,
    sram,
    records,
    requestPackets,
    violations,
  });
}

/** Received payload on its way to memory. */
function makeWriter(parts: DataPathParts): PayloadWriter {
  const { domain, dmaWrite, carries, ethernet } = parts;
  const isFrames = carries === 'frames' && ethernet !== undefined;
  const receiveBuffers = isFrames ? frameBuffers(ethernet.port) : parts.receiveBuffers;
  return new PayloadWriter({ domain, dmaWrite, receiveBuffers });
}

/** Frames are named by their slots. */
const frameBuffers = (port: EthernetPort): ReceiveBuffers => ({
  receivePacketsMax: port.slotCount,
  consume: (slot) => port.consume(slot),
});

function makeReceives(parts: DataPathParts): ReceiveWqeFetch {
  const { domain, config, dmaRead, qps, srqs, costs } = parts;
  const { sramView, allocateSram, translator, srqcCache } = parts;
  const { receives: format } = parts.formats;
  return new ReceiveWqeFetch({
    domain,
    config,
    dmaRead,
    qps,
    srqs,
    sramView,
    format,
    allocateSram,
    translator,
    srqcCache,
    costs,
  });
}

/** @param account of the transport's receiver, where both are one pipeline */
function makeFrameReceiver(parts: DataPathParts, account: BlockAccount | undefined): FrameReceiver {
  const { lp, domain, config, addresses, ethernet, qps, qpcCache, frameNames, receiveTurns, costs } = parts;
  const address = addresses[0]!;
  return new FrameReceiver(
    { lp, domain, config, address, ethernet, qps, qpcCache, frameNames, receiveTurns, costs },
    account,
  );
}

/** Makes the send side: from a QP with work to its packets, and operations on keys. */
function makeSendSide(
  parts: DataPathParts,
  requestTransport: RequestTransport,
  frameRequests: RequestTransport,
) {
  const { domain, config, dmaRead, dmaWrite, contextMemory, keyFormat, qps, costs } = parts;
  const { sram, sramView, allocateSram, translator, pageFaults, qpcCache } = parts;
  const { records, lines, requestPackets, readUnit } = parts;
  const { sends } = parts.formats;
  return {
    scheduler: new SendScheduler(),
    wqeFetch: new WqeFetch({ domain, config, dmaRead, qps, sramView, translator, lines, sends, costs }),
    requester: new Requester({
      domain,
      config,
      dmaRead,
      qps,
      sram,
      sramView,
      translator,
      pageFaults,
      qpcCache,
      records,
      lines,
      sends,
      requestPackets,
      readUnit,
      costs,
      requestTransport,
      frameRequests,
    }),
    completion: new RequestCompletion(records),
    keys: new KeyUnit({
      domain,
      config,
      contextMemory,
      keyFormat,
      dmaRead,
      dmaWrite,
      qps,
      sram,
      allocateSram,
      translator,
    }),
  };
}

/** @param account of the receiver that scatters: of frames where the port is of Ethernet */
function makeScatter(parts: DataPathParts, account: BlockAccount): ReceiveScatter {
  const { qps, srqs, sramView, translator, pageFaults } = parts;
  const { receives: format } = parts.formats;
  return new ReceiveScatter({ qps, srqs, sramView, format, translator, pageFaults }, account);
}

/** Makes the blocks for doorbells and for the ends of requests, QPs and other objects. */
function makeLifecycle(parts: DataPathParts) {
  const { lp, domain, config, contextMemory, keyFormat, dmaRead, dmaWrite, monitors, personality } = parts;
  const { qps, cqs, srqs, sramView, translator, pageFaults, qpcCache, cqcCache, srqcCache } = parts;
  const { lines, records, violations, diagnostics, operations } = parts;
  const { sends } = parts.formats;
  return {
    flusher: new Flusher({ lp, domain, config, monitors, qps, sramView, sends, operations }),
    doorbells: personality.makeDoorbells({ config, qps, cqs, sramView, translator, lines, violations }),
    arrivals: new WorkArrivals(config),
    ends: new RequestEnds({ records, operations }),
    errors: new QueuePairErrors({ qps, cqs, diagnostics }),
    objects: new DataPathObjects({
      domain,
      contextMemory,
      keyFormat,
      dmaRead,
      dmaWrite,
      qps,
      cqs,
      srqs,
      translator,
      pageFaults,
      qpcCache,
      cqcCache,
      srqcCache,
      diagnostics,
    }),
  };
}
