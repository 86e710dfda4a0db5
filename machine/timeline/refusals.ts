/**
 * Checks of a device that refuse: values found and compared in a translation, requests that the responder refuses, and
 * completions with an error. They are rare, so each record has everything needed to explain it.
 */
import { EventType } from '../../abi/index.ts';
import { ADDRESS_TOP_UNIT } from '../../base/index.ts';
import type { Hca, QueuePair, TranslationPort } from '../../hw/hca/index.ts';
import { Opcode, opcodeRow, startsMessage } from '../../wire/index.ts';
import { around } from './around.ts';
import {
  answerBadKey,
  answerBadPd,
  answerMissingRight,
  answerOutOfBounds,
  answerPageFault,
  type RequestCheck,
} from './kinds.ts';

/** A translation by key that ended an access. */
export interface NotedAccess {
  readonly qpn: number;
  /** Number of the accessing block. */
  readonly user: number;
  readonly key: number;
  readonly answer: number;
  readonly address: number;
  readonly lengthBytes: number;
  readonly found: number;
  readonly heldTo: number;
  readonly heldToEnd: number;
}

/** A request that put the responder's QP into the error state, or that an unreliable connection dropped silently. */
export interface NotedRefusal {
  readonly qpn: number;
  readonly check: RequestCheck;
  readonly opcode: number;
  readonly psn: number;
  readonly found: number;
  readonly heldTo: number;
  readonly requesterQpn: number;
  /** Picosecond of the epoch. */
  readonly atPs: number;
}

/** A completion of a send or receive queue. */
export interface NotedCompletion {
  readonly qpn: number;
  readonly cq: number;
  readonly wqeCounter: number;
  readonly syndrome: number;
  readonly isSend: boolean;
  /** Picosecond of the epoch. */
  readonly atPs: number;
}

/** Calls `note` for each translation by key that ends an access, by the requesting QP. */
export function watchAccesses({ dataPath: { parts } }: Hca, note: (access: NotedAccess) => void): void {
  const { translator, mptCache, qps } = parts;
  const noteRefusal = (
    user: number,
    answer: number,
    [key, pd, lower, top, lengthBytes, rights, pair]: Parameters<TranslationPort['translate']>,
  ): void => {
    if (answer < answerBadKey || answer === answerPageFault) return;
    const address = wholeAddress(lower, top);
    const line = mptCache.directory.find(key >>> 8);
    const [found, heldTo, heldToEnd] = ((): readonly [number, number, number] => {
      if (line < 0) return [key, NONE, 0];
      const start = wholeAddress(mptCache.start[line]!, mptCache.startTop[line]!);
      if (answer === answerBadKey) return [key, mptCache.status[line] === 0 ? mptCache.key[line]! : NONE, 0];
      if (answer === answerBadPd) return [pd, mptCache.pd[line]!, 0];
      if (answer === answerOutOfBounds) return [address, start, start + mptCache.length[line]!];
      return answer === answerMissingRight ? [rights, mptCache.rights[line]!, 0] : [address, NONE, 0];
    })();
    const qpn = qps.numberOf[pair.slot]!;
    note({ qpn, user, key, answer, address, lengthBytes, found, heldTo, heldToEnd });
  };
  translator.users.forEach((port, user) => {
    for (const name of ['translate', 'check'] as const)
      around(port, name, (translate) => (...access) => {
        const answer = translate(...access);
        noteRefusal(user, answer, access);
        return answer;
      });
  });
}

const NONE = -1;

/** Exact for addresses of this machine's programs; guests may use addresses from 2^53 on, for which it is the nearest number. */
const wholeAddress = (lower: number, top: number): number => lower + top * ADDRESS_TOP_UNIT;

type IbtaDataPath = NonNullable<Hca['ibta']>;

/** Calls `note` before a request puts its QP into the error state or is silently dropped; see request-checks.ts. */
export function watchRequests(
  { domain, lp }: Hca,
  { parts, blocks }: IbtaDataPath,
  note: (refusal: NotedRefusal) => void,
): void {
  const { qps, received } = parts;
  // A send queue that cannot be read ends in the same way, but is not a request of the peer.
  let isOwnQueue = false;
  around(blocks.errors, 'queueFailed', (queueFailed) => (qp, cycle) => {
    isOwnQueue = true;
    queueFailed(qp, cycle);
    isOwnQueue = false;
  });
  around(blocks.errors, 'refused', (refused) => (qp, eventType, cycle) => {
    if (isOwnQueue) return refused(qp, eventType, cycle);
    const pair = qps.rows[qp]!;
    const [check, found, heldTo] = ((): readonly [RequestCheck, number, number] => {
      const foreign = pair.serviceBits === xrcService ? foreignQueue(parts, pair) : undefined;
      if (eventType === EventType.WQ_ACCESS_ERROR) return foreign ?? ['access', 0, 0];
      if (eventType === EventType.WQ_CATAS_ERROR) return ['broken', 0, 0];
      if (eventType !== EventType.WQ_INVAL_REQ_ERROR) return ['receive', 0, 0];
      const name = opcodeRow(received.opcode)?.name ?? '';
      const isAtomic = /^RC_(MASKED_)?(COMPARE_SWAP|FETCH_ADD)$/.test(name);
      const isRead = name === 'RC_RDMA_READ_REQUEST';
      const underWay = blocks.responses.newCount(qp);
      if ((isAtomic || isRead) && underWay >= pair.readResourcesMax)
        return ['readResources', underWay + 1, pair.readResourcesMax];
      const right = isAtomic ? RIGHT_ATOMIC : isRead ? RIGHT_READ : name.includes('WRITE') ? RIGHT_WRITE : 0;
      if (isAtomic && received.virtualAddress % 8 !== 0)
        return ['atomicAlignment', wholeAddress(received.virtualAddress, received.virtualAddressTop), 8];
      if ((pair.remoteRights & right) !== right && received.payloadBytes <= pair.mtuBytes)
        return ['qpRight', right, pair.remoteRights];
      return ['sequenceOrLength', received.payloadBytes, pair.mtuBytes];
    })();
    note({
      qpn: qps.numberOf[qp]!,
      check,
      // The receiver has converted an XRC opcode to that of RC.
      opcode: received.opcode | pair.serviceBits,
      psn: received.psn,
      found,
      heldTo,
      requesterQpn: pair.remoteQpn,
      atPs: domain.clock.edgePs(cycle),
    });
    refused(qp, eventType, cycle);
  });
  around(parts.transport, 'count', (count) => (name) => {
    count(name);
    if (name !== 'unreliableRefused') return;
    const { opcode, psn, destinationQpn: qpn } = received;
    const { remoteRights, remoteQpn: requesterQpn } = qps.rows[qps.slotOf(qpn)]!;
    // An unreliable connection has SEND, which needs no right, and WRITE.
    const isOfQp = (remoteRights & RIGHT_WRITE) === 0;
    const [check, found, heldTo]: readonly [RequestCheck, number, number] = isOfQp
      ? ['qpRight', RIGHT_WRITE, remoteRights]
      : ['access', 0, 0];
    note({ qpn, check, opcode, psn, found, heldTo, requesterQpn, atPs: lp.nowPs });
  });
}

/** Upper bits of the opcodes of XRC. */
const xrcService = Opcode.XRC_SEND_FIRST;

/** The domain of the SRQ that an XRC request names, and that of the QP, if they differ; else undefined. */
function foreignQueue(
  { srqs, received }: IbtaDataPath['parts'],
  pair: QueuePair,
): readonly [RequestCheck, number, number] | undefined {
  const srq = srqs.slotOf(received.sharedReceiveQueue);
  const domain = srq === -1 ? NONE : srqs.xrcDomain[srq]!;
  const isOther = !startsMessage(received.opcode) && srqs.numberOf[srq] !== pair.srqn;
  return domain !== pair.xrcDomain || isOther ? ['sharedQueue', domain, pair.xrcDomain] : undefined;
}

/** Access rights of a QP for its peer, as in QPC (hw/hca/objects/qp-table.ts). */
const RIGHT_READ = 1;
const RIGHT_WRITE = 2;
const RIGHT_ATOMIC = 4;

/** Calls `note` for each completion of both queues, before it is posted. */
export function watchCompletions(
  { dataPath: { parts, blocks }, domain }: Hca,
  note: (completion: NotedCompletion) => void,
): void {
  around(blocks.completions, 'post', (post) => (posted, cycle) => {
    note({
      qpn: parts.qps.numberOf[posted.qp]!,
      cq: posted.cq,
      wqeCounter: posted.wqeCounter,
      syndrome: posted.syndrome,
      isSend: posted.isSend,
      atPs: domain.clock.edgePs(cycle),
    });
    post(posted, cycle);
  });
}
