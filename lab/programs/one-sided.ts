/** A classic mistake: the passive side of a WRITE waits for a completion. Neither its processor nor its CQs notice the WRITE. */
import {
  connectRc,
  createBuffer,
  createCq,
  createRcQps,
  IBV_SEND_SIGNALED,
  IBV_WR_RDMA_WRITE,
  IbvWc,
  openEndpoint,
  type ProgramContext,
  postSend,
  spinCq,
} from '../../browser.ts';

async function open(program: ProgramContext) {
  const endpoint = await openEndpoint(program);
  const buffer = await createBuffer(endpoint, 4096);
  const cq = await createCq(endpoint.context, 64);
  const cap = { maxSendWr: 16, maxRecvWr: 16, maxSendSge: 1, maxRecvSge: 1 };
  const [qp] = await createRcQps(endpoint, 1, { send: cq, receive: cq }, cap);
  const own = { address: buffer.address, rkey: buffer.region.rkey };
  const { note } = await connectRc(endpoint, [qp!], 'mistake', own);
  const sgList = [{ addr: buffer.address, length: 64, lkey: buffer.region.lkey }];
  return { endpoint, buffer, cq, qp: qp!, sgList, far: note as typeof own };
}

export async function host0(program: ProgramContext): Promise<void> {
  const { cq, qp, sgList, far } = await open(program);
  postSend(qp, {
    wrId: 1,
    sgList,
    numSge: 1,
    opcode: IBV_WR_RDMA_WRITE,
    sendFlags: IBV_SEND_SIGNALED,
    wr: { rdma: { remoteAddr: far.address, rkey: far.rkey } },
  });
  await spinCq(cq, 1, [new IbvWc()]);
}

export async function host1(program: ProgramContext): Promise<void> {
  const { cq } = await open(program);
  await spinCq(cq, 1, [new IbvWc()]);
}
