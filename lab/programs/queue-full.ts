/** A classic mistake: no request is signalled, so nothing ever frees the slots of the send queue. */
import {
  connectRc,
  createBuffer,
  createCq,
  createRcQps,
  IBV_WR_RDMA_WRITE,
  openEndpoint,
  type ProgramContext,
  postSend,
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
  const { qp, sgList, far } = await open(program);
  const wr = { rdma: { remoteAddr: far.address, rkey: far.rkey } };
  let posted = 0;
  for (; posted < 1000; posted++) {
    const error = postSend(qp, {
      wrId: posted,
      sgList,
      numSge: 1,
      opcode: IBV_WR_RDMA_WRITE,
      sendFlags: 0,
      wr,
    });
    if (error !== 0) break;
    await program.cpu.sleep(1_000_000);
  }
  program.log(`${posted} of 1000 requests were posted`);
  await program.exchange.put('done', true);
  return posted;
}

export async function host1(program: ProgramContext): Promise<void> {
  await open(program);
  await program.exchange.take('done');
}
