/** A key-value store without work for its owner: host 0 reads values from the memory of host 1 by READ. */
import {
  connectRc,
  createBuffer,
  createCq,
  createRcQps,
  IBV_SEND_SIGNALED,
  IBV_WC_SUCCESS,
  IBV_WR_RDMA_READ,
  IbvWc,
  openEndpoint,
  type ProgramContext,
  postSend,
  spinCq,
} from '../../browser.ts';

const entries = 256;
const entryBytes = 16;

async function open(program: ProgramContext, bytes: number) {
  const endpoint = await openEndpoint(program);
  const buffer = await createBuffer(endpoint, bytes);
  const cq = await createCq(endpoint.context, 4);
  const cap = { maxSendWr: 2, maxRecvWr: 1, maxSendSge: 1, maxRecvSge: 1 };
  const [qp] = await createRcQps(endpoint, 1, { send: cq, receive: cq }, cap);
  return { endpoint, buffer, cq, qp: qp! };
}

export async function host0(program: ProgramContext): Promise<number> {
  const { endpoint, buffer, cq, qp } = await open(program, entryBytes);
  const { note } = await connectRc(endpoint, [qp], 'table');
  const table = note as { address: number; rkey: number };
  const wc = [new IbvWc()];
  let right = 0;
  for (let key = 3; key < entries; key += 11) {
    postSend(qp, {
      wrId: key,
      sgList: [{ addr: buffer.address, length: entryBytes, lkey: buffer.region.lkey }],
      numSge: 1,
      opcode: IBV_WR_RDMA_READ,
      sendFlags: IBV_SEND_SIGNALED,
      wr: { rdma: { remoteAddr: table.address + key * entryBytes, rkey: table.rkey } },
    });
    await spinCq(cq, 1, wc);
    if (wc[0]!.status !== IBV_WC_SUCCESS) throw new Error(`completion with status ${wc[0]!.status}`);
    const [found, value] = [buffer.address, buffer.address + 8].map((at) => program.memory.readUint64(at));
    if (found === BigInt(key) && value === BigInt(key * key)) right++;
  }
  await program.exchange.put('done', true);
  program.log(`${right} keys found`);
  return right;
}

/** Fills the table; after that, this processor is idle. */
export async function host1(program: ProgramContext): Promise<void> {
  const { endpoint, buffer, qp } = await open(program, entries * entryBytes);
  for (let key = 0; key < entries; key++) {
    program.memory.writeUint64(buffer.address + key * entryBytes, BigInt(key));
    program.memory.writeUint64(buffer.address + key * entryBytes + 8, BigInt(key * key));
  }
  await connectRc(endpoint, [qp], 'table', { address: buffer.address, rkey: buffer.region.rkey });
  await program.exchange.take('done');
}
