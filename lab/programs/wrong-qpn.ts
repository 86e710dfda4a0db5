/** A classic mistake: dest_qp_num is not the number of the peer's QP. No QP answers, and the retries run out. */
import {
  createBuffer,
  createCq,
  createRcQps,
  IBV_ACCESS_REMOTE_WRITE,
  IBV_MTU_1024,
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
  IBV_SEND_SIGNALED,
  IBV_WR_RDMA_WRITE,
  IbvWc,
  modifyQp,
  openEndpoint,
  type ProgramContext,
  postSend,
  type QpAttr,
  spinCq,
} from '../../browser.ts';

/** Connects by hand, with the three transitions of connectRc. */
async function open(program: ProgramContext, mistake: QpAttr) {
  const endpoint = await openEndpoint(program);
  const buffer = await createBuffer(endpoint, 4096);
  const cq = await createCq(endpoint.context, 64);
  const cap = { maxSendWr: 16, maxRecvWr: 16, maxSendSge: 1, maxRecvSge: 1 };
  const [qp] = await createRcQps(endpoint, 1, { send: cq, receive: cq }, cap);
  const own = {
    qpn: qp!.qpNum,
    psn: 100,
    lid: endpoint.port.lid,
    address: buffer.address,
    rkey: buffer.region.rkey,
  };
  await program.exchange.put('mistake', own);
  const far = await program.exchange.take<typeof own>('mistake');
  const ahAttr = { dlid: far.lid, isGlobal: 0, portNum: 1 };
  const init = { qpState: IBV_QPS_INIT, pkeyIndex: 0, portNum: 1, qpAccessFlags: IBV_ACCESS_REMOTE_WRITE };
  const [toRtr, toRts] = [
    { qpState: IBV_QPS_RTR, pathMtu: IBV_MTU_1024 },
    { qpState: IBV_QPS_RTS, sqPsn: own.psn },
  ];
  const responder = { destQpNum: far.qpn, rqPsn: far.psn, maxDestRdAtomic: 1, minRnrTimer: 12, ahAttr };
  const requester = { timeout: 10, retryCnt: 3, rnrRetry: 3, maxRdAtomic: 1 };
  await modifyQp(qp!, init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  await modifyQp(qp!, { ...toRtr, ...responder, ...mistake }, rtrMask);
  await modifyQp(qp!, { ...toRts, ...requester, ...mistake, qpState: IBV_QPS_RTS }, rtsMask);
  await program.exchange.put('ready', true);
  await program.exchange.take('ready');
  return { buffer, cq, qp: qp!, far };
}

const rtrMask =
  IBV_QP_STATE |
  IBV_QP_AV |
  IBV_QP_PATH_MTU |
  IBV_QP_DEST_QPN |
  IBV_QP_RQ_PSN |
  IBV_QP_MAX_DEST_RD_ATOMIC |
  IBV_QP_MIN_RNR_TIMER;
const rtsMask =
  IBV_QP_STATE |
  IBV_QP_TIMEOUT |
  IBV_QP_RETRY_CNT |
  IBV_QP_RNR_RETRY |
  IBV_QP_SQ_PSN |
  IBV_QP_MAX_QP_RD_ATOMIC;

export async function host0(program: ProgramContext): Promise<number> {
  const { buffer, cq, qp, far } = await open(program, { destQpNum: 12345 });
  postSend(qp, {
    wrId: 1,
    sgList: [{ addr: buffer.address, length: 64, lkey: buffer.region.lkey }],
    numSge: 1,
    opcode: IBV_WR_RDMA_WRITE,
    sendFlags: IBV_SEND_SIGNALED,
    wr: { rdma: { remoteAddr: far.address, rkey: far.rkey } },
  });
  const wc = [new IbvWc()];
  await spinCq(cq, 1, wc);
  program.log(`status ${wc[0]!.status}`);
  await program.exchange.put('done', true);
  return wc[0]!.status;
}

export async function host1(program: ProgramContext): Promise<void> {
  await open(program, {});
  await program.exchange.take('done');
}
