/**
 * Contents of a node's blocks at an instant, by name: work in progress, and memory that software has given them. After
 * software has freed everything, an idle machine holds the same as when it was built.
 */
import type { HcaNode } from './hca-node.ts';
import type { HostNode } from './host-node.ts';

/** Counts by name. */
export type Held = Readonly<Record<string, number>>;

export function heldByHca({ hca }: HcaNode): Held {
  const { dataPath, ibta, control, dmaRead, dmaWrite, pcieFunction, linkPort, wirePorts } = hca;
  const { parts, blocks } = dataPath;
  const { records } = parts;
  const { frameReceiver } = blocks;
  const countOf = (requesters: readonly { readonly count: number }[]): number =>
    requesters.reduce((sum, { count }) => sum + count, 0);
  return {
    // Objects that software has created.
    queuePairs: parts.qps.liveCount,
    completionQueues: parts.cqs.liveCount,
    sharedReceiveQueues: parts.srqs.liveCount,
    eventQueues: control.eqs.liveCount,
    icmPages: dataPath.parts.contextMemory.mappedPageCount,
    // On-chip contents of these queues.
    sendWqeLines: dataPath.parts.lines.heldCount,
    receiveWqeLines: dataPath.blocks.receives.heldCount,
    // Work in progress.
    commands: control.processor.isIdle ? 0 : 1,
    dmaTags: dmaRead.pendingTagCount,
    dmaReads: countOf(dmaRead.requesters),
    dmaWrites: countOf(dmaWrite.requesters),
    requestSlots: parts.requestPackets.heldCount,
    sendRecords: records.capacity - records.freeCount,
    wqeFetches: dataPath.blocks.wqeFetch.heldCount,
    scheduled: dataPath.blocks.scheduler.heldCount,
    requester: dataPath.blocks.requester.heldCount,
    payloadWrites: dataPath.blocks.writer.heldCount,
    completions: dataPath.blocks.completions.heldCount,
    flushes: dataPath.blocks.flusher.heldCount,
    asyncEvents: dataPath.blocks.asyncEvents.heldCount,
    events: control.events.heldCount,
    pageRequests: dataPath.blocks.pageFaults.heldCount,
    translations: dataPath.parts.translator.heldCount,
    contextReads: [
      dataPath.parts.qpcCache,
      dataPath.parts.cqcCache,
      dataPath.parts.srqcCache,
      hca.eqcCache,
    ].reduce((sum, cache) => sum + cache.heldCount, 0),
    ...(ibta === undefined ? {} : heldByIbta(ibta)),
    receivedBytes: wirePorts.reduce((sum, { receiveBufferedBytes }) => sum + receiveBufferedBytes, 0),
    receivedFrames: frameReceiver.heldCount,
    pcieRequests: pcieFunction.completer.count + linkPort.receiver.heldCount,
    pcieTlps: linkPort.transmitter.waitingCount,
    pendingInterrupts: pcieFunction.msix.pendingCount,
  };
}

/** Work in progress of the IBTA transport, and retry timers that run for its QPs. */
function heldByIbta({ parts, blocks }: NonNullable<HcaNode['hca']['ibta']>): Held {
  return {
    timers: blocks.timers.heldCount,
    responseSlots: parts.responsePackets.heldCount,
    responses: blocks.responses.heldCount,
    atomics: blocks.responses.isInAtomic ? 1 : 0,
    loopbackPackets: blocks.loopback.heldCount,
  };
}

export function heldByHost({ host, rootComplex, interruptGate, port }: HostNode): Held {
  return {
    iommuPages: host.iommu?.mappedPages ?? 0,
    deviceReads: rootComplex.reads.heldCount,
    hostTlps: port.transmitter.waitingCount,
    hostTlpsReceived: port.receiver.heldCount,
    heldInterrupts: interruptGate.heldCount,
  };
}
