/** The attributes with which the CM's connections take a QP to INIT, RTR and RTS. Source: Linux 6.1, cm.c (ib_cm_init_qp_attr). */
import type { AhAttr, MtuVerb, QpAttr } from '../uapi.ts';
import { AccessFlag, QpAttrMask as Mask, QpStateVerb } from '../uapi.ts';
import type { Connection } from './connection.ts';
import type { Path } from './path.ts';

const portNum = 1;
const pkeyIndex = 0;

export function initAttributes(connection: Connection | undefined): { attr: QpAttr; mask: number } {
  const reads = AccessFlag.IBV_ACCESS_REMOTE_READ | AccessFlag.IBV_ACCESS_REMOTE_ATOMIC;
  const serves = (connection?.responderResources ?? 0) > 0;
  return {
    attr: {
      qpState: QpStateVerb.IBV_QPS_INIT,
      qpAccessFlags: AccessFlag.IBV_ACCESS_REMOTE_WRITE | (serves ? reads : 0),
      pkeyIndex,
      portNum,
    },
    mask: Mask.IBV_QP_STATE | Mask.IBV_QP_ACCESS_FLAGS | Mask.IBV_QP_PKEY_INDEX | Mask.IBV_QP_PORT,
  };
}

function addressOf({ remote, serviceLevel: sl, roce }: Path): AhAttr {
  if (roce === undefined) return { dlid: remote.lid, sl, srcPathBits: 0, isGlobal: 0, portNum };
  const { sgidIndex, hopLimit } = roce;
  const grh = { dgid: remote.gid, flowLabel: 0, sgidIndex, hopLimit, trafficClass: 0 };
  return { dlid: 0, sl, srcPathBits: 0, isGlobal: 1, grh, portNum };
}

export function rtrAttributes(connection: Connection): { attr: QpAttr; mask: number } {
  const { path } = connection;
  return {
    attr: {
      qpState: QpStateVerb.IBV_QPS_RTR,
      ahAttr: addressOf(path),
      pathMtu: path.mtu as MtuVerb,
      destQpNum: connection.remoteQpn,
      rqPsn: connection.rqPsn,
      maxDestRdAtomic: connection.responderResources,
      minRnrTimer: 0,
    },
    mask:
      Mask.IBV_QP_STATE |
      Mask.IBV_QP_AV |
      Mask.IBV_QP_PATH_MTU |
      Mask.IBV_QP_DEST_QPN |
      Mask.IBV_QP_RQ_PSN |
      Mask.IBV_QP_MAX_DEST_RD_ATOMIC |
      Mask.IBV_QP_MIN_RNR_TIMER,
  };
}

export function rtsAttributes(connection: Connection): { attr: QpAttr; mask: number } {
  return {
    attr: {
      qpState: QpStateVerb.IBV_QPS_RTS,
      sqPsn: connection.sqPsn,
      timeout: connection.ackTimeout,
      retryCnt: connection.retryCount,
      rnrRetry: connection.rnrRetryCount,
      maxRdAtomic: connection.initiatorDepth,
    },
    mask:
      Mask.IBV_QP_STATE |
      Mask.IBV_QP_SQ_PSN |
      Mask.IBV_QP_TIMEOUT |
      Mask.IBV_QP_RETRY_CNT |
      Mask.IBV_QP_RNR_RETRY |
      Mask.IBV_QP_MAX_QP_RD_ATOMIC,
  };
}
