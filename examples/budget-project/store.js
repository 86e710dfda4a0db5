/**
 * A tiny key-value store on verbs, whose puts and gets are held to budgets by the tests of this project: a put is an RDMA WRITE,
 * a get an RDMA READ, and the server's processor does nothing.
 */
import {
  barrier,
  connectRc,
  createBuffer,
  createCq,
  createRcQps,
  IBV_SEND_SIGNALED,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IbvWc,
  openEndpoint,
  postSend,
  spinCq,
} from 'hca-emulator';

export const valueBytes = 256;
const slots = 64;

/** @param {import('hca-emulator').ProgramContext} program */
async function open(program) {
  const endpoint = await openEndpoint(program);
  const buffer = await createBuffer(endpoint, slots * valueBytes);
  const cq = await createCq(endpoint.context, 16);
  const cap = { maxSendWr: 16, maxRecvWr: 1, maxSendSge: 1, maxRecvSge: 1 };
  const [qp] = await createRcQps(endpoint, 1, { send: cq, receive: cq }, cap);
  const { address, region } = buffer;
  const { note } = await connectRc(endpoint, [qp], 'store', { address, rkey: region.rkey });
  return { qp, cq, buffer, remote: note };
}

/** Sends one request for a slot and waits for its completion. */
async function request({ qp, cq, buffer, remote }, opcode, slot) {
  const at = slot * valueBytes;
  postSend(qp, {
    wrId: slot,
    opcode,
    sendFlags: IBV_SEND_SIGNALED,
    sgList: [{ addr: buffer.address + at, length: valueBytes, lkey: buffer.region.lkey }],
    numSge: 1,
    wr: { rdma: { remoteAddr: remote.address + at, rkey: remote.rkey } },
  });
  await spinCq(cq, 1, [new IbvWc()]);
}

/**
 * Puts and gets, each marked as an operation. `puts` requests are sent for each put: 1, unless a test wants it dearer.
 * @param {import('hca-emulator').ProgramContext} program
 */
export async function client(program) {
  const puts = Number(process.env.PUTS ?? 1);
  const store = await open(program);
  const put = async (slot) => {
    for (let sent = 0; sent < puts; sent++) await request(store, IBV_WR_RDMA_WRITE, slot);
  };
  const get = (slot) => request(store, IBV_WR_RDMA_READ, slot);
  // The first of each reads contexts and translations that stay on chip.
  await put(0);
  await get(0);
  for (let slot = 0; slot < 4; slot++) {
    await program.operation('put', () => put(slot));
    await program.operation('get', () => get(slot));
  }
  await barrier(program, 'over');
}

/** @param {import('hca-emulator').ProgramContext} program */
export async function server(program) {
  await open(program);
  await barrier(program, 'over');
}
