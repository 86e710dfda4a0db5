/** A classic mistake: each side waits for the other to send first. */
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

async function play(program: ProgramContext): Promise<void> {
  const { cq, qp, sgList } = await open(program);
  postRecv(qp, { wrId: 1, sgList, numSge: 1 });
  await spinCq(cq, 1, [new IbvWc()]);
  postSend(qp, { wrId: 2, sgList, numSge: 1, opcode: IBV_WR_SEND, sendFlags: IBV_SEND_SIGNALED });
  await spinCq(cq, 1, [new IbvWc()]);
}

export const host0 = play;
export const host1 = play;
