/**
 * The programs that produce the figures of bench/notes/measured.md for many connections: QPs that share a CQ and a
 * receive queue, each connected to the QP with the same number at the other host, and WRITEs of 64 bytes over all of
 * them in rotation.
 */

import {
  barrier,
  connectRc,
  createBuffer,
  openEndpoint,
  type RcBuffer,
} from '../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../machine/index.ts';
import {
  createCq,
  createQp,
  createSrq,
  IBV_QPT_RC,
  IBV_SEND_SIGNALED,
  IBV_WR_RDMA_WRITE,
  type IbvCq,
  type IbvQp,
  IbvWc,
  postSend,
  spinCq,
} from '../userlib/index.ts';

export interface ConnectionLoad {
  readonly qps: number;
  /** Number of measured WRITEs, after as many unmeasured ones; at least one over each QP. */
  readonly writes: number;
  readonly inFlight: number;
}

/** Measurements of one client in the process that runs the machine. */
export interface ConnectionFigures {
  readonly cpuUsPerWrite: number;
  /** Simulated nanoseconds. */
  readonly nsPerWrite: number;
  readonly residentMib: number;
  readonly heapMib: number;
}

const bytes = 64;
/** Number of QPs whose numbers are exchanged at once. */
const qpsAtOnce = 1024;
const bytesPerMib = 2 ** 20;

interface Side {
  readonly qps: readonly IbvQp[];
  readonly cq: IbvCq;
  readonly buffer: RcBuffer;
  readonly remote: { readonly remoteAddr: number; readonly rkey: number };
}

async function connected(program: ProgramContext, { qps: count, inFlight }: ConnectionLoad): Promise<Side> {
  const endpoint = await openEndpoint(program);
  const cq = await createCq(endpoint.context, 2 * inFlight);
  const srq = await createSrq(endpoint.pd, { attr: { maxWr: 16, maxSge: 1 } });
  const buffer = await createBuffer(endpoint, bytes);
  const cap = { maxSendWr: Math.ceil(inFlight / count), maxSendSge: 1, maxRecvWr: 0, maxRecvSge: 0 };
  const qps: IbvQp[] = [];
  for (let index = 0; index < count; index++) {
    const init = { sendCq: cq, recvCq: cq, srq, qpType: IBV_QPT_RC, cap: { ...cap } };
    qps.push(await createQp(endpoint.pd, init));
  }
  const note = { address: buffer.address, rkey: buffer.region.rkey };
  let remote = { remoteAddr: 0, rkey: 0 };
  for (let at = 0; at < count; at += qpsAtOnce) {
    const peer = await connectRc<typeof note>(
      endpoint,
      qps.slice(at, at + qpsAtOnce),
      `connections from ${at}`,
      note,
    );
    const { address, rkey } = peer.note;
    remote = { remoteAddr: address, rkey };
  }
  return { qps, cq, buffer, remote };
}

export async function client(program: ProgramContext<ConnectionLoad>): Promise<JsonValue> {
  const load = program.args;
  const side = await connected(program, load);
  const warmUps = Math.max(load.writes, load.qps);
  await writeOverAll(side, 0, { ...load, writes: warmUps });
  const begunPs = program.cpu.ownPs;
  const begun = process.cpuUsage();
  await writeOverAll(side, warmUps, load);
  const { user, system } = process.cpuUsage(begun);
  const nsPerWrite = (program.cpu.ownPs - begunPs) / 1000 / load.writes;
  const { rss, heapUsed } = process.memoryUsage();
  await barrier(program, 'over');
  return {
    cpuUsPerWrite: (user + system) / load.writes,
    nsPerWrite,
    residentMib: rss / bytesPerMib,
    heapMib: heapUsed / bytesPerMib,
  };
}

export async function server(program: ProgramContext<ConnectionLoad>): Promise<JsonValue> {
  await connected(program, program.args);
  await barrier(program, 'over');
  return null;
}

/** Posts `writes` WRITEs, starting with QP number `first`, and uses each QP once before any twice. */
async function writeOverAll(
  { qps, cq, buffer, remote }: Side,
  first: number,
  { writes, inFlight }: ConnectionLoad,
): Promise<void> {
  const sgList = [{ addr: buffer.address, length: bytes, lkey: buffer.region.lkey }];
  const completions = Array.from({ length: inFlight }, () => new IbvWc());
  const write = {
    wrId: 0,
    sgList,
    numSge: 1,
    opcode: IBV_WR_RDMA_WRITE,
    sendFlags: IBV_SEND_SIGNALED,
    wr: { rdma: remote },
  };
  for (let posted = 0, done = 0; done < writes; ) {
    while (posted < writes && posted - done < inFlight)
      postSend(qps[(first + posted++) % qps.length]!, write);
    const found = await spinCq(cq, inFlight, completions);
    for (let at = 0; at < found; at++) {
      const { status } = completions[at]!;
      if (status !== 0) throw new Error(`a WRITE ended with status ${status}`);
    }
    done += found;
  }
}
