/** The transitions of an RC QP to where it sends and receives: RESET ─► INIT ─► RTR ─► RTS. */
import {
  IBV_ACCESS_LOCAL_WRITE,
  IBV_ACCESS_REMOTE_ATOMIC,
  IBV_ACCESS_REMOTE_READ,
  IBV_ACCESS_REMOTE_WRITE,
  IBV_QP_ACCESS_FLAGS,
  IBV_QP_AV,
  IBV_QP_DEST_QPN,
  IBV_QP_MAX_DEST_RD_ATOMIC,
  IBV_QP_MAX_QP_RD_ATOMIC,
  IBV_QP_MIN_RNR_TIMER,
  IBV_QP_PATH_MTU,
  IBV_QP_PKEY_INDEX,
  IBV_QP_PORT,
  IBV_QP_RETRY_CNT,
  IBV_QP_RNR_RETRY,
  IBV_QP_RQ_PSN,
  IBV_QP_SQ_PSN,
  IBV_QP_STATE,
  IBV_QP_TIMEOUT,
  IBV_QPS_INIT,
  IBV_QPS_RTR,
  IBV_QPS_RTS,
  type IbvQp,
  type IbvTargetQp,
  modifyQp,
  type PortAttr,
} from '../../userlib/index.ts';
import { type PeerAddress, pathTo, reaching } from './port-address.ts';

/** All rights that a region or a QP can grant. */
export const allAccess =
  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

/** Attributes of a connection, the same at both ends. */
export interface RcAttributes {
  readonly pathMtu: PortAttr['activeMtu'];
  /** READs and atomics in flight, either way. */
  readonly readAtomicMax: number;
  /** ACK timeout 4.096 µs × 2^code; 0 waits indefinitely. */
  readonly timeoutCode: number;
  readonly retryCount: number;
  readonly rnrRetryCount: number;
  readonly rnrTimerCode: number;
}

/** Address and first PSN of the QP at the other end. */
export interface RcAddress extends PeerAddress {
  readonly qpNum: number;
  readonly psn: number;
}

/** @throws VerbsError, like the other two, if the QP or the device refuses */
export const toInit = (qp: IbvQp | IbvTargetQp, qpAccessFlags = allAccess, pkeyIndex = 0): Promise<void> =>
  modifyQp(
    qp,
    { qpState: IBV_QPS_INIT, pkeyIndex, portNum: 1, qpAccessFlags },
    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
  );

export const toRtr = (
  qp: IbvQp,
  { qpNum, psn, ...peer }: RcAddress,
  { pathMtu, readAtomicMax, rnrTimerCode }: RcAttributes,
): Promise<void> =>
  reaching(peer, () =>
    modifyQp(
      qp,
      {
        qpState: IBV_QPS_RTR,
        pathMtu,
        destQpNum: qpNum,
        rqPsn: psn,
        maxDestRdAtomic: readAtomicMax,
        minRnrTimer: rnrTimerCode,
        ahAttr: pathTo(peer),
      },
      IBV_QP_STATE |
        IBV_QP_AV |
        IBV_QP_PATH_MTU |
        IBV_QP_DEST_QPN |
        IBV_QP_RQ_PSN |
        IBV_QP_MAX_DEST_RD_ATOMIC |
        IBV_QP_MIN_RNR_TIMER,
    ),
  );

export const toRts = (
  qp: IbvQp,
  sqPsn: number,
  { timeoutCode, retryCount, rnrRetryCount, readAtomicMax }: RcAttributes,
): Promise<void> =>
  modifyQp(
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
