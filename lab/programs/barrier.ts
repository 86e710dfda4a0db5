/** A barrier by atomics: each host adds one to a counter in the peer's memory, then waits until the peer has added to its own. */
import {
  connectRc,
  createBuffer,
  createCq,
  createRcQps,
  IBV_SEND_SIGNALED,
  IBV_WC_SUCCESS,
  IBV_WR_ATOMIC_FETCH_AND_ADD,
  IBV_WR_RDMA_READ,
  IbvWc,
  openEndpoint,
  type ProgramContext,
  postSend,
  spinCq,
} from '../../browser.ts';

const rounds = 5;

async function barrier(program: ProgramContext): Promise<number> {
  const endpoint = await openEndpoint(program);
  const counter = await createBuffer(endpoint, 8);
  const answer = await createBuffer(endpoint, 8);
  const cq = await createCq(endpoint.context, 4);
  const cap = { maxSendWr: 2, maxRecvWr: 1, maxSendSge: 1, maxRecvSge: 1 };
  const [qp] = await createRcQps(endpoint, 1, { send: cq, receive: cq }, cap);
  const own = { address: counter.address, rkey: counter.region.rkey };
  const { note } = await connectRc(endpoint, [qp!], 'barrier', own);
  const far = note as typeof own;
  const wc = [new IbvWc()];
  const ask = async (opcode: number): Promise<bigint> => {
    const wr =
      opcode === IBV_WR_RDMA_READ
        ? { rdma: { remoteAddr: far.address, rkey: far.rkey } }
        : { atomic: { remoteAddr: far.address, compareAdd: 1n, swap: 0n, rkey: far.rkey } };
    const sgList = [{ addr: answer.address, length: 8, lkey: answer.region.lkey }];
    postSend(qp!, { wrId: 1, sgList, numSge: 1, opcode, sendFlags: IBV_SEND_SIGNALED, wr });
    await spinCq(cq, 1, wc);
    if (wc[0]!.status !== IBV_WC_SUCCESS) throw new Error(`completion with status ${wc[0]!.status}`);
    return program.memory.readUint64(answer.address);
  };
  for (let round = 1; round <= rounds; round++) {
    // Host 1 works longer than host 0, which has to wait.
    await program.cpu.sleep(program.node === 0 ? 1_000_000 : 5_000_000);
    await ask(IBV_WR_ATOMIC_FETCH_AND_ADD);
    // The peer has arrived once it has added to this host's counter.
    while (program.memory.readUint64(counter.address) < BigInt(round)) await program.cpu.sleep(100_000);
    program.log(`round ${round}: both are here`);
  }
  await program.exchange.put('done', true);
  await program.exchange.take('done');
  return Number(await ask(IBV_WR_RDMA_READ));
}

export const host0 = barrier;
export const host1 = barrier;
