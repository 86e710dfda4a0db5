/** The messages of RFC 7306 between two hosts over one connection: both add to a counter of host 0, swap it, and write with immediate data. */
import {
  barrier,
  connectRc,
  createBuffer,
  createRcQps,
  openEndpoint,
} from '../../experiments/workloads/index.ts';
import type { ProgramContext } from '../../machine/program.ts';
import * as ibv from '../../userlib/index.ts';

export interface ExtensionArgs {
  /** Adds of each host. */
  readonly adds: number;
  readonly writeBytes: number;
}

export interface ExtensionsFound {
  readonly atomicCap: number;
  /** Values before each add, as this host got them. */
  readonly before: readonly number[];
  /** The counter of this host at the end. */
  readonly counter: number;
  /** Immediate data that the completion of the peer's WRITE reports. */
  readonly immediate: number;
  readonly byteLen: number;
  readonly isWritten: boolean;
}

const fill = (node: number): number => 0x40 + node;
const counterBytes = 8;

export async function extensions(program: ProgramContext<ExtensionArgs>): Promise<ExtensionsFound> {
  const { memory, node, args } = program;
  const endpoint = await openEndpoint(program);
  const { context } = endpoint;
  const cq = await ibv.createCq(context, 64);
  const receiveCq = await ibv.createCq(context, 16);
  const queues = { send: cq, receive: receiveCq };
  const [qp] = await createRcQps(endpoint, 1, queues, { maxSendWr: 8, maxRecvWr: 8 });
  const counter = await createBuffer(endpoint, counterBytes);
  const own = await createBuffer(endpoint, counterBytes);
  const out = await createBuffer(endpoint, args.writeBytes);
  const target = await createBuffer(endpoint, args.writeBytes);
  memory.write(counter.address, new Uint8Array(counterBytes));
  memory.write(out.address, new Uint8Array(args.writeBytes).fill(fill(node)));
  await program.cpu.settle();
  const remote = ({ address, region }: typeof counter) => ({ remoteAddr: address, rkey: region.rkey });
  const { note: peer } = await connectRc<Record<'counter' | 'target', { remoteAddr: number; rkey: number }>>(
    endpoint,
    [qp!],
    'extensions',
    { counter: remote(counter), target: remote(target) },
  );
  const post = (
    wr: Pick<ibv.IbvSendWr, 'opcode' | 'wr'> & { readonly immData?: number },
    from: typeof own,
    length: number,
  ): void => {
    const sgList = [{ addr: from.address, length, lkey: from.region.lkey }];
    const refused = ibv.postSend(qp!, {
      ...{ wrId: 1, sgList, numSge: 1, sendFlags: ibv.IBV_SEND_SIGNALED },
      ...wr,
    });
    if (refused !== 0) throw new Error(`ibv_post_send: ${JSON.stringify(refused)}`);
  };
  const complete = async (from: ibv.IbvCq): Promise<ibv.IbvWc> => {
    const wc = [new ibv.IbvWc()];
    await ibv.spinCq(from, 1, wc);
    if (wc[0]!.status !== ibv.IBV_WC_SUCCESS) throw new Error(`completion with status ${wc[0]!.status}`);
    return wc[0]!;
  };
  const numberAt = (address: number): number =>
    Number(Buffer.from(memory.read(address, counterBytes)).readBigUInt64LE());

  ibv.postRecv(qp!, { wrId: 2, sgList: [], numSge: 0 });
  await barrier(program, 'ready');
  const before: number[] = [];
  for (let index = 0; index < args.adds; index++) {
    const atomic = { ...peer.counter, compareAdd: 1n, swap: 0n };
    post({ opcode: ibv.IBV_WR_ATOMIC_FETCH_AND_ADD, wr: { atomic } }, own, counterBytes);
    await complete(cq);
    before.push(numberAt(own.address));
  }
  await barrier(program, 'added');
  const swap = { ...peer.counter, compareAdd: BigInt(args.adds), swap: 1000n + BigInt(node) };
  post({ opcode: ibv.IBV_WR_ATOMIC_CMP_AND_SWP, wr: { atomic: swap } }, own, counterBytes);
  await complete(cq);
  before.push(numberAt(own.address));
  const opcode = ibv.IBV_WR_RDMA_WRITE_WITH_IMM;
  post({ opcode, wr: { rdma: peer.target }, immData: 0xabc0 + node }, out, args.writeBytes);
  await complete(cq);
  const { immData, byteLen } = await complete(receiveCq);
  await barrier(program, 'done');
  const isWritten = memory.read(target.address, args.writeBytes).every((byte) => byte === fill(1 - node));
  const { atomicCap } = await ibv.queryDevice(context);
  return { atomicCap, before, counter: numberAt(counter.address), immediate: immData, byteLen, isWritten };
}
