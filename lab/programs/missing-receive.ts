/** A classic mistake: a SEND for which no receive has been posted. The peer answers RNR NAK, and the sender repeats the request. */
import {
  connectRc,
  createBuffer,
  createCq,
  createRcQps,
  IBV_SEND_SIGNALED,
  IBV_WR_SEND,
  IbvWc,
  openEndpoint,
  type ProgramContext,
  postRecv,
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

export async function host0(program: ProgramContext): Promise<number> {
  const { buffer, cq, qp } = await open(program, 4);
  const wc = [new IbvWc()];
  const startPs = program.cpu.localPs;
  postSend(qp, {
    wrId: 1,
    sgList: [{ addr: buffer.address, length: 64, lkey: buffer.region.lkey }],
    numSge: 1,
    opcode: IBV_WR_SEND,
    sendFlags: IBV_SEND_SIGNALED,
  });
  await spinCq(cq, 1, wc);
  program.log(`status ${wc[0]!.status} after ${((program.cpu.localPs - startPs) / 1e6).toFixed(0)} µs`);
  await program.exchange.put('done', true);
  return wc[0]!.status;
}

export async function host1(program: ProgramContext): Promise<void> {
  const { buffer, qp } = await open(program, 4);
  // A receive is posted at last, two milliseconds late.
  await program.cpu.sleep(2_000_000_000);
  postRecv(qp, {
    wrId: 1,
    sgList: [{ addr: buffer.address, length: 64, lkey: buffer.region.lkey }],
    numSge: 1,
  });
  await program.exchange.take('done');
}
