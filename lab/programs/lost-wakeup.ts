/** A classic mistake: the CQ is armed again after one completion was polled, while it holds another one. No event follows for that one. */
import {
  ackCqEvents,
  connectRc,
  createBuffer,
  createCompChannel,
  createCq,
  createRcQps,
  getCqEvent,
  IBV_SEND_SIGNALED,
  IBV_WR_SEND,
  IbvWc,
  openEndpoint,
  type ProgramContext,
  pollCq,
  postRecv,
  postSend,
  reqNotifyCq,
  spinCq,
} from '../../browser.ts';

async function open(program: ProgramContext) {
  const endpoint = await openEndpoint(program);
  const buffer = await createBuffer(endpoint, 4096);
  const channel = await createCompChannel(endpoint.context);
  const cq = await createCq(endpoint.context, 64, null, channel);
  const cap = { maxSendWr: 16, maxRecvWr: 16, maxSendSge: 1, maxRecvSge: 1 };
  const [qp] = await createRcQps(endpoint, 1, { send: cq, receive: cq }, cap);
  const sgList = [{ addr: buffer.address, length: 64, lkey: buffer.region.lkey }];
  await connectRc(endpoint, [qp!], 'mistake', null, () => {
    for (let posted = 0; posted < 4; posted++) postRecv(qp!, { wrId: posted, sgList, numSge: 1 });
  });
  return { channel, cq, qp: qp!, sgList };
}

export async function host0(program: ProgramContext): Promise<void> {
  const { cq, qp, sgList } = await open(program);
  for (let sent = 0; sent < 2; sent++) {
    postSend(qp, { wrId: sent, sgList, numSge: 1, opcode: IBV_WR_SEND, sendFlags: IBV_SEND_SIGNALED });
    await spinCq(cq, 1, [new IbvWc()]);
  }
  await program.exchange.put('sent', true);
}

export async function host1(program: ProgramContext): Promise<void> {
  const { channel, cq } = await open(program);
  await program.exchange.take('sent');
  await program.cpu.sleep(10_000_000);
  for (let taken = 0; taken < 2; taken++) {
    reqNotifyCq(cq, 0);
    ackCqEvents((await getCqEvent(channel))!, 1);
    // Both completions are present at the first event: poll until the CQ is empty.
    await pollCq(cq, 1, [new IbvWc()]);
  }
}
