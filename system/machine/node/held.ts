/**
 * What the blocks of a node hold at an instant, by name: work under way, and memory that software has given them. A machine at rest
 * whose software has given everything back holds what it held when it was built.
 */
import type { HcaNode } from './hca-node.ts';
import type { HostNode } from './host-node.ts';

/** Counts by name. */
export type Held = Readonly<Record<string, number>>;

export function heldByHca({ hca }: HcaNode): Held {
  const { dataPath, control, dmaRead, dmaWrite, pcieFunction, linkPort, wirePort } = hca;
  const { tables, records, transmitter } = dataPath;
  const countOf = (requesters: readonly { readonly count: number }[]): number =>
    requesters.reduce((sum, { count }) => sum + count, 0);
  return {
    // What software has made.
    queuePairs: tables.qps.liveCount,
    completionQueues: tables.cqs.liveCount,
    sharedReceiveQueues: tables.srqs.liveCount,
    eventQueues: control.eqs.liveCount,
    icmPages: dataPath.core.icm.mappedPageCount,
    // What these hold on chip.
    sendWqeLines: dataPath.lines.heldCount,
    receiveWqeLines: dataPath.receives.heldCount,
    timers: dataPath.timers.heldCount,
    // Work under way.
    commands: control.processor.isIdle ? 0 : 1,
    dmaTags: dmaRead.pendingTagCount,
    dmaReads: countOf(dmaRead.requesters),
    dmaWrites: countOf(dmaWrite.requesters),
    requestSlots: transmitter.requests.heldCount,
    responseSlots: transmitter.responses.heldCount,
    sendRecords: records.capacity - records.freeCount,
    wqeFetches: dataPath.wqeFetch.heldCount,
    scheduled: dataPath.scheduler.heldCount,
    requester: dataPath.requester.heldCount,
    responses: dataPath.responses.heldCount,
    atomics: dataPath.responses.isInAtomic ? 1 : 0,
    payloadWrites: dataPath.writer.heldCount,
    completions: dataPath.completions.heldCount,
    flushes: dataPath.flusher.heldCount,
    asyncEvents: dataPath.asyncEvents.heldCount,
    events: control.events.heldCount,
    pageRequests: dataPath.pageFaults.heldCount,
    translations: dataPath.translator.heldCount,
    contextReads: [dataPath.qpcCache, dataPath.cqcCache, dataPath.srqcCache, hca.eqcCache].reduce(
      (sum, cache) => sum + cache.heldCount,
      0,
    ),
    loopbackPackets: dataPath.loopback.heldCount,
    receivedBytes: wirePort.receiveBufferedBytes,
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
