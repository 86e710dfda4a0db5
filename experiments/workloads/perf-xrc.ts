/**
 * The QPs of `perf` over XRC, like perftest's: an initiator on a sending side, a target on a receiving side, and one
 * shared receive queue for all targets of a program.
 *
 *     client: initiators ──► targets, one queue :server        if the server also sends: client: queue, targets ◄── initiators :server
 */
import {
  createQpEx,
  createSrqEx,
  getSrqNum,
  IBV_QPT_XRC_RECV,
  IBV_QPT_XRC_SEND,
  IBV_SRQT_XRC,
  type IbvCq,
  type IbvQp,
  type IbvSrq,
  type IbvTargetQp,
  O_CREAT,
  openXrcd,
  type QpCap,
} from '../../userlib/index.ts';
import type { PerfArgs } from './perf-plan.ts';
import { pathMtuOf, type QpSteps, type RcEndpoint, rcDefaults } from './rc-endpoint.ts';
import { toInit } from './rc-states.ts';
import { initiatorReady, targetReady } from './xrc-states.ts';

export type ExtendedQp = IbvQp | IbvTargetQp;

export interface ExtendedQps {
  readonly initiators: readonly IbvQp[];
  readonly targets: readonly IbvTargetQp[];
  readonly srq: IbvSrq;
}

/** Whether the server also sends. */
export const sendsBothWays = ({ verb, isLatency, isBidirectional, isEchoed }: PerfArgs): boolean =>
  (isLatency && (verb === 'write' || verb === 'send')) || isBidirectional === true || isEchoed === true;

export async function createExtendedQps(
  { context, pd }: RcEndpoint,
  args: PerfArgs,
  isClient: boolean,
  cqs: { readonly send: IbvCq; readonly receive: IbvCq },
  cap: QpCap,
): Promise<ExtendedQps> {
  const isBoth = sendsBothWays(args);
  const xrcd = await openXrcd(context, { fd: -1, oflags: O_CREAT });
  const attr = { maxWr: cap.maxRecvWr, maxSge: 1 };
  const srq = await createSrqEx(context, { pd, attr, srqType: IBV_SRQT_XRC, xrcd, cq: cqs.receive });
  const initiators: IbvQp[] = [];
  const targets: IbvTargetQp[] = [];
  for (let index = 0; index < args.qpCount; index++) {
    const init = { pd, sendCq: cqs.send, qpType: IBV_QPT_XRC_SEND, cap: { ...cap } };
    if (isClient || isBoth) initiators.push(await createQpEx(context, init));
    if (!isClient || isBoth) targets.push(await createQpEx(context, { qpType: IBV_QPT_XRC_RECV, xrcd }));
  }
  return { initiators, targets, srq };
}

/** In the order in which the two sides connect them: each initiator has the index of its target at the peer. */
export const inOrder = ({ initiators, targets }: ExtendedQps, isClient: boolean): readonly ExtendedQp[] =>
  isClient ? [...initiators, ...targets] : [...targets, ...initiators];

/** State transitions of one of them until it sends or receives. */
export function extendedSteps(
  endpoint: RcEndpoint,
  mtuBytes: number,
): Pick<QpSteps<ExtendedQp>, 'init' | 'ready'> {
  const attributes = { ...rcDefaults, pathMtu: pathMtuOf(endpoint, mtuBytes) };
  return {
    init: (qp) => toInit(qp),
    ready: (qp, address, firstPsn) =>
      'xrcd' in qp ? targetReady(qp, address, attributes) : initiatorReady(qp, address, firstPsn, attributes),
  };
}

export const srqNumberOf = ({ srq }: ExtendedQps): number => getSrqNum(srq);
