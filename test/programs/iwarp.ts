/**
 * Every verb of iWARP between two hosts over one connection, by sizes around the borders of segments; each host reports
 * the data that it read.
 */
import {
  barrier,
  connectRc,
  createBuffer,
  createRcQps,
  openEndpoint,
  type RcBuffer,
} from '../../experiments/workloads/index.ts';
import type { ProgramContext } from '../../machine/program.ts';
import * as ibv from '../../userlib/index.ts';

export interface IwarpArgs {
  readonly sizes: readonly number[];
}

/** Observations of one host. */
export interface IwarpFound {
  readonly transport: number;
  readonly nodeType: number;
  /** Results by size: whether the bytes of the READ, and those that the peer's WRITE and SEND left here, are right. */
  readonly read: readonly boolean[];
  readonly written: readonly boolean[];
  readonly received: readonly boolean[];
  /** errno of calls that iWARP does not have. */
  readonly refused: readonly string[];
}

/** Bytes that depend on their place, the size and the host. */
const patternOf = (size: number, node: number, kind: number): Uint8Array =>
  Uint8Array.from({ length: size }, (_, at) => (at * 31 + size * 7 + node * 101 + kind * 17) & 0xff);

const kinds = { write: 1, send: 2, read: 3 } as const;

export async function everyVerb(program: ProgramContext<IwarpArgs>): Promise<IwarpFound> {
  const { memory, node, args } = program;
  const endpoint = await openEndpoint(program);
  const { context, pd } = endpoint;
  const cq = await ibv.createCq(context, 64);
  // The peer's SEND may come before an own request completes.
  const receiveCq = await ibv.createCq(context, 64);
  const [qp] = await createRcQps(
    endpoint,
    1,
    { send: cq, receive: receiveCq },
    { maxSendWr: 8, maxRecvWr: 8 },
  );
  const most = Math.max(...args.sizes);
  const buffers = {
    out: await createBuffer(endpoint, most),
    in: await createBuffer(endpoint, most),
    written: await createBuffer(endpoint, most),
    source: await createBuffer(endpoint, most),
    received: await createBuffer(endpoint, most),
  };
  const remote = (buffer: RcBuffer) => ({ addr: buffer.address, rkey: buffer.region.rkey });
  const { note: peer } = await connectRc<Record<'written' | 'source', { addr: number; rkey: number }>>(
    endpoint,
    [qp!],
    'iwarp',
    { written: remote(buffers.written), source: remote(buffers.source) },
  );
  const list = ({ address, region }: RcBuffer, length: number) => [
    { addr: address, length, lkey: region.lkey },
  ];
  const post = (opcode: ibv.IbvSendWr['opcode'], from: RcBuffer, size: number, more = {}): void => {
    const sgList = size === 0 ? [] : list(from, size);
    const wr = {
      wrId: opcode,
      sgList,
      numSge: sgList.length,
      opcode,
      sendFlags: ibv.IBV_SEND_SIGNALED,
      ...more,
    };
    const refused = ibv.postSend(qp!, wr as ibv.IbvSendWr);
    if (refused !== 0) throw new Error(`ibv_post_send: ${JSON.stringify(refused)}`);
  };
  const complete = async (from: ibv.IbvCq): Promise<void> => {
    const wc = [new ibv.IbvWc()];
    await ibv.spinCq(from, 1, wc);
    if (wc[0]!.status !== ibv.IBV_WC_SUCCESS)
      throw new Error(`completion ${wc[0]!.status} of ${wc[0]!.wrId}`);
  };
  const holds = ({ address }: RcBuffer, size: number, from: number, kind: number): boolean =>
    Buffer.compare(memory.read(address, size), patternOf(size, from, kind)) === 0;
  const found = { read: [] as boolean[], written: [] as boolean[], received: [] as boolean[] };
  const other = 1 - node;
  for (const [index, size] of args.sizes.entries()) {
    ibv.postRecv(qp!, { wrId: 1, sgList: list(buffers.received, most), numSge: 1 });
    memory.write(buffers.source.address, patternOf(size, node, kinds.read));
    await barrier(program, `ready${index}`);
    memory.write(buffers.out.address, patternOf(size, node, kinds.write));
    await program.cpu.settle();
    const { addr: remoteAddr, rkey } = peer.written;
    post(ibv.IBV_WR_RDMA_WRITE, buffers.out, size, { wr: { rdma: { remoteAddr, rkey } } });
    await complete(cq);
    // The bytes of the WRITE are TCP's: the buffer is free (RFC 5040, 5.5).
    memory.write(buffers.out.address, patternOf(size, node, kinds.send));
    await program.cpu.settle();
    post(ibv.IBV_WR_SEND, buffers.out, size);
    await complete(cq);
    await complete(receiveCq);
    // A SEND's receive completes after the WRITE before it is placed (RFC 5040, 5.5, table).
    found.written.push(holds(buffers.written, size, other, kinds.write));
    found.received.push(holds(buffers.received, size, other, kinds.send));
    const from = { remoteAddr: peer.source.addr, rkey: peer.source.rkey };
    post(ibv.IBV_WR_RDMA_READ, buffers.in, size, { wr: { rdma: from } });
    await complete(cq);
    found.read.push(holds(buffers.in, size, other, kinds.read));
    await barrier(program, `done${index}`);
  }
  const refusalOf = async (call: () => Promise<unknown>): Promise<string> => {
    try {
      await call();
      return 'none';
    } catch (error) {
      return (error as { code: string }).code;
    }
  };
  const refused = [
    await refusalOf(() => ibv.createQp(pd, { sendCq: cq, recvCq: cq, qpType: ibv.IBV_QPT_UD, cap: {} })),
    await refusalOf(() => ibv.createQp(pd, { sendCq: cq, recvCq: cq, qpType: ibv.IBV_QPT_UC, cap: {} })),
    await refusalOf(() => ibv.createAh(pd, { dlid: 1, portNum: 1 })),
  ];
  const { transportType, nodeType } = context.device;
  return { transport: transportType, nodeType, ...found, refused };
}
