/** Many connections by rdma_cm at once, for test/connections.spec.ts: all are up before the first ends. */

import type { ProgramContext } from '../../machine/program.ts';
import * as ibv from '../../userlib/index.ts';

const sinPort = 4791;
/** Client's unfinished connections at any time: fewer than the server's backlog. */
const atOnce = 64;
const numberBytes = 4;

/** Resources shared by all connections of a side. */
interface Side {
  readonly channel: ibv.RdmaEventChannel;
  readonly pd: ibv.IbvPd;
  readonly cq: ibv.IbvCq;
  readonly addr: number;
  readonly lkey: number;
}

async function sideOf({ verbs, memory }: ProgramContext, count: number): Promise<Side> {
  const channel = await ibv.rdmaCreateEventChannel(verbs);
  const [context] = channel.contexts as [ibv.IbvContext];
  const pd = await ibv.allocPd(context);
  const addr = memory.map(count * numberBytes);
  const { lkey } = await ibv.regMr(pd, addr, count * numberBytes, ibv.IBV_ACCESS_LOCAL_WRITE);
  return { channel, pd, cq: await ibv.createCq(context, count), addr, lkey };
}

const createQp = (id: ibv.RdmaCmId, { pd, cq }: Side): Promise<ibv.IbvQp> =>
  ibv.rdmaCreateQp(id, pd, {
    sendCq: cq,
    recvCq: cq,
    qpType: ibv.IBV_QPT_RC,
    cap: { maxSendWr: 1, maxRecvWr: 1, maxSendSge: 1, maxRecvSge: 1 },
  });

const sgeOf = ({ addr, lkey }: Side, at: number): { addr: number; length: number; lkey: number } => ({
  addr: addr + at * numberBytes,
  length: numberBytes,
  lkey,
});

async function nextEvent(
  channel: ibv.RdmaEventChannel,
  ...expected: readonly number[]
): Promise<ibv.RdmaCmEvent> {
  const event = (await ibv.rdmaGetCmEvent(channel))!;
  ibv.rdmaAckCmEvent(event);
  if (!expected.includes(event.event)) throw new Error(ibv.rdmaEventStr(event.event));
  return event;
}

async function completions(cq: ibv.IbvCq, count: number): Promise<void> {
  const wc = [new ibv.IbvWc()];
  for (let at = 0; at < count; at++) {
    await ibv.spinCq(cq, 1, wc);
    if (wc[0]!.status !== ibv.IBV_WC_SUCCESS) throw new Error(`completion with status ${wc[0]!.status}`);
  }
}

/** Connects `args` times, sends the number of each connection over it, then ends them all. */
export async function connectsMany(context: ProgramContext): Promise<number> {
  const count = context.args as number;
  const side = await sideOf(context, count);
  const { channel } = side;
  await context.exchange.take('listening');
  let asked = 0;
  const ask = async (): Promise<void> => {
    asked++;
    const id = await ibv.rdmaCreateId(channel, null, ibv.RDMA_PS_TCP);
    await ibv.rdmaResolveAddr(id, null, { sinAddr: '10.0.0.2', sinPort }, 2000);
  };
  while (asked < Math.min(count, atOnce)) await ask();
  const ids: ibv.RdmaCmId[] = [];
  while (ids.length < count) {
    const event = await nextEvent(
      channel,
      ibv.RDMA_CM_EVENT_ADDR_RESOLVED,
      ibv.RDMA_CM_EVENT_ROUTE_RESOLVED,
      ibv.RDMA_CM_EVENT_ESTABLISHED,
    );
    const { id } = event;
    if (event.event === ibv.RDMA_CM_EVENT_ADDR_RESOLVED) await ibv.rdmaResolveRoute(id, 2000);
    else if (event.event === ibv.RDMA_CM_EVENT_ROUTE_RESOLVED) {
      await createQp(id, side);
      await ibv.rdmaConnect(id, { retryCount: 7 });
    } else {
      ids.push(id);
      if (asked < count) await ask();
    }
  }
  const view = new DataView(new ArrayBuffer(count * numberBytes));
  for (let at = 0; at < count; at++) view.setUint32(at * numberBytes, at);
  context.memory.write(side.addr, new Uint8Array(view.buffer));
  await context.cpu.settle();
  for (const [at, id] of ids.entries()) {
    ibv.postSend(id.qp!, {
      wrId: at,
      sgList: [sgeOf(side, at)],
      numSge: 1,
      opcode: ibv.IBV_WR_SEND,
      sendFlags: ibv.IBV_SEND_SIGNALED,
    });
  }
  await completions(side.cq, count);
  await context.exchange.take('received');
  for (const id of ids) await ibv.rdmaDisconnect(id);
  // The first ones' Timewait is over before the last ones are disconnected.
  for (let ended = 0; ended < count; ) {
    const { event } = await nextEvent(
      channel,
      ibv.RDMA_CM_EVENT_DISCONNECTED,
      ibv.RDMA_CM_EVENT_TIMEWAIT_EXIT,
    );
    if (event === ibv.RDMA_CM_EVENT_DISCONNECTED) ended++;
  }
  for (const id of ids) await endOf(id);
  return ids.length;
}

async function endOf(id: ibv.RdmaCmId): Promise<void> {
  await ibv.rdmaDestroyQp(id);
  await ibv.rdmaDestroyId(id);
}

/** Accepts `args` connections, and receives a number over each; returns how many different numbers have arrived. */
export async function servesMany(context: ProgramContext): Promise<number> {
  const count = context.args as number;
  const side = await sideOf(context, count);
  const { channel } = side;
  const listener = await ibv.rdmaCreateId(channel, null, ibv.RDMA_PS_TCP);
  await ibv.rdmaBindAddr(listener, { sinAddr: '0.0.0.0', sinPort });
  await ibv.rdmaListen(listener, 2 * atOnce);
  await context.exchange.put('listening', true);
  let [taken, established] = [0, 0];
  while (established < count) {
    const { event, id } = await nextEvent(
      channel,
      ibv.RDMA_CM_EVENT_CONNECT_REQUEST,
      ibv.RDMA_CM_EVENT_ESTABLISHED,
    );
    if (event === ibv.RDMA_CM_EVENT_ESTABLISHED) {
      established++;
      continue;
    }
    const qp = await createQp(id, side);
    ibv.postRecv(qp, { wrId: taken, sgList: [sgeOf(side, taken)], numSge: 1 });
    taken++;
    await ibv.rdmaAccept(id);
  }
  await completions(side.cq, count);
  const numbers = new Set<number>();
  const bytes = context.memory.read(side.addr, count * numberBytes);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < count; at++) numbers.add(view.getUint32(at * numberBytes));
  await context.exchange.put('received', true);
  for (let ended = 0; ended < count; ended++) {
    const { id } = await nextEvent(channel, ibv.RDMA_CM_EVENT_DISCONNECTED);
    await ibv.rdmaDisconnect(id);
    await endOf(id);
  }
  await ibv.rdmaDestroyId(listener);
  return numbers.size;
}
