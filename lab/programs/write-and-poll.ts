/** The fastest message: an inlined WRITE whose last byte the peer polls in its own memory. No completion is requested on the way. */
import {
  connectRc,
  createBuffer,
  createCq,
  createRcQps,
  IBV_SEND_INLINE,
  IBV_SEND_SIGNALED,
  IBV_WC_SUCCESS,
  IBV_WR_RDMA_WRITE,
  IbvWc,
  openEndpoint,
  type ProgramContext,
  postSend,
  spinCq,
} from '../../browser.ts';

const rounds = 20;
const size = 8;

async function play(program: ProgramContext, isFirst: boolean): Promise<number> {
  const endpoint = await openEndpoint(program);
  const inbox = await createBuffer(endpoint, size);
  const outbox = await createBuffer(endpoint, size);
  const cq = await createCq(endpoint.context, 4);
  const cap = { maxSendWr: 4, maxRecvWr: 1, maxSendSge: 1, maxRecvSge: 1, maxInlineData: size };
  const [qp] = await createRcQps(endpoint, 1, { send: cq, receive: cq }, cap);
  const own = { address: inbox.address, rkey: inbox.region.rkey };
  const { note } = await connectRc(endpoint, [qp!], 'play', own);
  const far = note as typeof own;
  const wc = [new IbvWc()];
  const send = async (round: number): Promise<void> => {
    program.memory.writeUint64(outbox.address, BigInt(round));
    postSend(qp!, {
      wrId: round,
      sgList: [{ addr: outbox.address, length: size, lkey: outbox.region.lkey }],
      numSge: 1,
      opcode: IBV_WR_RDMA_WRITE,
      sendFlags: IBV_SEND_INLINE | IBV_SEND_SIGNALED,
      wr: { rdma: { remoteAddr: far.address, rkey: far.rkey } },
    });
    await spinCq(cq, 1, wc);
    if (wc[0]!.status !== IBV_WC_SUCCESS) throw new Error(`completion with status ${wc[0]!.status}`);
  };
  const arrival = async (round: number): Promise<void> => {
    const hasCome = () => program.memory.readUint64(inbox.address) >= BigInt(round);
    await program.cpu.settle();
    await program.cpu.spin(program.memory.process.physicalAddress(inbox.address), 20, hasCome);
  };
  const startPs = program.cpu.localPs;
  for (let round = 1; round <= rounds; round++) {
    if (isFirst) await send(round);
    await arrival(round);
    if (!isFirst) await send(round);
  }
  const nanoseconds = (program.cpu.localPs - startPs) / rounds / 2 / 1000;
  program.log(`half a round trip takes ${nanoseconds.toFixed(0)} ns`);
  return nanoseconds;
}

export const host0 = (program: ProgramContext) => play(program, true);
export const host1 = (program: ProgramContext) => play(program, false);
