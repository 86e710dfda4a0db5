/**
 * Contents of a node's blocks at an instant, by name: work in progress, and memory that software has given them. After
 * software has freed everything, an idle machine holds the same as when it was built.
 */
import type { HcaNode } from './hca-node.ts';
import type { HostNode } from './host-node.ts';

/** Counts by name. */
export type Held = Readonly<Record<string, number>>;

export function heldByHca({ hca }: HcaNode): Held {
  const { dataPath, control, dmaRead, dmaWrite, pcieFunction, linkPort, wirePorts } = hca;
  const { parts, blocks } = dataPath;
  const { records } = parts;
  const { transmitter, frameReceiver } = blocks;
  const countOf = (requesters: readonly { readonly count: number }[]): number =>
    requesters.reduce((sum, { count }) => sum + count, 0);
  return {
    // Objects that software has created.
    queuePairs: parts.qps.liveCount,
    completionQueues: parts.cqs.liveCount,
    sharedReceiveQueues: parts.srqs.liveCount,
    eventQueues: control.eqs.liveCount,
    icmPages: dataPath.parts.contextMemory.mappedPageCount,
    // On-chip contents of these.
    sendWqeLines: dataPath.parts.lines.heldCount,
    receiveWqeLines: dataPath.blocks.receives.heldCount,
    timers: dataPath.blocks.timers.heldCount,
    // Work in progress.
    commands: control.processor.isIdle ? 0 : 1,
    dmaTags: dmaRead.pendingTagCount,
    dmaReads: countOf(dmaRead.requesters),
    dmaWrites: countOf(dmaWrite.requesters),
    requestSlots: transmitter.requests.heldCount,
    responseSlots: transmitter.responses.heldCount,
    sendRecords: records.capacity - records.freeCount,
    wqeFetches: dataPath.blocks.wqeFetch.heldCount,
    scheduled: dataPath.blocks.scheduler.heldCount,
    requester: dataPath.blocks.requester.heldCount,
    responses: dataPath.blocks.responses.heldCount,
    atomics: dataPath.blocks.responses.isInAtomic ? 1 : 0,
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
    loopbackPackets: dataPath.blocks.loopback.heldCount,
    receivedBytes: wirePorts.reduce((sum, { receiveBufferedBytes }) => sum + receiveBufferedBytes, 0),
    receivedFrames: frameReceiver.heldCount,
    pcieRequests: pcieFunction.completer.count + linkPort.receiver.heldCount,
    pcieTlps: linkPort.transmitter.waitingCount,
    pendingInterrupts: pcieFunction.msix.pendingCount,
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
