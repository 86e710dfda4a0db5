/**
 * Makes the blocks of the data path and hands each of them, by name, the parts that it declares. Blocks of one group are made
 * together; the order is that of their stages, from the output side back.
 */
import type { BlockAccount } from '../../sim/index.ts';
import { CompletionWriter } from './completion/index.ts';
import type { DataPathParts } from './data-path-parts.ts';
import { AsyncEvents } from './events/index.ts';
import { FrameReceiver, FrameTransmitter } from './frames/index.ts';
import { KeyUnit } from './keys/index.ts';
import { DataPathObjects, Flusher, QueuePairErrors, RequestEnds } from './lifecycle/index.ts';
import { Transmitter } from './packets/index.ts';
import { PayloadWriter, ReceiveScatter, ReceiveWqeFetch } from './receive-queue/index.ts';
import { DatagramReceiver, Receiver } from './receiver/index.ts';
import { Acknowledgements, RequestCompletion, Requester, RetryTimers } from './requester/index.ts';
import { Responder, ResponseEngine } from './responder/index.ts';
import { Inbound, Outbound } from './roce/index.ts';
import { SendScheduler, WorkArrivals, WqeFetch } from './send-queue/index.ts';

/** The blocks by name. */
export type DataPathBlocks = ReturnType<typeof makeBlocks>;

export function makeBlocks(parts: DataPathParts) {
  const { translator, qpcCache, cqcCache, srqcCache, pageFaults, loopback, roceLink, ethernet } = parts;
  const output = makeOutput(parts);
  const input = makeInput(parts);
  const { receiver, frameReceiver } = input;
  const scatterAccount = ethernet === undefined ? receiver.account : frameReceiver.account;
  return {
    translator,
    qpcCache,
    cqcCache,
    srqcCache,
    pageFaults,
    completions: output.completions,
    asyncEvents: output.asyncEvents,
    loopback,
    transmitter: output.transmitter,
    frameTransmitter: output.frameTransmitter,
    writer: output.writer,
    ...input,
    roceLink,
    outbound: new Outbound(parts.requestPackets),
    inbound: new Inbound(parts.receiveTurns),
    ...makeSendSide(parts),
    ...makeReceiveStages(parts, receiver.account, scatterAccount),
    ...makeLifecycle(parts),
  };
}

/** Completions, events and packets on their way out, and received payload on its way to memory. */
function makeOutput(parts: DataPathParts) {
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
  const { ports, addresses, ethernet, loopback, roceLink, violations } = parts;
  const { records, requestPackets, responsePackets, receiveBuffers } = parts;
  return {
    completions,
    asyncEvents: new AsyncEvents({ domain }),
    transmitter: new Transmitter({
      lp,
      domain,
      config,
      dmaRead,
      ports,
      addresses,
      ethernet,
      qps,
      sram,
      records,
      requestPackets,
      responsePackets,
      loopback,
      roceLink,
    }),
    frameTransmitter: new FrameTransmitter({
      lp,
      domain,
      config,
      ethernet,
      qps,
      sram,
      records,
      requestPackets,
      violations,
    }),
    writer: new PayloadWriter({ domain, dmaWrite, receiveBuffers }),
  };
}

/** Receive WQEs, responses, and the receivers of packets and frames. */
function makeInput(parts: DataPathParts) {
  const { lp, domain, config, dmaRead, dmaWrite, qps, srqs, costs, transport, diagnostics } = parts;
  const { sram, sramView, allocateSram, translator, pageFaults, qpcCache, srqcCache } = parts;
  const { receives: format } = parts.formats;
  const receives = new ReceiveWqeFetch({
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
  const { responsePackets, readUnit } = parts;
  const responses = new ResponseEngine({
    domain,
    config,
    dmaRead,
    dmaWrite,
    qps,
    sram,
    sramView,
    allocateSram,
    translator,
    pageFaults,
    responsePackets,
    readUnit,
    transport,
    diagnostics,
    costs,
  });
  const { ports, addresses, ethernet, loopback, roceLink, receiveTurns, received, violations } = parts;
  const { specialQps, managers, groups } = parts;
  const receiver = new Receiver({
    lp,
    domain,
    config,
    ports,
    specialQps,
    managers,
    groups,
    qps,
    qpcCache,
    loopback,
    receiveTurns,
    received,
    violations,
    costs,
  });
  const frameReceiver = new FrameReceiver(
    { lp, domain, config, address: addresses[0]!, ethernet, qps, qpcCache, roceLink, receiveTurns, costs },
    roceLink.isOn ? receiver.account : undefined,
  );
  return { receives, responses, receiver, frameReceiver };
}

/** From a QP with work to its packets, and operations on keys. */
function makeSendSide(parts: DataPathParts) {
  const { lp, domain, config, dmaRead, dmaWrite, contextMemory, keyFormat, qps, diagnostics, costs } = parts;
  const { sram, sramView, allocateSram, translator, pageFaults, qpcCache } = parts;
  const { records, lines, requestPackets, readUnit } = parts;
  const { sends } = parts.formats;
  return {
    timers: new RetryTimers({ lp, domain, config, qps, diagnostics }),
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

/**
 * Blocks that work in the receiver's stage.
 * @param scatterAccount of the receiver that scatters: of frames where the port is of Ethernet
 */
function makeReceiveStages(parts: DataPathParts, account: BlockAccount, scatterAccount: BlockAccount) {
  const { domain, qps, cqs, srqs, sramView, translator, pageFaults } = parts;
  const { receives: format } = parts.formats;
  const { received, violations, transport, diagnostics } = parts;
  return {
    acknowledgements: new Acknowledgements(
      { translator, pageFaults, received, transport, diagnostics },
      account,
    ),
    scatter: new ReceiveScatter({ qps, srqs, sramView, format, translator, pageFaults }, scatterAccount),
    datagrams: new DatagramReceiver(
      { qps, pageFaults, received, violations, transport, diagnostics },
      account,
    ),
    responder: new Responder(
      { domain, cqs, srqs, translator, pageFaults, received, transport, diagnostics },
      account,
    ),
  };
}

/** Doorbells, and what becomes of requests, QPs and the other objects. */
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
    errors: new QueuePairErrors({ lp, qps, cqs, diagnostics }),
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
