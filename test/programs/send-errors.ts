/** A send error of an unreliable connection between two QPs of one process, and the recovery from it. */

import { toInit } from '../../experiments/workloads/rc-states.ts';
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import {
  createCq,
  createQp,
  IBV_MTU_1024,
  IBV_QP_AV,
  IBV_QP_CUR_STATE,
  IBV_QP_DEST_QPN,
  IBV_QP_PATH_MTU,
  IBV_QP_RQ_PSN,
  IBV_QP_SQ_PSN,
  IBV_QP_STATE,
  IBV_QPS_RTR,
  IBV_QPS_RTS,
  IBV_QPS_SQE,
  IBV_QPT_UC,
  type IbvQp,
  modifyQp,
  postRecv,
  postSend,
  queryQp,
} from '../../userlib/index.ts';
import { codeOf, statusesOf, take } from './outcomes.ts';
import { receiveOf, segment, sendOf, writeOf } from './requests.ts';
import { Side } from './side.ts';

const cap = { maxSendWr: 8, maxRecvWr: 8, maxSendSge: 1, maxRecvSge: 1, maxInlineData: 0 };

async function connect(side: Side, qp: IbvQp, peer: IbvQp): Promise<void> {
  const ahAttr = { dlid: side.port.lid, sl: 0, srcPathBits: 0, isGlobal: 0, portNum: 1 } as const;
  await modifyQp(
    qp,
    { qpState: IBV_QPS_RTR, pathMtu: IBV_MTU_1024, destQpNum: peer.qpNum, rqPsn: 5, ahAttr },
    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
  );
  await modifyQp(qp, { qpState: IBV_QPS_RTS, sqPsn: 5 }, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

/** @returns statuses, states and codes in order */
export async function sendErrors(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const [aCq, bCq] = [await createCq(side.context, 16), await createCq(side.context, 16)];
  const make = (cq: typeof aCq): Promise<IbvQp> =>
    createQp(side.pd, {
      sendCq: cq,
      recvCq: cq,
      srq: null,
      cap: { ...cap },
      qpType: IBV_QPT_UC,
      sqSigAll: 1,
    });
  const [a, b] = [await make(aCq), await make(bCq)];
  for (const qp of [a, b]) await toInit(qp);
  const area = await side.area(8192);
  postRecv(a, receiveOf([segment(area, 4096, 1000)], 9));
  await connect(side, a, b);
  await connect(side, b, a);
  const to = { address: area.address + 2000, rkey: area.mr.rkey };
  const good = [segment(area, 0, 100)];
  postSend(a, writeOf([segment(area, 0, 100, 0xdead00)], to));
  postSend(a, writeOf(good, to, { wrId: 2 }));
  const failed = statusesOf(await take(aCq, 2));
  const stateAfter = (await queryQp(a)).qpState === IBV_QPS_SQE;
  postSend(a, writeOf(good, to, { wrId: 3 }));
  const flushed = statusesOf(await take(aCq, 1));
  postSend(b, sendOf(good));
  const received = statusesOf(await take(aCq, 1));
  const back = { qpState: IBV_QPS_RTS, curQpState: IBV_QPS_SQE };
  const recovered = await codeOf(modifyQp(a, back, IBV_QP_STATE | IBV_QP_CUR_STATE));
  postSend(a, writeOf(good, to, { wrId: 4 }));
  const again = statusesOf(await take(aCq, 1));
  return { failed, stateAfter, flushed, received, recovered, again };
}
