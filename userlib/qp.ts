/**
 * Queue pairs: creation with libmlx4's sizes, transitions, query, destruction. Posting is in `post-send.ts` and
 * `post-recv.ts`.
 *
 *   buffer:  the queue with the larger stride first; with equal strides the send queue      (interface sheet 6.1)
 */
import { dataPointer, receiveRecord, srqNextSegment } from '../abi/index.ts';
import { asInteger, log2Ceil } from '../base/index.ts';
import { type QpAttr, QpAttrMask, type QpCap, QpStateVerb, QpTypeVerb } from '../driver/index.ts';
import { checkAddress } from './address-checks.ts';
import { IBV_QP_CREATE_BLOCK_SELF_MCAST_LB } from './constants.ts';
import { cleanCq, freeSharedNow } from './cq.ts';
import { checkArguments, uint8Max, uint32Max } from './numbers.ts';
import type { IbvContext, IbvCq, IbvPd, IbvQp, IbvSrq, IbvTargetQp } from './objects.ts';
import { type DoorbellRecord, QueueMemory } from './queue-memory.ts';
import { ReceiveRing, type ReceiveSizes, receiveSizesOf } from './receive-ring.ts';
import { SendRing, type SendSizes, sendSizesOf } from './send-ring.ts';
import { VerbsError, verb } from './verbs-error.ts';

export interface IbvQpInitAttr {
  readonly qpContext?: unknown;
  readonly sendCq: IbvCq;
  readonly recvCq: IbvCq;
  readonly srq?: IbvSrq | null;
  /** Limits as requested; after creation, as granted. */
  cap: Partial<QpCap>;
  readonly qpType: QpTypeVerb;
  /** 1: every send generates a completion. */
  readonly sqSigAll?: number;
  /** IBV_QP_CREATE_BLOCK_SELF_MCAST_LB, or none (of ibv_qp_init_attr_ex). */
  readonly createFlags?: number;
  /**
   * Operations of the calls ibv_wr_…, which libmlx4 lacks: any value except 0 is EOPNOTSUPP (of ibv_qp_init_attr_ex).
   */
  readonly sendOpsFlags?: number;
  /** WQEs have room for a masked compare and swap, like those of the kernel's QPs. */
  readonly hasMaskedAtomics?: boolean;
  /** Longest message in bytes that is stored in its receive WQE and copied when it is polled (mlx4dv_qp_init_attr). */
  readonly inlRecvSz?: number;
}

/** Longest inline data that a program may request, as in libmlx4. */
const maxInlineDataMax = 1024;

const qpTypes: readonly number[] = Object.values(QpTypeVerb);
const qpStateMax = QpStateVerb.IBV_QPS_ERR;

/** Creates a QP in RESET (ibv_create_qp); `init.cap` then holds the granted sizes. */
export async function createQp(pd: IbvPd, init: IbvQpInitAttr): Promise<IbvQp> {
  const { context } = pd;
  const place = context.platform.tap?.calls?.place();
  return verb('ibv_create_qp', async () => {
    const cap = checkedCap(context, init);
    checkArguments('ibv_create_qp', ['sqSigAll', init.sqSigAll ?? 0, uint32Max]);
    if (!qpTypes.includes(init.qpType) || init.qpType === QpTypeVerb.IBV_QPT_XRC_RECV)
      throw new VerbsError(
        'ibv_create_qp',
        'EINVAL',
        `qpType is ${String(init.qpType)}, expected IBV_QPT_RC, IBV_QPT_UC or IBV_QPT_UD`,
      );
    checkArguments('ibv_create_qp', ['createFlags', init.createFlags ?? 0, uint32Max]);
    if ((init.createFlags ?? 0) & ~IBV_QP_CREATE_BLOCK_SELF_MCAST_LB)
      throw new VerbsError(
        'ibv_create_qp',
        'EINVAL',
        `createFlags is ${init.createFlags}, expected IBV_QP_CREATE_BLOCK_SELF_MCAST_LB or 0`,
      );
    if ((init.sendOpsFlags ?? 0) !== 0)
      throw new VerbsError(
        'ibv_create_qp',
        'EOPNOTSUPP',
        `sendOpsFlags is ${init.sendOpsFlags}, expected 0: requests are posted by postSend (docs/reference/verbs.md)`,
      );
    const hasSrq = init.srq !== undefined && init.srq !== null;
    const { qpType, hasMaskedAtomics } = init;
    const send = sendSizesOf(
      qpType,
      cap.maxSendWr,
      cap.maxSendSge,
      cap.maxInlineData,
      qpType === QpTypeVerb.IBV_QPT_RC && hasMaskedAtomics,
    );
    // The longest WQE may hold less than the limits, which apply to all types.
    checkArguments(
      'ibv_create_qp',
      ['maxSendSge', cap.maxSendSge, send.maxSge],
      ['maxInlineData', cap.maxInlineData, send.maxInline],
    );
    const isInitiator = init.qpType === QpTypeVerb.IBV_QPT_XRC_SEND;
    const inlRecvSz = init.inlRecvSz ?? 0;
    checkArguments('ibv_create_qp', ['inlRecvSz', inlRecvSz, inlineReceiveMax(context)]);
    const hasReceiveQueue = !hasSrq && !isInitiator;
    if (!hasReceiveQueue && inlRecvSz > 0)
      throw new VerbsError(
        'ibv_create_qp',
        'EINVAL',
        `inlRecvSz is ${inlRecvSz}, expected 0 without a receive queue`,
      );
    const receive = hasReceiveQueue ? receiveSizesOf(cap.maxRecvWr, cap.maxRecvSge, inlRecvSz) : undefined;
    await context.cpu.settle();
    const layout = bufferLayout(send, receive);
    const buffer = QueueMemory.map(context.platform.memory, layout.bytes);
    const record = receive === undefined ? undefined : context.receiveRecords.take();
    try {
      if (buffer === undefined || (receive !== undefined && record === undefined)) {
        throw new VerbsError('ibv_create_qp', 'ENOMEM', `no memory for ${layout.bytes} bytes of queues`);
      }
      const qp = await makeQp(pd, init, { send, receive, layout, buffer, record });
      context.platform.tap?.calls?.made('QP', qp.qpNum, place);
      return qp;
    } catch (error) {
      if (record !== undefined) context.receiveRecords.give(record);
      buffer?.unmap();
      throw error;
    }
  });
}

/** Changes state and attributes; `attrMask` of IBV_QP_… selects the fields of `attr` (ibv_modify_qp). */
export async function modifyQp(qp: IbvQp | IbvTargetQp, attr: QpAttr, attrMask: number): Promise<void> {
  const { context } = qp;
  const calls = context.platform.tap?.calls;
  const place = calls?.place();
  await verb('ibv_modify_qp', async () => {
    checkAttributes(attr, attrMask);
    await qp.cpu.settle();
    const to = (attrMask & QpAttrMask.IBV_QP_STATE) !== 0 ? (attr.qpState ?? qp.state) : qp.state;
    const isReset = qp.state === QpStateVerb.IBV_QPS_RESET;
    if (isReset && to === QpStateVerb.IBV_QPS_INIT && hasQueues(qp)) {
      qp.sendRing.initialiseOwnership(context.platform.memory);
    }
    await context.kernel.modifyQp(context.cpu, qp.handle, attr, attrMask);
    qp.state = to;
    calls?.modified(qp, place);
    if (to === QpStateVerb.IBV_QPS_RESET && hasQueues(qp)) forgetWork(qp);
  });
}

const hasQueues = (qp: IbvQp | IbvTargetQp): qp is IbvQp => qp.qpType !== QpTypeVerb.IBV_QPT_XRC_RECV;

/** Ranges of the selected attributes by their types in C; the kernel checks them against the device's limits. */
function checkAttributes(attr: QpAttr, attrMask: number): void {
  checkArguments('ibv_modify_qp', ['attrMask', attrMask, uint32Max]);
  const check = (attribute: number, name: keyof QpAttr, max: number): void => {
    const value = attr[name];
    if ((attrMask & attribute) !== 0 && typeof value !== 'object')
      checkArguments('ibv_modify_qp', [name, value ?? 0, max]);
  };
  check(QpAttrMask.IBV_QP_STATE, 'qpState', qpStateMax);
  check(QpAttrMask.IBV_QP_CUR_STATE, 'curQpState', qpStateMax);
  check(QpAttrMask.IBV_QP_EN_SQD_ASYNC_NOTIFY, 'enSqdAsyncNotify', uint8Max);
  check(QpAttrMask.IBV_QP_ACCESS_FLAGS, 'qpAccessFlags', uint32Max);
  check(QpAttrMask.IBV_QP_PORT, 'portNum', uint8Max);
  check(QpAttrMask.IBV_QP_QKEY, 'qkey', uint32Max);
  if ((attrMask & QpAttrMask.IBV_QP_AV) !== 0 && attr.ahAttr !== undefined)
    checkAddress('ibv_modify_qp', attr.ahAttr);
}

/** The attributes as the device has them (ibv_query_qp). */
export const queryQp = (qp: IbvQp | IbvTargetQp): Promise<QpAttr> =>
  verb('ibv_query_qp', () => qp.context.kernel.queryQp(qp.context.cpu, qp.handle));

/** Destroys a QP; its undelivered completions are dropped (ibv_destroy_qp). */
export async function destroyQp(qp: IbvQp | IbvTargetQp): Promise<void> {
  const { context } = qp;
  const calls = context.platform.tap?.calls;
  const place = calls?.place();
  await verb('ibv_destroy_qp', async () => {
    await qp.cpu.settle();
    await context.kernel.destroyQp(context.cpu, qp.handle);
    if (!hasQueues(qp)) {
      context.qps.delete(qp.handle);
      return;
    }
    // The tap is notified at once: the number may be reused.
    context.platform.tap?.closed(qp.qpNum);
    calls?.unmade('QP', qp.qpNum, place);
    await qp.cpu.settle();
    forgetWork(qp);
    context.qpTable.set(qp.qpNum, undefined);
    context.qps.delete(qp.handle);
    if (qp.receiveRing !== null) context.receiveRecords.give(qp.receiveRing.record);
    qp.sendRing.buffer.unmap();
  });
}

interface Parts {
  readonly send: SendSizes;
  readonly receive: ReceiveSizes | undefined;
  readonly layout: BufferLayout;
  readonly buffer: QueueMemory;
  readonly record: DoorbellRecord | undefined;
}

async function makeQp(pd: IbvPd, init: IbvQpInitAttr, parts: Parts): Promise<IbvQp> {
  const { context } = pd;
  const { send, receive, layout, buffer, record } = parts;
  const cap = grantedCap(send, receive);
  const { handle, qpn } = await context.kernel.createQp(context.cpu, {
    pd: pd.handle,
    type: init.qpType,
    sendCq: init.sendCq.handle,
    receiveCq: init.recvCq.handle,
    srq: init.srq?.handle ?? -1,
    logSendWqes: send.logCount,
    logSendStride: send.logStride,
    receiveWqes: receive?.wqeCount ?? 0,
    logReceiveStride: receive?.logStride ?? 0,
    inlineReceiveBytes: receive?.inlineBytes ?? 0,
    bufferAddress: buffer.address,
    bufferBytes: layout.bytes,
    doorbellRecordAddress: record?.address ?? -1,
    cap,
    blocksLoopback: (init.createFlags ?? 0) !== 0,
  });
  init.cap = cap;
  const qp: IbvQp = {
    context,
    qpContext: init.qpContext ?? null,
    pd,
    sendCq: init.sendCq,
    recvCq: init.recvCq,
    srq: init.srq ?? null,
    handle,
    qpNum: qpn,
    qpType: init.qpType,
    sqSigAll: init.sqSigAll ?? 0,
    state: QpStateVerb.IBV_QPS_RESET,
    cpu: context.cpu,
    sendRing: new SendRing(send, init.qpType, buffer, layout.sendOffset, qpn),
    receiveRing:
      receive === undefined || record === undefined
        ? null
        : new ReceiveRing(receive, buffer, layout.receiveOffset, record),
  };
  context.qpTable.set(qpn, qp);
  context.qps.set(handle, qp);
  context.platform.tap?.opened(qpn, asInteger(2 ** log2Ceil(Math.max(1, qp.sendRing.maxPost))));
  return qp;
}

interface BufferLayout {
  readonly bytes: number;
  readonly sendOffset: number;
  readonly receiveOffset: number;
}

function bufferLayout(send: SendSizes, receive: ReceiveSizes | undefined): BufferLayout {
  const sendBytes = 2 ** (send.logCount + send.logStride);
  if (receive === undefined) return { bytes: sendBytes, sendOffset: 0, receiveOffset: 0 };
  const receiveBytes = receive.wqeCount * 2 ** receive.logStride;
  const bytes = sendBytes + receiveBytes;
  return receive.logStride > send.logStride
    ? { bytes, sendOffset: receiveBytes, receiveOffset: 0 }
    : { bytes, sendOffset: 0, receiveOffset: sendBytes };
}

function checkedCap(context: IbvContext, init: IbvQpInitAttr): QpCap {
  const { maxQpWr, maxSendSge, maxRecvSge } = context.info;
  // As libmlx4: max_sge of ibv_query_device for both, although a send WQE has room for more.
  const maxSge = Math.min(maxSendSge, maxRecvSge);
  const cap: QpCap = {
    maxSendWr: init.cap.maxSendWr ?? 0,
    maxRecvWr: init.cap.maxRecvWr ?? 0,
    maxSendSge: init.cap.maxSendSge ?? 0,
    maxRecvSge: init.cap.maxRecvSge ?? 0,
    maxInlineData: init.cap.maxInlineData ?? 0,
  };
  checkArguments(
    'ibv_create_qp',
    ['maxSendWr', cap.maxSendWr, maxQpWr],
    ['maxRecvWr', cap.maxRecvWr, maxQpWr],
    ['maxSendSge', cap.maxSendSge, maxSge],
    ['maxRecvSge', cap.maxRecvSge, maxSge],
    ['maxInlineData', cap.maxInlineData, maxInlineDataMax],
  );
  return cap;
}

/** Longest inline receive (mlx4dv_query_device). */
const inlineReceiveMax = ({ info }: IbvContext): number => info.maxRecvSge * dataPointer.sizeBytes;

const grantedCap = (send: SendSizes, receive: ReceiveSizes | undefined): QpCap => ({
  maxSendWr: send.maxPost,
  maxSendSge: send.maxSge,
  maxInlineData: send.maxInline,
  maxRecvWr: receive?.wqeCount ?? 0,
  maxRecvSge: receive?.maxSge ?? 0,
});

/** The QP is in RESET: its completions and posted requests are dropped. */
function forgetWork(qp: IbvQp): void {
  const { memory } = qp.context.platform;
  const { srq } = qp;
  const setLink = (address: number, index: number): void =>
    srqNextSegment.fields.nextWqeIndex.set(memory.view, address, index);
  const free = srq === null ? undefined : (index: number) => freeSharedNow(srq, index, setLink);
  const isOurs = ({ qpn }: { readonly qpn: number }): boolean => qpn === qp.qpNum;
  cleanCq(qp.recvCq, isOurs, free);
  if (qp.sendCq !== qp.recvCq) cleanCq(qp.sendCq, isOurs);
  qp.context.platform.tap?.watch?.forgotten(qp.qpNum);
  qp.sendRing.reset();
  if (qp.receiveRing === null) return;
  qp.receiveRing.reset();
  receiveRecord.fields.postedCounter.set(memory.view, qp.receiveRing.record.physicalAddress, 0);
}
