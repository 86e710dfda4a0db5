/**
 * Extended CQs: completions are dequeued one by one, and their fields read one by one (ibv_create_cq_ex, ibv_start_poll and the
 * ibv_wc_read_…).
 *
 *     startPoll ── 0 ──► read … ─► nextPoll ── 0 ──► read … ─► nextPoll ── ENOENT ──► endPoll
 *         └─ ENOENT: no entry, nothing to end
 *
 * The consumer record is stored once, by endPoll; the cycles are those of ibv_poll_cq for the same number of entries. A poll
 * sees the entries present when startPoll returns. Source: rdma-core, libibverbs/verbs.h; providers/mlx4 verbs.c (create_cq),
 * cq.c (mlx4_start_poll).
 */
import {
  IBV_CQ_INIT_ATTR_MASK_FLAGS,
  IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
  IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
  IBV_WC_STANDARD_FLAGS,
  WcOpcode,
} from './constants.ts';
import { timestampOf } from './core-clock.ts';
import { makeCq } from './cq.ts';
import { checkArguments, uint32Max } from './numbers.ts';
import { type IbvCompChannel, type IbvContext, type IbvCqEx, IbvWc } from './objects.ts';
import { storeConsumer, takeNext } from './poll-cq.ts';
import { EINVAL, ENOENT, VerbsError } from './verbs-error.ts';

/** Attributes of an extended CQ (ibv_cq_init_attr_ex); fields left out are 0, null or none. */
export interface IbvCqInitAttrEx {
  readonly cqe: number;
  readonly cqContext?: unknown;
  readonly channel?: IbvCompChannel | null;
  readonly compVector?: number;
  /** IBV_WC_EX_WITH_…: the fields that are read. */
  readonly wcFlags?: number;
  /** IBV_CQ_INIT_ATTR_MASK_FLAGS, if `flags` is valid. */
  readonly compMask?: number;
  /** IBV_CREATE_CQ_ATTR_SINGLE_THREADED: changes nothing here, because an object always belongs to one thread. */
  readonly flags?: number;
}

/**
 * Creates an extended CQ (ibv_create_cq_ex), which all CQ verbs accept, too.
 * @throws VerbsError EOPNOTSUPP for fields or flags that the device's completions lack, as in libmlx4; EINVAL, ENOMEM
 */
export async function createCqEx(context: IbvContext, attr: IbvCqInitAttrEx): Promise<IbvCqEx> {
  const { cqContext = null, channel = null, compVector = 0, wcFlags = 0, compMask = 0, flags = 0 } = attr;
  const verbName = 'ibv_create_cq_ex';
  checkArguments(
    verbName,
    ['wcFlags', wcFlags, uint32Max],
    ['compMask', compMask, uint32Max],
    ['flags', flags, uint32Max],
  );
  const refuse = (what: string, value: number, known: number): void => {
    if ((value & ~known) !== 0)
      throw new VerbsError(
        verbName,
        'EOPNOTSUPP',
        `${what} is 0x${value.toString(16)}, expected bits of 0x${known.toString(16)}`,
      );
  };
  refuse('compMask', compMask, IBV_CQ_INIT_ATTR_MASK_FLAGS);
  if ((compMask & IBV_CQ_INIT_ATTR_MASK_FLAGS) !== 0)
    refuse('flags', flags, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
  refuse('wcFlags', wcFlags, IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP);
  const hasTimestamps = (wcFlags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP) !== 0;
  const cq = await makeCq(verbName, context, {
    cqe: attr.cqe,
    cqContext,
    channel,
    compVector,
    hasTimestamps,
  });
  const more = {
    wrId: 0,
    status: 0,
    timestamp: 0,
    current: new IbvWc(),
    wcFlags,
    isPolling: false,
    polledCycles: 0,
  };
  // The same object, which the context finds by its handle.
  return Object.assign(cq, more);
}

/**
 * Dequeues the first completion (ibv_start_poll) and sets the object's wrId and status. @returns 0; ENOENT without one, and
 * then the poll must not be ended; EINVAL while another poll has not ended
 */
export async function startPoll(cq: IbvCqEx): Promise<number> {
  if (cq.isPolling) return EINVAL;
  cq.isPolling = true;
  await cq.cpu.settle();
  cq.polledCycles = 0;
  const result = take(cq);
  if (result === 0) {
    cq.cpu.waitsIn(undefined);
    return 0;
  }
  cq.isPolling = false;
  cq.cpu.charge('poll', cq.context.platform.costs.pollEmpty);
  cq.cpu.waitsIn(cq.ring.pollText);
  return result;
}

/** Dequeues the next completion (ibv_next_poll). @returns 0; ENOENT without one; EINVAL outside a poll */
export const nextPoll = (cq: IbvCqEx): number => (cq.isPolling ? take(cq) : EINVAL);

/** Ends a poll that has begun (ibv_end_poll): returns the entries to the device. */
export function endPoll(cq: IbvCqEx): void {
  if (!cq.isPolling) return;
  cq.isPolling = false;
  storeConsumer(cq, cq.polledCycles);
}

function take(cq: IbvCqEx): number {
  const { current, context, cpu } = cq;
  if (!takeNext(cq, current)) return ENOENT;
  const { costs, tap, memory } = context.platform;
  if ((cq.wcFlags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP) !== 0) {
    const { slots, consumerCounter, entries } = cq.ring;
    cq.timestamp = timestampOf(memory.viewNow, slots[(consumerCounter - 1) & (entries - 1)]!);
  }
  cq.wrId = current.wrId;
  cq.status = current.status;
  cq.polledCycles += costs.pollCompletion + costs.readDmaLine;
  if (current.opcode < WcOpcode.IBV_WC_RECV) tap?.completed(current.qpNum, current.wqeCounter, cpu.ownPs);
  return 0;
}

/** Fields of the completion dequeued last (ibv_wc_read_opcode and so on); a failed one has only wrId, status and vendor error. */
export const wcReadOpcode = (cq: IbvCqEx): number => cq.current.opcode;
export const wcReadVendorErr = (cq: IbvCqEx): number => cq.current.vendorErr;
export const wcReadByteLen = (cq: IbvCqEx): number => cq.current.byteLen;
export const wcReadImmData = (cq: IbvCqEx): number => cq.current.immData;
export const wcReadInvalidatedRkey = (cq: IbvCqEx): number => cq.current.immData;
export const wcReadQpNum = (cq: IbvCqEx): number => cq.current.qpNum;
export const wcReadSrcQp = (cq: IbvCqEx): number => cq.current.srcQp;
export const wcReadWcFlags = (cq: IbvCqEx): number => cq.current.wcFlags;
export const wcReadSlid = (cq: IbvCqEx): number => cq.current.slid;
export const wcReadSl = (cq: IbvCqEx): number => cq.current.sl;
export const wcReadDlidPathBits = (cq: IbvCqEx): number => cq.current.dlidPathBits;
/** Low 48 bits of the core clock at the completion; such a CQE has no service level and no source LID. */
export const wcReadCompletionTs = (cq: IbvCqEx): number => cq.timestamp;
