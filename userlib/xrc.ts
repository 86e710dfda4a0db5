/**
 * XRC: domains, SRQs for it, target QPs and initiators (ibv_open_xrcd, ibv_create_srq_ex, ibv_create_qp_ex). An initiator is a
 * QP that only sends; each request names an SRQ of the peer. A target belongs to a domain and receives for its SRQs.
 *
 * There are no file descriptors here: `fd` is the number of a file on the host, the same for all processes, and -1 for none.
 */
import { type Handle, QpStateVerb, QpTypeVerb, SrqTypeVerb } from '../driver/index.ts';
import { checkArguments, isInt32, uint32Max } from './numbers.ts';
import type { IbvContext, IbvCq, IbvPd, IbvQp, IbvSrq, IbvTargetQp, IbvXrcd } from './objects.ts';
import { createQp, type IbvQpInitAttr } from './qp.ts';
import { createSrq, type IbvSrqInitAttr, makeSrq } from './srq.ts';
import { VerbsError, verb } from './verbs-error.ts';

export interface IbvXrcdInitAttr {
  /** See above. */
  readonly fd: number;
  /** Mask of O_CREAT and O_EXCL. */
  readonly oflags: number;
}

export interface IbvSrqInitAttrEx extends IbvSrqInitAttr {
  readonly pd: IbvPd;
  /** IBV_SRQT_BASIC if left out. */
  readonly srqType?: SrqTypeVerb;
  /** Domain and CQ, for IBV_SRQT_XRC. */
  readonly xrcd?: IbvXrcd;
  readonly cq?: IbvCq;
}

/** Attributes of an XRC target. */
export interface IbvTargetQpInitAttr {
  readonly qpContext?: unknown;
  readonly qpType: typeof QpTypeVerb.IBV_QPT_XRC_RECV;
  readonly xrcd: IbvXrcd;
}

/** The XRC target to open. */
export interface IbvQpOpenAttr {
  readonly qpNum: number;
  readonly xrcd: IbvXrcd;
  readonly qpContext?: unknown;
  readonly qpType: typeof QpTypeVerb.IBV_QPT_XRC_RECV;
}

/** Attributes of any other QP; an XRC initiator needs no `recvCq`. */
export interface IbvQpInitAttrEx extends Omit<IbvQpInitAttr, 'recvCq'> {
  readonly pd: IbvPd;
  readonly recvCq?: IbvCq;
}

/** Opens an XRC domain (ibv_open_xrcd). Rejects with EAGAIN for a file without a domain, unless O_CREAT is given. */
export const openXrcd = (context: IbvContext, init: IbvXrcdInitAttr): Promise<IbvXrcd> =>
  verb('ibv_open_xrcd', async () => {
    const { fd, oflags } = init;
    if (!isInt32(fd) || fd < -1)
      throw new VerbsError('ibv_open_xrcd', 'EINVAL', `fd is ${fd}, expected -1 or the number of a file`);
    checkArguments('ibv_open_xrcd', ['oflags', oflags, uint32Max]);
    const handle = await context.kernel.openXrcd(context.cpu, fd, oflags);
    return { context, handle };
  });

/** Closes a domain (ibv_close_xrcd). Rejects with EBUSY while one of its SRQs or targets exists. */
export const closeXrcd = ({ context, handle }: IbvXrcd): Promise<void> =>
  verb('ibv_close_xrcd', () => context.kernel.closeXrcd(context.cpu, handle));

/** Creates a shared receive queue, for XRC if its type is XRC (ibv_create_srq_ex). */
export function createSrqEx(context: IbvContext, init: IbvSrqInitAttrEx): Promise<IbvSrq> {
  const type = init.srqType ?? SrqTypeVerb.IBV_SRQT_BASIC;
  if (type === SrqTypeVerb.IBV_SRQT_BASIC) return createSrq(init.pd, init);
  return verb('ibv_create_srq', async () => {
    const { xrcd, cq } = init;
    if (type !== SrqTypeVerb.IBV_SRQT_XRC || xrcd === undefined || cq === undefined)
      throw new VerbsError(
        'ibv_create_srq',
        'EINVAL',
        `srqType is ${type}, expected one with its xrcd and cq`,
      );
    const srq = await makeSrq(context, init.pd, init, { xrcd, cq });
    context.xrcSrqs.set(srq.xrc!.srqNum, srq);
    return srq;
  });
}

/** The number by which initiators name an XRC SRQ (ibv_get_srq_num). @throws VerbsError EINVAL for another SRQ */
export function getSrqNum({ xrc }: IbvSrq): number {
  if (xrc === null) throw new VerbsError('ibv_get_srq_num', 'EINVAL', 'the SRQ is not for XRC');
  return xrc.srqNum;
}

/** Creates a QP in RESET: an XRC target of a domain, or another type in a protection domain (ibv_create_qp_ex). */
export function createQpEx(context: IbvContext, init: IbvTargetQpInitAttr): Promise<IbvTargetQp>;
export function createQpEx(context: IbvContext, init: IbvQpInitAttrEx): Promise<IbvQp>;
export async function createQpEx(
  context: IbvContext,
  init: IbvTargetQpInitAttr | IbvQpInitAttrEx,
): Promise<IbvTargetQp | IbvQp> {
  if (isTarget(init)) return createTarget(context, init);
  const { recvCq, qpType } = init;
  if (recvCq === undefined && qpType !== QpTypeVerb.IBV_QPT_XRC_SEND)
    throw new VerbsError(
      'ibv_create_qp',
      'EINVAL',
      'recvCq is missing, expected one but for an XRC initiator',
    );
  return createQp(init.pd, { ...init, recvCq: recvCq ?? init.sendCq });
}

/**
 * Opens an existing XRC target, possibly of another process, by its number and its domain (ibv_open_qp). It exists until all
 * openers have destroyed their handles; {@link queryQp} returns its state. Rejects with EINVAL if it does not exist.
 */
export const openQp = (context: IbvContext, attr: IbvQpOpenAttr): Promise<IbvTargetQp> =>
  verb('ibv_open_qp', async () => {
    const { xrcd, qpNum, qpContext, qpType } = attr;
    checkArguments('ibv_open_qp', ['qpNum', qpNum, uint32Max], ['qpType', qpType, uint32Max]);
    await context.cpu.settle();
    const handle = await context.kernel.openQp(context.cpu, xrcd.handle, qpType, qpNum);
    return targetOf(context, handle, qpNum, xrcd, qpContext);
  });

const isTarget = (init: IbvTargetQpInitAttr | IbvQpInitAttrEx): init is IbvTargetQpInitAttr =>
  init.qpType === QpTypeVerb.IBV_QPT_XRC_RECV;

const createTarget = (context: IbvContext, { xrcd, qpContext }: IbvTargetQpInitAttr): Promise<IbvTargetQp> =>
  verb('ibv_create_qp', async () => {
    await context.cpu.settle();
    const { handle, qpn } = await context.kernel.createTargetQp(context.cpu, xrcd.handle);
    return targetOf(context, handle, qpn, xrcd, qpContext);
  });

function targetOf(
  context: IbvContext,
  handle: Handle,
  qpNum: number,
  xrcd: IbvXrcd,
  qpContext: unknown,
): IbvTargetQp {
  const qp: IbvTargetQp = {
    context,
    qpContext: qpContext ?? null,
    xrcd,
    handle,
    qpNum,
    qpType: QpTypeVerb.IBV_QPT_XRC_RECV,
    state: QpStateVerb.IBV_QPS_RESET,
    cpu: context.cpu,
  };
  context.qps.set(handle, qp);
  return qp;
}
