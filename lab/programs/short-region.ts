/** A classic mistake: the peer has registered fewer bytes than this host writes. */
import {
  connectRc,
  createBuffer,
  createCq,
  createRcQps,
  IBV_ACCESS_LOCAL_WRITE,
  IBV_ACCESS_REMOTE_WRITE,
  IBV_SEND_SIGNALED,
  IBV_WR_RDMA_WRITE,
  IbvWc,
  openEndpoint,
  type ProgramContext,
  postSend,
  regMr,
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

export async function host0(program: ProgramContext): Promise<number> {
  const { buffer, cq, qp } = await open(program);
  const far = await program.exchange.take<{ address: number; rkey: number }>('region');
  postSend(qp, {
    wrId: 1,
    sgList: [{ addr: buffer.address, length: 4096, lkey: buffer.region.lkey }],
    numSge: 1,
    opcode: IBV_WR_RDMA_WRITE,
    sendFlags: IBV_SEND_SIGNALED,
    wr: { rdma: { remoteAddr: far.address, rkey: far.rkey } },
  });
  const wc = [new IbvWc()];
  await spinCq(cq, 1, wc);
  await program.exchange.put('done', true);
  return wc[0]!.status;
}

export async function host1(program: ProgramContext): Promise<void> {
  const { endpoint, buffer } = await open(program);
  const access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  const half = await regMr(endpoint.pd, buffer.address, 2048, access);
  await program.exchange.put('region', { address: buffer.address, rkey: half.rkey });
  await program.exchange.take('done');
}
