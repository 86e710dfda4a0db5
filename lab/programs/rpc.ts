/** Remote procedure calls by SEND: host 0 requests squares, with four calls in flight; host 1 answers each. */
import {
  connectRc,
  createBuffer,
  createCq,
  createRcQps,
  IBV_SEND_INLINE,
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

const calls = 40;
const window = 4;
const slotBytes = 64;

async function open(program: ProgramContext) {
  const endpoint = await openEndpoint(program);
  const buffer = await createBuffer(endpoint, 2 * window * slotBytes);
  const cq = await createCq(endpoint.context, 4 * window);
  const cap = { maxSendWr: 2 * window, maxRecvWr: window, maxSendSge: 1, maxRecvSge: 1, maxInlineData: 16 };
  const [qp] = await createRcQps(endpoint, 1, { send: cq, receive: cq }, cap);
  const sgeOf = (slot: number, length: number) => [
    { addr: buffer.address + slot * slotBytes, length, lkey: buffer.region.lkey },
  ];
  // Slots from 0 on are receive buffers, those from `window` on are send buffers.
  const receive = (slot: number) => postRecv(qp!, { wrId: slot, sgList: sgeOf(slot, slotBytes), numSge: 1 });
  const send = (slot: number, value: number) => {
    program.memory.writeUint64(buffer.address + (window + slot) * slotBytes, BigInt(value));
    const sendFlags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
    postSend(qp!, { wrId: slot, sgList: sgeOf(window + slot, 8), numSge: 1, opcode: IBV_WR_SEND, sendFlags });
  };
  const received = (slot: number) => Number(program.memory.readUint64(buffer.address + slot * slotBytes));
  await connectRc(endpoint, [qp!], 'rpc', null, () => {
    for (let slot = 0; slot < window; slot++) receive(slot);
  });
  return { cq, receive, send, received };
}

async function messages(cq: Awaited<ReturnType<typeof open>>['cq'], wc: IbvWc[]): Promise<number[]> {
  const found = await spinCq(cq, wc.length, wc);
  const slots: number[] = [];
  for (const { status, opcode, wrId } of wc.slice(0, found)) {
    if (status !== IBV_WC_SUCCESS) throw new Error(`completion with status ${status}`);
    if (opcode === IBV_WC_RECV) slots.push(wrId);
  }
  return slots;
}

export async function host0(program: ProgramContext): Promise<number> {
  const { cq, receive, send, received } = await open(program);
  const wc = Array.from({ length: 8 }, () => new IbvWc());
  const startPs = program.cpu.localPs;
  let [asked, answered, sum] = [0, 0, 0];
  for (; asked < window; asked++) send(asked, asked);
  while (answered < calls)
    for (const slot of await messages(cq, wc)) {
      sum += received(slot);
      answered++;
      receive(slot);
      if (asked < calls) send(slot, asked++);
    }
  program.log(
    `${calls} calls took ${((program.cpu.localPs - startPs) / 1e6).toFixed(2)} µs; sum of squares ${sum}`,
  );
  return sum;
}

export async function host1(program: ProgramContext): Promise<void> {
  const { cq, receive, send, received } = await open(program);
  const wc = Array.from({ length: 8 }, () => new IbvWc());
  for (let answered = 0; answered < calls; )
    for (const slot of await messages(cq, wc)) {
      const value = received(slot);
      receive(slot);
      send(slot, value * value);
      answered++;
    }
}
