/** `node build/run.ts bench/first-doorbell`: milliseconds of wall time from the creation of a machine to its first doorbell, by part. */

import { connectRc, createBuffer, createRcQps, openEndpoint } from '../experiments/workloads/index.ts';
import { Machine, type ProgramContext } from '../machine/index.ts';
import { createCq, IBV_SEND_SIGNALED, IBV_WR_RDMA_WRITE, IbvWc, postSend, spinCq } from '../userlib/index.ts';

export type FirstDoorbell = Readonly<Record<string, number>>;

const bytes = 64;
let beforeMs = performance.now();
const partsMs: Record<string, number> = {};

/** Time since the last call. */
function end(part: string): void {
  const nowMs = performance.now();
  partsMs[part] = nowMs - beforeMs;
  beforeMs = nowMs;
}

async function run(program: ProgramContext): Promise<null> {
  const isClient = program.node === 0;
  if (isClient) end('hosts, devices and drivers until a program runs');
  const endpoint = await openEndpoint(program);
  if (isClient) end('opening the device, its port active');
  const cq = await createCq(endpoint.context, 16);
  const buffer = await createBuffer(endpoint, bytes);
  const cap = { maxSendWr: 16, maxSendSge: 1, maxRecvWr: 0, maxRecvSge: 0 };
  const qps = await createRcQps(endpoint, 1, { send: cq, receive: cq }, cap);
  if (isClient) end('CQ, memory region, QP');
  const peer = await connectRc<{ remoteAddr: number; rkey: number }>(endpoint, qps, 'first doorbell', {
    remoteAddr: buffer.address,
    rkey: buffer.region.rkey,
  });
  if (!isClient) return null;
  end('connecting');
  postSend(qps[0]!, {
    wrId: 0,
    sgList: [{ addr: buffer.address, length: bytes, lkey: buffer.region.lkey }],
    numSge: 1,
    opcode: IBV_WR_RDMA_WRITE,
    sendFlags: IBV_SEND_SIGNALED,
    wr: { rdma: peer.note },
  });
  end('posting');
  await spinCq(cq, 1, [new IbvWc()]);
  return null;
}

await using machine = await Machine.create();
end('creating the machine');
await machine.load({ node: 0, run });
await machine.load({ node: 1, run });
await machine.run();
process.stdout.write(`${JSON.stringify(partsMs)}\n`);
