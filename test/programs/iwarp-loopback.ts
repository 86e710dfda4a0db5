/**
 * Two programs of one host over iWARP, whose connection leaves and arrives at the same card: WRITE, SEND and READ by sizes, a
 * refusal by the program, one by the card (no listener), and the end of the connection.
 */
import type { ProgramContext } from '../../machine/program.ts';
import * as ibv from '../../userlib/index.ts';

export interface LoopbackArgs {
  readonly sizes: readonly number[];
}

const address = '10.0.0.1';
const ports = { open: 7471, closed: 7472 } as const;
/** Time in which the server begins to listen. */
const listeningPs = 20_000_000_000;

const patternOf = (size: number, kind: number): Uint8Array =>
  Uint8Array.from({ length: size }, (_, at) => (at * 31 + size * 7 + kind * 17) & 0xff);
const kinds = { write: 1, send: 2, source: 3 } as const;

async function expectEvent(channel: ibv.RdmaEventChannel, expected: number): Promise<ibv.RdmaCmEvent> {
  const event = await ibv.rdmaGetCmEvent(channel);
  if (event?.event !== expected) throw new Error(ibv.rdmaEventStr(event?.event ?? 0));
  ibv.rdmaAckCmEvent(event);
  return event;
}

const depths = { responderResources: 1, initiatorDepth: 1, retryCount: 7 };
const signalled = { wrId: 1, sendFlags: ibv.IBV_SEND_SIGNALED } as const;

interface MemoryBuffer {
  readonly address: number;
  readonly region: ibv.IbvMr;
}

/** Two buffers and a QP for an ID. */
async function build({ memory, args }: ProgramContext<LoopbackArgs>, id: ibv.RdmaCmId) {
  const pd = await ibv.allocPd(id.verbs!);
  const most = Math.max(...args.sizes);
  const access = ibv.IBV_ACCESS_LOCAL_WRITE | ibv.IBV_ACCESS_REMOTE_WRITE | ibv.IBV_ACCESS_REMOTE_READ;
  const newBuffer = async (): Promise<MemoryBuffer> => {
    const address = memory.map(most);
    return { address, region: await ibv.regMr(pd, address, most, access) };
  };
  const [first, second] = [await newBuffer(), await newBuffer()];
  const cq = await ibv.createCq(id.verbs!, 16);
  const cap = { maxSendWr: 8, maxRecvWr: 8, maxSendSge: 1, maxRecvSge: 1 };
  const qp = await ibv.rdmaCreateQp(id, pd, { sendCq: cq, recvCq: cq, qpType: ibv.IBV_QPT_RC, cap });
  return { first, second, cq, qp };
}

/** A buffer's address and key, as private data of the server's reply. */
function placeOf({ address: addr, region }: MemoryBuffer): Uint8Array {
  const view = new DataView(new ArrayBuffer(12));
  view.setBigUint64(0, BigInt(addr));
  view.setUint32(8, region.rkey);
  return new Uint8Array(view.buffer);
}

function placeIn(bytes: Uint8Array): { readonly remoteAddr: number; readonly rkey: number } {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  return { remoteAddr: Number(view.getBigUint64(0)), rkey: view.getUint32(8) };
}

const listOf = ({ address: addr, region }: MemoryBuffer, length: number) => [
  { addr, length, lkey: region.lkey },
];

async function complete(cq: ibv.IbvCq): Promise<void> {
  const wc = [new ibv.IbvWc()];
  await ibv.spinCq(cq, 1, wc);
  if (wc[0]!.status !== ibv.IBV_WC_SUCCESS) throw new Error(`completion with status ${wc[0]!.status}`);
}

/** Answers by size: whether the bytes of the client's WRITE and SEND were right. */
export async function server(program: ProgramContext<LoopbackArgs>): Promise<readonly boolean[][]> {
  const { memory, args, cpu } = program;
  const channel = await ibv.rdmaCreateEventChannel(program.verbs);
  const listener = await ibv.rdmaCreateId(channel, null, ibv.RDMA_PS_TCP);
  await ibv.rdmaBindAddr(listener, { sinAddr: '0.0.0.0', sinPort: ports.open });
  await ibv.rdmaListen(listener, 8);

  const refused = await expectEvent(channel, ibv.RDMA_CM_EVENT_CONNECT_REQUEST);
  await ibv.rdmaReject(refused.id, Uint8Array.of(9));
  await ibv.rdmaDestroyId(refused.id);

  const { id } = await expectEvent(channel, ibv.RDMA_CM_EVENT_CONNECT_REQUEST);
  const { first: written, second: received, qp, cq } = await build(program, id);
  const source = written;
  const most = Math.max(...args.sizes);
  const receive = (): unknown => ibv.postRecv(qp, { wrId: 1, sgList: listOf(received, most), numSge: 1 });
  receive();
  await ibv.rdmaAccept(id, { ...depths, privateData: placeOf(written) });
  await expectEvent(channel, ibv.RDMA_CM_EVENT_ESTABLISHED);
  const found: boolean[][] = [];
  for (const size of args.sizes) {
    await complete(cq);
    const holds = (buffer: MemoryBuffer, kind: number): boolean =>
      Buffer.compare(memory.read(buffer.address, size), patternOf(size, kind)) === 0;
    found.push([holds(written, kinds.write), holds(received, kinds.send)]);
    memory.write(source.address, patternOf(size, kinds.source));
    await cpu.settle();
    receive();
    ibv.postSend(qp, { ...signalled, opcode: ibv.IBV_WR_SEND, sgList: [], numSge: 0 });
    await complete(cq);
  }
  await expectEvent(channel, ibv.RDMA_CM_EVENT_DISCONNECTED);
  await ibv.rdmaDisconnect(id);
  await ibv.rdmaDestroyQp(id);
  await ibv.rdmaDestroyId(id);
  await ibv.rdmaDestroyId(listener);
  await ibv.rdmaDestroyEventChannel(channel);
  return found;
}

/** An ID whose route to a port of this host is resolved. */
async function routed(channel: ibv.RdmaEventChannel, sinPort: number) {
  const id = await ibv.rdmaCreateId(channel, null, ibv.RDMA_PS_TCP);
  await ibv.rdmaResolveAddr(id, null, { sinAddr: address, sinPort }, 2000);
  await expectEvent(channel, ibv.RDMA_CM_EVENT_ADDR_RESOLVED);
  await ibv.rdmaResolveRoute(id, 2000);
  await expectEvent(channel, ibv.RDMA_CM_EVENT_ROUTE_RESOLVED);
  return id;
}

/** Answers by size: whether the bytes of its READ were right; and the private data of the refusal. */
export async function client(
  program: ProgramContext<LoopbackArgs>,
): Promise<{ read: readonly boolean[]; refusal: readonly number[] }> {
  const { memory, args, cpu } = program;
  await cpu.sleep(listeningPs);
  const channel = await ibv.rdmaCreateEventChannel(program.verbs);
  const refusal: number[] = [];
  for (const port of [ports.closed, ports.open]) {
    const id = await routed(channel, port);
    await build(program, id);
    await ibv.rdmaConnect(id, depths);
    const { param } = await expectEvent(channel, ibv.RDMA_CM_EVENT_REJECTED);
    refusal.push(...param.conn.privateData.subarray(0, 1));
    await ibv.rdmaDestroyQp(id);
    await ibv.rdmaDestroyId(id);
  }
  const id = await routed(channel, ports.open);
  const { first: out, second: back, qp, cq } = await build(program, id);
  await ibv.rdmaConnect(id, depths);
  const { param } = await expectEvent(channel, ibv.RDMA_CM_EVENT_ESTABLISHED);
  const rdma = placeIn(param.conn.privateData);
  const post = (opcode: ibv.IbvSendWr['opcode'], buffer: MemoryBuffer, size: number, wr = {}): void => {
    const sgList = size === 0 ? [] : listOf(buffer, size);
    const request = { ...signalled, sgList, numSge: sgList.length, opcode, wr };
    ibv.postSend(qp, request as ibv.IbvSendWr);
  };
  const fill = async (size: number, kind: number): Promise<void> => {
    memory.write(out.address, patternOf(size, kind));
    await cpu.settle();
  };
  const read: boolean[] = [];
  for (const size of args.sizes) {
    ibv.postRecv(qp, { wrId: 1, sgList: [], numSge: 0 });
    await fill(size, kinds.write);
    post(ibv.IBV_WR_RDMA_WRITE, out, size, { rdma });
    await complete(cq);
    await fill(size, kinds.send);
    post(ibv.IBV_WR_SEND, out, size);
    await complete(cq);
    await complete(cq);
    post(ibv.IBV_WR_RDMA_READ, back, size, { rdma });
    await complete(cq);
    read.push(Buffer.compare(memory.read(back.address, size), patternOf(size, kinds.source)) === 0);
  }
  await ibv.rdmaDisconnect(id);
  await expectEvent(channel, ibv.RDMA_CM_EVENT_DISCONNECTED);
  await ibv.rdmaDestroyQp(id);
  await ibv.rdmaDestroyId(id);
  await ibv.rdmaDestroyEventChannel(channel);
  return { read, refusal };
}
