/** Shared receive queues: creation, limit, query, destruction. Posting is in `post-recv.ts`. */
import { xrcTargetBit } from '../abi/index.ts';
import { type SrqAttr, SrqAttrMask } from '../driver/index.ts';
import { cleanCq } from './cq.ts';
import { checkArguments, checkCount, uint32Max } from './numbers.ts';
import type { IbvContext, IbvCq, IbvPd, IbvSrq, IbvXrcd } from './objects.ts';
import { QueueMemory } from './queue-memory.ts';
import { SharedRing, sharedSizesOf } from './shared-ring.ts';
import { VerbsError, verb } from './verbs-error.ts';

export interface IbvSrqInitAttr {
  readonly srqContext?: unknown;
  readonly attr: { readonly maxWr: number; readonly maxSge: number };
}

/** Creates a shared receive queue of at least the given size (ibv_create_srq). */
export const createSrq = (pd: IbvPd, init: IbvSrqInitAttr): Promise<IbvSrq> =>
  makeSrq(pd.context, pd, init, undefined);

/** @param xrc for an XRC SRQ */
export async function makeSrq(
  context: IbvContext,
  pd: IbvPd,
  init: IbvSrqInitAttr,
  xrc: { readonly xrcd: IbvXrcd; readonly cq: IbvCq } | undefined,
): Promise<IbvSrq> {
  const { memory } = context.platform;
  return verb('ibv_create_srq', async () => {
    checkSize(context, init.attr.maxWr, init.attr.maxSge);
    const sizes = sharedSizesOf(init.attr.maxWr, init.attr.maxSge);
    const strideBytes = 2 ** sizes.logStride;
    await context.cpu.settle();
    const buffer = QueueMemory.map(memory, sizes.wqeCount * strideBytes);
    const record = context.receiveRecords.take();
    try {
      if (buffer === undefined || record === undefined) {
        throw new VerbsError('ibv_create_srq', 'ENOMEM', 'no memory for the WQEs and the doorbell record');
      }
      const ring = new SharedRing(sizes, buffer, record);
      ring.initialise(memory);
      const { handle, srqn } = await context.kernel.createSrq(context.cpu, {
        pd: pd.handle,
        xrcd: xrc?.xrcd.handle ?? -1,
        cq: xrc?.cq.handle ?? -1,
        wqeCount: sizes.wqeCount,
        wqeStrideBytes: strideBytes,
        bufferAddress: buffer.address,
        doorbellRecordAddress: record.address,
      });
      const srq: IbvSrq = {
        context,
        srqContext: init.srqContext ?? null,
        pd,
        handle,
        cpu: context.cpu,
        xrc: xrc === undefined ? null : { ...xrc, srqNum: srqn },
        ring,
      };
      context.srqs.set(handle, srq);
      return srq;
    } catch (error) {
      if (record !== undefined) context.receiveRecords.give(record);
      buffer?.unmap();
      throw error;
    }
  });
}

/** Arms the limit, with IBV_SRQ_LIMIT (ibv_modify_srq). */
export const modifySrq = (srq: IbvSrq, attr: Partial<SrqAttr>, attrMask: number): Promise<void> =>
  verb('ibv_modify_srq', async () => {
    checkArguments(
      'ibv_modify_srq',
      ['attrMask', attrMask, uint32Max],
      ['srqLimit', attr.srqLimit ?? 0, uint32Max],
    );
    await srq.context.kernel.modifySrq(srq.context.cpu, srq.handle, attr, attrMask);
    if ((attrMask & SrqAttrMask.IBV_SRQ_LIMIT) !== 0) srq.context.platform.tap?.calls?.limitArmed();
  });

/** Size and present limit (ibv_query_srq). */
export const querySrq = (srq: IbvSrq): Promise<SrqAttr> =>
  verb('ibv_query_srq', async () => {
    const { srqLimit } = await srq.context.kernel.querySrq(srq.context.cpu, srq.handle);
    return { maxWr: srq.ring.wqeCount - 1, maxSge: srq.ring.maxSge, srqLimit };
  });

/** Rejects with EBUSY while a QP uses it (ibv_destroy_srq). */
export async function destroySrq(srq: IbvSrq): Promise<void> {
  const { context, ring } = srq;
  await verb('ibv_destroy_srq', async () => {
    await srq.cpu.settle();
    await context.kernel.destroySrq(context.cpu, srq.handle);
    context.srqs.delete(srq.handle);
    if (srq.xrc !== null) forgetReceives(srq, srq.xrc);
    context.receiveRecords.give(ring.record);
    ring.buffer.unmap();
  });
}

/** Drops its undelivered completions. */
function forgetReceives({ context }: IbvSrq, { cq, srqNum }: NonNullable<IbvSrq['xrc']>): void {
  context.xrcSrqs.delete(srqNum);
  cleanCq(cq, ({ qpn, isSend, sourceQpn }) => qpn >= xrcTargetBit && isSend === 0 && sourceQpn === srqNum);
}

function checkSize(context: IbvContext, maxWr: number, maxSge: number): void {
  const { maxSrqWr, maxSrqSge } = context.info;
  checkCount('ibv_create_srq', ['maxWr', maxWr, maxSrqWr]);
  checkArguments('ibv_create_srq', ['maxSge', maxSge, maxSrqSge]);
}
