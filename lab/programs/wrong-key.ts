/** A classic mistake: an rkey of a region that the peer did not provide. Its HCA answers remote access error, and the connection ends. */
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

async function open(program: ProgramContext, cqEntries: number) {
  const endpoint = await openEndpoint(program);
  const buffer = await createBuffer(endpoint, 4096);
  const cq = await createCq(endpoint.context, cqEntries);
  const cap = { maxSendWr: 64, maxRecvWr: 4, maxSendSge: 1, maxRecvSge: 1 };
  const [qp] = await createRcQps(endpoint, 1, { send: cq, receive: cq }, cap);
  const own = { address: buffer.address, rkey: buffer.region.rkey };
  const { note } = await connectRc(endpoint, [qp!], 'mistake', own);
  return { buffer, cq, qp: qp!, far: note as typeof own };
}

export async function host0(program: ProgramContext): Promise<string> {
  const { buffer, cq, qp, far } = await open(program, 4);
  const wc = [new IbvWc()];
  const statuses: number[] = [];
  for (const rkey of [far.rkey, far.rkey ^ 1, far.rkey]) {
    postSend(qp, {
      wrId: 1,
      sgList: [{ addr: buffer.address, length: 64, lkey: buffer.region.lkey }],
      numSge: 1,
      opcode: IBV_WR_RDMA_WRITE,
      sendFlags: IBV_SEND_SIGNALED,
      wr: { rdma: { remoteAddr: far.address, rkey } },
    });
    await spinCq(cq, 1, wc);
    statuses.push(wc[0]!.status);
  }
  await program.exchange.put('done', true);
  // 0 is success, 10 a remote access error, 5 a request that was flushed because its QP is in error.
  program.log(`statuses ${statuses.join(', ')}`);
  return statuses.join(', ');
}

export async function host1(program: ProgramContext): Promise<void> {
  await open(program, 4);
  await program.exchange.take('done');
}
