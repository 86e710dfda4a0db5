/** Two hosts send each other a message alternately, as ibv_rc_pingpong does. Half a round trip is the latency of one message. */
import {
  connectRc,
  createBuffer,
  createCq,
  createRcQps,
  IBV_SEND_SIGNALED,
  IBV_WC_RECV,
  IBV_WC_SUCCESS,
  IBV_WR_SEND,
  IbvWc,
  openEndpoint,
  type ProgramContext,
  postRecv,
  postSend,
  spinCq,
} from '../../browser.ts';

const size = 64;
const rounds = 20;

async function play(program: ProgramContext, isFirst: boolean): Promise<number> {
  const endpoint = await openEndpoint(program);
  const buffer = await createBuffer(endpoint, size);
  const cq = await createCq(endpoint.context, 16);
  const cap = { maxSendWr: 4, maxRecvWr: 4, maxSendSge: 1, maxRecvSge: 1 };
  const [qp] = await createRcQps(endpoint, 1, { send: cq, receive: cq }, cap);
  const sgList = [{ addr: buffer.address, length: size, lkey: buffer.region.lkey }];
  const receive = () => postRecv(qp!, { wrId: 1, sgList, numSge: 1 });
  const send = () =>
    postSend(qp!, { wrId: 2, sgList, numSge: 1, opcode: IBV_WR_SEND, sendFlags: IBV_SEND_SIGNALED });
  await connectRc(endpoint, [qp!], 'ping-pong', null, receive);

  const startPs = program.cpu.localPs;
  const wc = [new IbvWc(), new IbvWc()];
  let [received, sent] = [0, 0];
  if (isFirst) send();
  while (received < rounds || sent < rounds) {
    const found = await spinCq(cq, wc.length, wc);
    for (const { status, opcode } of wc.slice(0, found)) {
      if (status !== IBV_WC_SUCCESS) throw new Error(`completion with status ${status}`);
      if (opcode !== IBV_WC_RECV) sent++;
      else {
        received++;
        receive();
        if (!isFirst || received < rounds) send();
      }
    }
  }
  const nanoseconds = (program.cpu.localPs - startPs) / rounds / 2 / 1000;
  program.log(`${rounds} rounds, half a round trip takes ${nanoseconds.toFixed(0)} ns`);
  return nanoseconds;
}

export const host0 = (program: ProgramContext) => play(program, true);
export const host1 = (program: ProgramContext) => play(program, false);
