/**
 * A server and a client by rdma_cm, with the textbook steps in order. The client on host 0 connects to 10.0.0.2, sends
 * a message and receives it back; then both sides disconnect.
 *
 *     node examples/rdma-cm-echo.ts                 over InfiniBand
 *     node examples/rdma-cm-echo.ts roce            over RoCE v2
 *     node examples/rdma-cm-echo.ts iwarp           over iWARP
 */
import * as ibv from '../index.ts';
import { Machine, type MachineOptions, type ProgramContext, type Report } from '../index.ts';

/** Parameters of a machine by network: the programs do not differ. */
const networks: Readonly<Record<string, MachineOptions['set']>> = {
  infiniband: {},
  roce: { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2' },
  iwarp: { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.transport': 'iwarp' },
};

const sinPort = 7471;
const size = 64;

/** Waits for the next event, which must be this one. */
async function expectEvent(channel: ibv.RdmaEventChannel, expected: number): Promise<ibv.RdmaCmEvent> {
  const event = await ibv.rdmaGetCmEvent(channel);
  if (event?.event !== expected) throw new Error(ibv.rdmaEventStr(event?.event ?? 0));
  ibv.rdmaAckCmEvent(event);
  return event;
}

/** PD, memory, CQ and QP of an ID, and one posted receive. */
async function build(id: ibv.RdmaCmId, { memory }: ProgramContext) {
  const verbs = id.verbs!;
  const pd = await ibv.allocPd(verbs);
  const addr = memory.map(2 * size);
  const mr = await ibv.regMr(pd, addr, 2 * size, ibv.IBV_ACCESS_LOCAL_WRITE);
  const cq = await ibv.createCq(verbs, 16);
  const cap = { maxSendWr: 4, maxRecvWr: 4, maxSendSge: 1, maxRecvSge: 1 };
  const qp = await ibv.rdmaCreateQp(id, pd, { sendCq: cq, recvCq: cq, qpType: ibv.IBV_QPT_RC, cap });
  const sgList = [{ addr, length: size, lkey: mr.lkey }];
  const received = addr + size;
  ibv.postRecv(qp, { wrId: 1, sgList: [{ addr: received, length: size, lkey: mr.lkey }], numSge: 1 });
  return { addr, received, cq, qp, sgList };
}

/** Polls until one work request has completed. */
async function complete(cq: ibv.IbvCq): Promise<void> {
  const wc = [new ibv.IbvWc()];
  await ibv.spinCq(cq, 1, wc);
  if (wc[0]!.status !== ibv.IBV_WC_SUCCESS) throw new Error(`completion with status ${wc[0]!.status}`);
}

export async function server(context: ProgramContext): Promise<string> {
  const channel = await ibv.rdmaCreateEventChannel(context.verbs);
  const listener = await ibv.rdmaCreateId(channel, null, ibv.RDMA_PS_TCP);
  await ibv.rdmaBindAddr(listener, { sinAddr: '0.0.0.0', sinPort });
  await ibv.rdmaListen(listener, 8);
  await context.exchange.put('listening', true);

  const { id, param } = await expectEvent(channel, ibv.RDMA_CM_EVENT_CONNECT_REQUEST);
  const { addr, received, qp, cq, sgList } = await build(id, context);
  await ibv.rdmaAccept(id, { responderResources: 1, initiatorDepth: 1 });
  await expectEvent(channel, ibv.RDMA_CM_EVENT_ESTABLISHED);

  await complete(cq);
  context.memory.write(addr, context.memory.read(received, size));
  await context.cpu.settle();
  const { IBV_WR_SEND, IBV_SEND_SIGNALED } = ibv;
  ibv.postSend(qp, { wrId: 2, sgList, numSge: 1, opcode: IBV_WR_SEND, sendFlags: IBV_SEND_SIGNALED });
  await complete(cq);
  await expectEvent(channel, ibv.RDMA_CM_EVENT_DISCONNECTED);
  await ibv.rdmaDisconnect(id);
  await ibv.rdmaDestroyQp(id);
  await ibv.rdmaDestroyId(id);
  await ibv.rdmaDestroyId(listener);
  await ibv.rdmaDestroyEventChannel(channel);
  return new TextDecoder().decode(param.conn.privateData.subarray(0, 5));
}

export async function client(context: ProgramContext): Promise<string> {
  await context.exchange.take('listening');
  const channel = await ibv.rdmaCreateEventChannel(context.verbs);
  const id = await ibv.rdmaCreateId(channel, null, ibv.RDMA_PS_TCP);
  await ibv.rdmaResolveAddr(id, null, { sinAddr: '10.0.0.2', sinPort }, 2000);
  await expectEvent(channel, ibv.RDMA_CM_EVENT_ADDR_RESOLVED);
  await ibv.rdmaResolveRoute(id, 2000);
  await expectEvent(channel, ibv.RDMA_CM_EVENT_ROUTE_RESOLVED);

  const { qp, cq, addr, received, sgList } = await build(id, context);
  const privateData = new TextEncoder().encode('hello');
  await ibv.rdmaConnect(id, { privateData, responderResources: 1, initiatorDepth: 1, retryCount: 7 });
  await expectEvent(channel, ibv.RDMA_CM_EVENT_ESTABLISHED);

  const { memory, cpu } = context;
  memory.write(addr, new TextEncoder().encode('echo over a connection'));
  await cpu.settle();
  const { IBV_WR_SEND, IBV_SEND_SIGNALED } = ibv;
  ibv.postSend(qp, { wrId: 2, sgList, numSge: 1, opcode: IBV_WR_SEND, sendFlags: IBV_SEND_SIGNALED });
  await complete(cq);
  await complete(cq);
  const echo = new TextDecoder().decode(memory.read(received, 22));
  await ibv.rdmaDisconnect(id);
  await expectEvent(channel, ibv.RDMA_CM_EVENT_DISCONNECTED);
  await ibv.rdmaDestroyQp(id);
  await ibv.rdmaDestroyId(id);
  await ibv.rdmaDestroyEventChannel(channel);
  return echo;
}

export async function main(network = 'infiniband'): Promise<{ results: unknown; report: Report }> {
  const set = networks[network];
  if (set === undefined) throw new Error(`${network} is none of ${Object.keys(networks).join(', ')}`);
  await using machine = await Machine.create({ set });
  await machine.load({ node: 0, run: client });
  await machine.load({ node: 1, run: server });
  await machine.run();
  return { results: await machine.results(), report: await machine.report() };
}

if (import.meta.main) console.log((await main(process.argv[2])).results);
