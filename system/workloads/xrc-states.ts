/** The transitions of XRC initiators and targets to where they send and receive: RESET ─► INIT ─► RTR ─► RTS. */
import {
  IBV_QP_AV,
  IBV_QP_DEST_QPN,
  IBV_QP_MAX_DEST_RD_ATOMIC,
  IBV_QP_MAX_QP_RD_ATOMIC,
  IBV_QP_MIN_RNR_TIMER,
  IBV_QP_PATH_MTU,
  IBV_QP_RETRY_CNT,
  IBV_QP_RNR_RETRY,
  IBV_QP_RQ_PSN,
  IBV_QP_SQ_PSN,
  IBV_QP_STATE,
  IBV_QP_TIMEOUT,
  IBV_QPS_RTR,
  IBV_QPS_RTS,
  type IbvQp,
  type IbvTargetQp,
  modifyQp,
} from '../../userlib/index.ts';
import { type RcAddress, type RcAttributes, toInit } from './rc-states.ts';

const connectionMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

const connectionOf = ({ lid, qpNum, psn }: RcAddress, { pathMtu }: RcAttributes) => ({
  qpState: IBV_QPS_RTR,
  pathMtu,
  destQpNum: qpNum,
  rqPsn: psn,
  ahAttr: { dlid: lid, sl: 0, srcPathBits: 0, isGlobal: 0, portNum: 1 },
});

/** @param target address of the target; @throws VerbsError, as the other */
export async function connectInitiator(
  qp: IbvQp,
  target: RcAddress,
  sqPsn: number,
  attributes: RcAttributes,
): Promise<void> {
  const { timeoutCode, retryCount, rnrRetryCount, readAtomicMax } = attributes;
  await toInit(qp);
  await modifyQp(qp, connectionOf(target, attributes), connectionMask);
  await modifyQp(
    qp,
    {
      qpState: IBV_QPS_RTS,
      timeout: timeoutCode,
      retryCnt: retryCount,
      rnrRetry: rnrRetryCount,
      sqPsn,
      maxRdAtomic: readAtomicMax,
    },
    IBV_QP_STATE |
      IBV_QP_TIMEOUT |
      IBV_QP_RETRY_CNT |
      IBV_QP_RNR_RETRY |
      IBV_QP_SQ_PSN |
      IBV_QP_MAX_QP_RD_ATOMIC,
  );
}

/** To where it receives, which is all that it does. */
export async function connectTarget(
  qp: IbvTargetQp,
  initiator: RcAddress,
  attributes: RcAttributes,
): Promise<void> {
  const { readAtomicMax, rnrTimerCode } = attributes;
  await toInit(qp);
  await modifyQp(
    qp,
    { ...connectionOf(initiator, attributes), maxDestRdAtomic: readAtomicMax, minRnrTimer: rnrTimerCode },
    connectionMask | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
  );
}
