/** Brings a QP of a story from RESET to where it sends and receives, by the attributes of its plan. */

import { pathTo, type RcAddress, reaching, toInit, toRtr, toRts } from '../experiments/workloads/index.ts';
import {
  IBV_QP_AV,
  IBV_QP_DEST_QPN,
  IBV_QP_PATH_MTU,
  IBV_QP_PKEY_INDEX,
  IBV_QP_PORT,
  IBV_QP_QKEY,
  IBV_QP_RQ_PSN,
  IBV_QP_SQ_PSN,
  IBV_QP_STATE,
  IBV_QPS_INIT,
  IBV_QPS_RTR,
  IBV_QPS_RTS,
  type IbvQp,
  modifyQp,
  type PortAttr,
} from '../userlib/index.ts';
import type { QpPlan } from './story.ts';

/** Of all datagram QPs. */
export const qkey = 0x1111_1111;

/** @throws VerbsError for what the QP or the device refuses */
export async function ready(qp: IbvQp, plan: QpPlan, peer: RcAddress, pkeyIndex = 0): Promise<void> {
  if (plan.transport === 'RC') await readyReliable(qp, plan, peer, pkeyIndex);
  else if (plan.transport === 'UC') await readyUnreliable(qp, plan, peer, pkeyIndex);
  else await readyDatagram(qp, plan, pkeyIndex);
}

async function readyReliable(qp: IbvQp, plan: QpPlan, peer: RcAddress, pkeyIndex: number): Promise<void> {
  const attributes = {
    pathMtu: plan.mtu as PortAttr['activeMtu'],
    readAtomicMax: plan.readsOut,
    timeoutCode: plan.timeout,
    retryCount: plan.retryCount,
    rnrRetryCount: plan.rnrRetry,
    rnrTimerCode: plan.rnrTimer,
  };
  await toInit(qp, plan.access, pkeyIndex);
  await toRtr(qp, peer, { ...attributes, readAtomicMax: plan.readsIn });
  await toRts(qp, plan.psn, attributes);
}

async function readyUnreliable(qp: IbvQp, plan: QpPlan, peer: RcAddress, pkeyIndex: number): Promise<void> {
  await toInit(qp, plan.access & 3, pkeyIndex);
  await reaching(peer, () =>
    modifyQp(
      qp,
      {
        qpState: IBV_QPS_RTR,
        pathMtu: plan.mtu as PortAttr['activeMtu'],
        destQpNum: peer.qpNum,
        rqPsn: peer.psn,
        ahAttr: pathTo(peer),
      },
      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
    ),
  );
  await modifyQp(qp, { qpState: IBV_QPS_RTS, sqPsn: plan.psn }, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

async function readyDatagram(qp: IbvQp, plan: QpPlan, pkeyIndex: number): Promise<void> {
  await modifyQp(
    qp,
    { qpState: IBV_QPS_INIT, pkeyIndex, portNum: 1, qkey },
    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
  );
  await modifyQp(qp, { qpState: IBV_QPS_RTR }, IBV_QP_STATE);
  await modifyQp(qp, { qpState: IBV_QPS_RTS, sqPsn: plan.psn }, IBV_QP_STATE | IBV_QP_SQ_PSN);
}
