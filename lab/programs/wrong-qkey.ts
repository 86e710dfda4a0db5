/** A classic mistake: a datagram whose Q_Key differs from the receiving QP's. It is dropped, and its sender sees a success. */
import {
  createAh,
  createBuffer,
  createCq,
  createQp,
  IBV_QP_PKEY_INDEX,
  IBV_QP_PORT,
  IBV_QP_QKEY,
  IBV_QP_SQ_PSN,
  IBV_QP_STATE,
  IBV_QPS_INIT,
  IBV_QPS_RTR,
  IBV_QPS_RTS,
  IBV_QPT_UD,
  IBV_SEND_SIGNALED,
  IBV_WR_SEND,
  IbvWc,
  modifyQp,
  openEndpoint,
  type ProgramContext,
  postRecv,
  postSend,
  spinCq,
} from '../../browser.ts';

const qkey = 0x1111_1111;

async function open(program: ProgramContext) {
  const endpoint = await openEndpoint(program);
  const buffer = await createBuffer(endpoint, 4096);
  const cq = await createCq(endpoint.context, 64);
  const cap = { maxSendWr: 16, maxRecvWr: 16, maxSendSge: 1, maxRecvSge: 1 };
  const qp = await createQp(endpoint.pd, { sendCq: cq, recvCq: cq, qpType: IBV_QPT_UD, cap });
  const init = { qpState: IBV_QPS_INIT, pkeyIndex: 0, portNum: 1, qkey };
  await modifyQp(qp, init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  const list = [{ addr: buffer.address, length: 40 + 64, lkey: buffer.region.lkey }];
  postRecv(qp, { wrId: 1, sgList: list, numSge: 1 });
  await modifyQp(qp, { qpState: IBV_QPS_RTR }, IBV_QP_STATE);
  await modifyQp(qp, { qpState: IBV_QPS_RTS, sqPsn: 0 }, IBV_QP_STATE | IBV_QP_SQ_PSN);
  await program.exchange.put('mistake', { lid: endpoint.port.lid, qpn: qp.qpNum });
  const far = await program.exchange.take<{ lid: number; qpn: number }>('mistake');
  return { endpoint, buffer, cq, qp, far };
}

export async function host0(program: ProgramContext): Promise<void> {
  const { endpoint, buffer, cq, qp, far } = await open(program);
  const ah = await createAh(endpoint.pd, { dlid: far.lid, isGlobal: 0, portNum: 1 });
  postSend(qp, {
    wrId: 1,
    sgList: [{ addr: buffer.address, length: 64, lkey: buffer.region.lkey }],
    numSge: 1,
    opcode: IBV_WR_SEND,
    sendFlags: IBV_SEND_SIGNALED,
    wr: { ud: { ah, remoteQpn: far.qpn, remoteQkey: 0x2222_2222 } },
  });
  await spinCq(cq, 1, [new IbvWc()]);
  program.log('the datagram was sent');
}

export async function host1(program: ProgramContext): Promise<void> {
  const { cq } = await open(program);
  await spinCq(cq, 1, [new IbvWc()]);
}
