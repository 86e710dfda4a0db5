/** The transitions of XRC initiators and targets to where they send and receive: RESET ─► INIT ─► RTR ─► RTS. */
import {
  IBV_QP_AV,
  IBV_QP_DEST_QPN,
  IBV_QP_MAX_DEST_RD_ATOMIC,
  IBV_QP_MIN_RNR_TIMER,
  IBV_QP_PATH_MTU,
  IBV_QP_RQ_PSN,
  IBV_QP_STATE,
  IBV_QPS_RTR,
  type IbvQp,
  type IbvTargetQp,
  modifyQp,
} from '../../userlib/index.ts';
import { pathTo, reaching } from './port-address.ts';
import { type RcAddress, type RcAttributes, toInit, toRts } from './rc-states.ts';

const connectionMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

const connectionOf = ({ qpNum, psn, ...peer }: RcAddress, { pathMtu }: RcAttributes) => ({
  qpState: IBV_QPS_RTR,
  pathMtu,
  destQpNum: qpNum,
  rqPsn: psn,
  ahAttr: pathTo(peer),
});

/**
 * From RESET.
 * @param target address of the target;
 * @throws VerbsError, like the others
 */
export async function connectInitiator(
  qp: IbvQp,
  target: RcAddress,
  sqPsn: number,
  attributes: RcAttributes,
): Promise<void> {
  await toInit(qp);
  await initiatorReady(qp, target, sqPsn, attributes);
}

/** From INIT. */
export async function initiatorReady(
  qp: IbvQp,
  target: RcAddress,
  sqPsn: number,
  attributes: RcAttributes,
): Promise<void> {
  await reaching(target, () => modifyQp(qp, connectionOf(target, attributes), connectionMask));
  await toRts(qp, sqPsn, attributes);
}

/** From RESET until it receives; it does nothing else. */
export async function connectTarget(
  qp: IbvTargetQp,
  initiator: RcAddress,
  attributes: RcAttributes,
): Promise<void> {
  await toInit(qp);
  await targetReady(qp, initiator, attributes);
}

/** From INIT. */
export async function targetReady(
  qp: IbvTargetQp,
  initiator: RcAddress,
  attributes: RcAttributes,
): Promise<void> {
  const { readAtomicMax, rnrTimerCode } = attributes;
  await reaching(initiator, () =>
    modifyQp(
      qp,
      { ...connectionOf(initiator, attributes), maxDestRdAtomic: readAtomicMax, minRnrTimer: rnrTimerCode },
      connectionMask | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
    ),
  );
}
