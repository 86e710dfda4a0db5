/** A ring in the memory of host 1, which host 0 fills by WRITE with immediate: the immediate names the filled slot. */
import {
  connectRc,
  createBuffer,
  createCq,
  createRcQps,
  IBV_SEND_INLINE,
  IBV_SEND_SIGNALED,
  IBV_WC_RECV,
  IBV_WC_RECV_RDMA_WITH_IMM,
  IBV_WC_SUCCESS,
  IBV_WR_RDMA_WRITE_WITH_IMM,
  IBV_WR_SEND,
  IbvWc,
  openEndpoint,
  type ProgramContext,
  postRecv,
  postSend,
  spinCq,
} from '../../browser.ts';

const slots = 8;
const slotBytes = 256;
const messages = 50;

async function open(program: ProgramContext) {
  const endpoint = await openEndpoint(program);
  const buffer = await createBuffer(endpoint, slots * slotBytes);
  const cq = await createCq(endpoint.context, 4 * slots);
  const cap = { maxSendWr: 2 * slots, maxRecvWr: slots, maxSendSge: 1, maxRecvSge: 1, maxInlineData: 8 };
  const [qp] = await createRcQps(endpoint, 1, { send: cq, receive: cq }, cap);
  // A receive without a buffer: a WRITE with immediate or an empty SEND consumes it.
  const receive = () => postRecv(qp!, { wrId: 0, sgList: [], numSge: 0 });
  const ring = { address: buffer.address, rkey: buffer.region.rkey };
  const { note } = await connectRc(endpoint, [qp!], 'ring', ring, () => {
    for (let slot = 0; slot < slots; slot++) receive();
  });
  return { buffer, cq, qp: qp!, receive, ring: note as typeof ring };
}

/** Writes while slots are free; each empty SEND from host 1 returns one slot. */
export async function host0(program: ProgramContext): Promise<void> {
  const { buffer, cq, qp, receive, ring } = await open(program);
  const wc = Array.from({ length: 8 }, () => new IbvWc());
  let [written, freed, completed] = [0, slots, 0];
  while (completed < messages || freed < messages + slots) {
    for (; written < messages && written < freed && written - completed < slots; written++) {
      const slot = written % slots;
      const at = buffer.address + slot * slotBytes;
      program.memory.write(at, new Uint8Array(slotBytes).fill(written));
      postSend(qp, {
        wrId: slot,
        sgList: [{ addr: at, length: slotBytes, lkey: buffer.region.lkey }],
        numSge: 1,
        opcode: IBV_WR_RDMA_WRITE_WITH_IMM,
        sendFlags: IBV_SEND_SIGNALED,
        immData: slot,
        wr: { rdma: { remoteAddr: ring.address + slot * slotBytes, rkey: ring.rkey } },
      });
    }
    const found = await spinCq(cq, wc.length, wc);
    for (const { status, opcode } of wc.slice(0, found)) {
      if (status !== IBV_WC_SUCCESS) throw new Error(`completion with status ${status}`);
      if (opcode === IBV_WC_RECV) {
        freed++;
        receive();
      } else completed++;
    }
  }
}

export async function host1(program: ProgramContext): Promise<number> {
  const { buffer, cq, qp, receive } = await open(program);
  const wc = Array.from({ length: 8 }, () => new IbvWc());
  let [taken, right] = [0, 0];
  for (let returned = 0; returned < messages; ) {
    const found = await spinCq(cq, wc.length, wc);
    for (const { status, opcode, immData } of wc.slice(0, found)) {
      if (status !== IBV_WC_SUCCESS) throw new Error(`completion with status ${status}`);
      if (opcode !== IBV_WC_RECV_RDMA_WITH_IMM) returned++;
      else {
        const bytes = program.memory.read(buffer.address + immData * slotBytes, slotBytes);
        if (bytes.every((byte) => byte === taken)) right++;
        taken++;
        receive();
        const sendFlags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
        postSend(qp, { wrId: 0, sgList: [], numSge: 0, opcode: IBV_WR_SEND, sendFlags });
      }
    }
  }
  program.log(`${right} of ${messages} messages were right and in order`);
  return right;
}
