/** A classic mistake: the buffer of a WRITE is refilled before its completion was polled. The peer may receive either content. */
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

export async function host0(program: ProgramContext): Promise<void> {
  const { buffer, cq, qp, far } = await open(program, 4);
  const wc = [new IbvWc()];
  program.memory.write(buffer.address, new Uint8Array(4096).fill(1));
  postSend(qp, {
    wrId: 1,
    sgList: [{ addr: buffer.address, length: 4096, lkey: buffer.region.lkey }],
    numSge: 1,
    opcode: IBV_WR_RDMA_WRITE,
    sendFlags: IBV_SEND_SIGNALED,
    wr: { rdma: { remoteAddr: far.address, rkey: far.rkey } },
  });
  // The request has been posted but is not complete: the device has yet to read these bytes.
  program.memory.write(buffer.address, new Uint8Array(4096).fill(2));
  await spinCq(cq, 1, wc);
  await program.exchange.put('done', true);
}

export async function host1(program: ProgramContext): Promise<number> {
  const { buffer } = await open(program, 4);
  await program.exchange.take('done');
  const [byte] = program.memory.read(buffer.address, 1);
  program.log(`the byte that arrived is ${byte}`);
  return byte!;
}
