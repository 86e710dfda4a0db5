/** The transitions of UC and UD QPs to where they send and receive: RESET ─► INIT ─► RTR ─► RTS. */
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
} from '../../userlib/index.ts';
import { pathTo, reaching } from './port-address.ts';
import type { RcAddress } from './rc-states.ts';

/** perftest's Q_Key. */
export const qkey = 0x1111_1111;

export async function connectUc(
  qp: IbvQp,
  { qpNum, psn, ...peer }: RcAddress,
  pathMtu: PortAttr['activeMtu'],
  sqPsn: number,
): Promise<void> {
  await reaching(peer, () =>
    modifyQp(
      qp,
      {
        qpState: IBV_QPS_RTR,
        pathMtu,
        destQpNum: qpNum,
        rqPsn: psn,
        ahAttr: pathTo(peer),
      },
      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
    ),
  );
  await modifyQp(qp, { qpState: IBV_QPS_RTS, sqPsn }, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

export const initUd = (qp: IbvQp, pkeyIndex = 0): Promise<void> =>
  modifyQp(
    qp,
    { qpState: IBV_QPS_INIT, pkeyIndex, portNum: 1, qkey },
    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
  );

export async function connectUd(qp: IbvQp, sqPsn: number): Promise<void> {
  await modifyQp(qp, { qpState: IBV_QPS_RTR }, IBV_QP_STATE);
  await modifyQp(qp, { qpState: IBV_QPS_RTS, sqPsn }, IBV_QP_STATE | IBV_QP_SQ_PSN);
}
