/** Probes of an HCA, in addition to those of every adapter. */
import { addressPath, WqeOpcode } from '../../../abi/index.ts';
import { MAC_BYTES, macOfBytes } from '../../../base/index.ts';
import {
  type Hca,
  operationStages,
  portNames,
  type QueuePair,
  UD_OPCODE_BASE,
} from '../../../hw/hca/index.ts';
import { around } from '../around.ts';
import { flushedTrack, interruptStepNumbers } from '../kinds.ts';
import type { Stream } from '../stream.ts';
import { watchAdapter } from './adapter.ts';
import { watchAccount, watchFifos, watchLevel } from './blocks.ts';
import { watchContexts, watchTranslations } from './caches.ts';
import { watchChecks } from './checks.ts';
import { queuePairTrack } from './queue-pair-track.ts';

/** Hosts by the addresses of their ports: LIDs on InfiniBand, MACs on Ethernet. */
export type HostAddresses = ReadonlyMap<number, number>;

export function watchHca(stream: Stream, hca: Hca, hosts: HostAddresses): void {
  const { dataPath, control, domain, dmaRead, dmaWrite, pcieFunction } = hca;
  const accounts = [
    pcieFunction.account,
    pcieFunction.completer.account,
    control.processor.account,
    control.events.account,
    ...dataPath.accounts,
    dmaRead.account,
    dmaRead.returnAccount,
    dmaWrite.account,
  ];
  for (const account of accounts) watchAccount(stream, account, domain.clock);
  const { notifier } = dataPath.blocks.completions;
  watchFifos(stream, { ...dataPath.blocks, notifier, pcieFunction, dmaRead });
  watchPacketBuffers(stream, hca);
  watchAdapter(stream, hca);
  if (stream.has('caches')) watchCaches(stream, hca);
  if (stream.has('checks')) watchChecks(stream, hca);
  if (stream.has('doorbells')) watchDoorbells(stream, hca);
  if (stream.has('operations')) watchOperations(stream, hca, hosts);
  if (stream.has('interrupts')) watchModeration(stream, hca);
}

/** Packets of requests and responses that are being built or wait for the cable, and WQEs on chip. */
function watchPacketBuffers(stream: Stream, { dataPath, ibta }: Hca): void {
  const queues = {
    'request packets': dataPath.parts.requestPackets,
    ...(ibta === undefined ? {} : { 'response packets': ibta.parts.responsePackets }),
  };
  for (const [name, queue] of Object.entries(queues))
    watchLevel(stream, name, queue, ['open', 'close', 'clear'], () => queue.heldCount);
}

function watchCaches(stream: Stream, { dataPath: { parts, blocks }, eqcCache, domain }: Hca): void {
  const { qps, cqs, srqs, lines } = parts;
  watchContexts(stream, 'QPC', parts.qpcCache, portNames, (slot) => qps.numberOf[slot]!);
  watchContexts(stream, 'CQC', parts.cqcCache, portNames, (slot) => cqs.numberOf[slot]!);
  watchContexts(stream, 'SRQC', parts.srqcCache, portNames, (slot) => srqs.numberOf[slot]!);
  watchContexts(stream, 'EQC', eqcCache, ['eventWriter'], (slot) => slot);
  watchTranslations(stream, parts.translator);
  const track = stream.track('caches', 'WQE', { names: ['requester'] });
  around(blocks.wqeFetch, 'ask', (ask) => (pair, cycle) => {
    if (pair.isFetching === 0)
      stream.instant('cacheMiss', track, domain.clock.edgePs(cycle), 0, qps.numberOf[pair.slot]!);
    ask(pair, cycle);
  });
  around(lines, 'use', (use) => (line, blocks) => {
    stream.instant('cacheHit', track, stream.lp.nowPs, 0, qps.numberOf[line.qp]!);
    use(line, blocks);
  });
}

/** Doorbells as the device receives them: by QP, or for completion and event queues. */
function watchDoorbells(stream: Stream, { dataPath: { parts, blocks }, domain }: Hca): void {
  const { doorbells, arrivals } = blocks;
  const { clock } = domain;
  const track = stream.track('doorbells', 'BAR2');
  let qpn = -1;
  around(arrivals, 'sendRequested', (sendRequested) => (pair, cycle) => {
    qpn = parts.qps.numberOf[pair.slot]!;
    sendRequested(pair, cycle);
  });
  around(doorbells, 'barWrite', (barWrite) => (offset, view, at, lengthBytes, cycle) => {
    const { sendCount, blueFlameCount, armCount, eqCount } = doorbells;
    qpn = -1;
    const busyCycles = barWrite(offset, view, at, lengthBytes, cycle);
    const atPs = clock.edgePs(cycle);
    if (doorbells.blueFlameCount > blueFlameCount) stream.instant('blueFlame', track, atPs, qpn);
    else if (doorbells.sendCount > sendCount) stream.instant('doorbell', track, atPs, qpn);
    else if (doorbells.armCount > armCount) stream.instant('cqArm', track, atPs);
    else if (doorbells.eqCount > eqCount) stream.instant('eqDoorbell', track, atPs);
    return busyCycles;
  });
}

/**
 * Each operation at its end, with its stages: the amounts that the ledger of operations adds for it, so that the
 * records add up to the report.
 */
function watchOperations(stream: Stream, hca: Hca, hosts: HostAddresses): void {
  const { dataPath, ibta, domain } = hca;
  const { parts } = dataPath;
  const { operations, qps, records } = parts;
  const { clock } = domain;
  const before = new Float64Array(operationStages.length);
  around(operations, 'completed', (completed) => (request, cycle, isSilent) => {
    const { wqeCounter, messageBytes, packetCount } = request;
    const firstPsn = ibta?.parts.states.firstPsnOf(request) ?? 0;
    const opcode = operations.operationOf(request.qp, request.opcode);
    const row = operations.rows[opcode]!;
    const { count, lifePs, far } = row;
    operationStages.forEach((stage, index) => {
      before[index] = row.stagesPs[stage];
    });
    completed(request, cycle, isSilent);
    const qpn = qps.numberOf[request.qp]!;
    const { opcodeBase, remoteQpn } = qps.rows[request.qp]!;
    // Each datagram carries its own destination.
    const isDatagram = opcodeBase === UD_OPCODE_BASE;
    const destinationQpn = isDatagram ? records.datagrams.destinationQpn[request.number]! : remoteQpn;
    const destination = isDatagram ? undefined : hosts.get(remoteAddressOf(hca, request.qp));
    const track = queuePairTrack(stream, qpn);
    const endPs = clock.edgePs(cycle);
    if (row.count === count)
      return stream.instant('failed', track, endPs, qpn, wqeCounter, opcode, request.syndrome);
    // A time of an hour or more is in the ledger's far sums: only its end is shown.
    const isFar = row.far !== far;
    const tookPs = isFar ? 0 : row.lifePs - lifePs;
    const silent = isSilent ? 1 : 0;
    stream.interval(
      'operation',
      track,
      endPs - tookPs,
      endPs,
      qpn,
      wqeCounter,
      opcode,
      messageBytes,
      silent,
      firstPsn,
      packetCount,
      destinationQpn,
      destination ?? -1,
    );
    if (isFar) return;
    let atPs = endPs - tookPs;
    operationStages.forEach((stage, index) => {
      const stagePs = row.stagesPs[stage] - before[index]!;
      if (stagePs > 0) stream.interval('stage', track, atPs, atPs + stagePs, index, qpn, wqeCounter, opcode);
      atPs += stagePs;
    });
  });
  around(operations, 'flushedUnstarted', (flushedUnstarted) => (opcode) => {
    flushedUnstarted(opcode);
    if (opcode !== WqeOpcode.NOP)
      stream.instant(
        'failed',
        stream.track('queue pairs', flushedTrack),
        stream.lp.nowPs,
        0,
        0,
        opcode,
        FLUSHED,
      );
  });
}

/** Address of the port that a connected QP sends to: its LID, or on Ethernet its MAC. */
function remoteAddressOf({ dataPath: { parts }, ethernetPort }: Hca, slot: QueuePair['slot']): number {
  const { qps } = parts;
  if (ethernetPort === undefined) return qps.rows[slot]!.remoteLid;
  const at = qps.pathOf(slot) + addressPath.fields.destinationMac.field.offset;
  return macOfBytes(qps.bytes.subarray(at, at + MAC_BYTES));
}

/** CQE syndrome of a work request flushed with its queue. */
const FLUSHED = 0x05;

/** Reasons to interrupt, and those merged with another. */
function watchModeration(stream: Stream, { control, domain }: Hca): void {
  const { moderation } = control.blocks;
  const track = stream.track('interrupts', 'moderation');
  const { requested, moderated } = interruptStepNumbers;
  around(moderation, 'consider', (consider) => (slot, cycle) => {
    const [asked, joined] = [moderation.requestedCount.slice(), moderation.moderatedCount.slice()];
    consider(slot, cycle);
    const atPs = domain.clock.edgePs(cycle);
    for (let vector = 0; vector < asked.length; vector++) {
      if (moderation.requestedCount[vector]! > asked[vector]!)
        stream.instant('interrupt', track, atPs, requested, vector);
      if (moderation.moderatedCount[vector]! > joined[vector]!)
        stream.instant('interrupt', track, atPs, moderated, vector);
    }
  });
}
