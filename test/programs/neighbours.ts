/** Programs that resolve neighbours on an Ethernet cable, and report the duration of each; and that connect to them. */
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import {
  allocPd,
  createAh,
  createCq,
  getDeviceList,
  IBV_ACCESS_LOCAL_WRITE,
  IBV_QPT_RC,
  openDevice,
  postRecv,
  postSend,
  RDMA_PS_TCP,
  type RdmaCmId,
  type RdmaEventChannel,
  rdmaAccept,
  rdmaAckCmEvent,
  rdmaBindAddr,
  rdmaConnect,
  rdmaCreateEventChannel,
  rdmaCreateId,
  rdmaCreateQp,
  rdmaDisconnect,
  rdmaEventStr,
  rdmaGetCmEvent,
  rdmaGetLocalAddr,
  rdmaGetPeerAddr,
  rdmaListen,
  rdmaResolveAddr,
  rdmaResolveRoute,
  regMr,
} from '../../userlib/index.ts';
import { codeOf, take } from './outcomes.ts';
import { receiveOf, segment, sendOf } from './requests.ts';
import type { Area } from './side.ts';

/** Duration of a wait in whole nanoseconds. */
const sinceNs = ({ cpu }: ProgramContext, startPs: number): number =>
  Math.round((cpu.localPs - startPs) / 1000);

/** A host that only answers, for this many seconds. */
export async function bystander({ cpu, args }: ProgramContext): Promise<void> {
  await cpu.sleep((args as number) * 1e12);
}

/** rdma_resolve_addr of each address, one after another: the event, its status, and its duration. */
export async function resolveByCm(program: ProgramContext): Promise<JsonValue> {
  const channel = await rdmaCreateEventChannel(program.verbs);
  const said: JsonValue[] = [];
  for (const [address, timeoutMs] of program.args as readonly (readonly [string, number])[]) {
    const id = await rdmaCreateId(channel, null, RDMA_PS_TCP);
    const startPs = program.cpu.localPs;
    const code = await codeOf(rdmaResolveAddr(id, null, { sinAddr: address, sinPort: 7 }, timeoutMs));
    if (code !== 'ok') {
      said.push([code]);
      continue;
    }
    const event = (await rdmaGetCmEvent(channel))!;
    said.push([rdmaEventStr(event.event), event.status, sinceNs(program, startPs)]);
    rdmaAckCmEvent(event);
  }
  return said;
}

/** ibv_create_ah to each GID from an index of the own table, one after another: an error or "ok", and its duration. */
export async function resolveByVerbs(program: ProgramContext): Promise<JsonValue> {
  const context = await openDevice(getDeviceList(program.verbs)[0]!);
  const pd = await allocPd(context);
  const said: JsonValue[] = [];
  for (const [gid, sgidIndex] of program.args as readonly (readonly [string, number])[]) {
    const startPs = program.cpu.localPs;
    const grh = {
      dgid: Uint8Array.from(Buffer.from(gid, 'hex')),
      flowLabel: 0,
      sgidIndex,
      hopLimit: 1,
      trafficClass: 0,
    };
    const code = await codeOf(createAh(pd, { dlid: 0, isGlobal: 1, grh, portNum: 1 }));
    said.push([code, sinceNs(program, startPs)]);
  }
  return said;
}

const sinPort = 7471;
const bytesSent = 100;

async function nextOf(channel: RdmaEventChannel): Promise<{ readonly id: RdmaCmId; readonly said: string }> {
  const { id, event, status } = (await rdmaGetCmEvent(channel))!;
  const text = status === 0 ? rdmaEventStr(event) : `${rdmaEventStr(event)} ${status}`;
  id.eventsUnacked = 0;
  return { id, said: text.replace('RDMA_CM_EVENT_', '') };
}

/** The ID's QP, with memory to send from and receive into. */
async function qpOf(id: RdmaCmId, { memory }: ProgramContext): Promise<Area> {
  const pd = await allocPd(id.verbs!);
  const cq = await createCq(id.verbs!, 4);
  const cap = { maxSendWr: 1, maxRecvWr: 1, maxSendSge: 1, maxRecvSge: 1 };
  await rdmaCreateQp(id, pd, { sendCq: cq, recvCq: cq, qpType: IBV_QPT_RC, cap });
  const address = memory.map(4096);
  return { address, lengthBytes: 4096, mr: await regMr(pd, address, 4096, IBV_ACCESS_LOCAL_WRITE) };
}

const addressesOf = async (id: RdmaCmId): Promise<JsonValue> => [
  (await rdmaGetLocalAddr(id)).sinAddr,
  (await rdmaGetPeerAddr(id))!.sinAddr,
];

/** Connects to an address by rdma_cm, and sends. @returns its events, and the addresses of both */
export async function connectAndSend(program: ProgramContext): Promise<JsonValue> {
  await program.exchange.take('listening');
  const channel = await rdmaCreateEventChannel(program.verbs);
  const id = await rdmaCreateId(channel, null, RDMA_PS_TCP);
  await rdmaResolveAddr(id, null, { sinAddr: program.args as string, sinPort }, 2000);
  const said = [(await nextOf(channel)).said];
  await rdmaResolveRoute(id, 2000);
  said.push((await nextOf(channel)).said);
  const area = await qpOf(id, program);
  await rdmaConnect(id, { responderResources: 1, initiatorDepth: 1, retryCount: 7 });
  said.push((await nextOf(channel)).said);
  if (said.at(-1) !== 'ESTABLISHED') return [said];
  postSend(id.qp!, sendOf([segment(area, 0, bytesSent)]));
  const [outcome] = await take(id.qp!.sendCq, 1);
  const addresses = await addressesOf(id);
  said.push((await nextOf(channel)).said);
  return [said, outcome!.status, addresses];
}

/** Listens at an address, receives and ends the connection; a rejected program is not reported to it. */
export async function listenAndReceive(program: ProgramContext): Promise<JsonValue> {
  const [sinAddr, isRefused] = program.args as readonly [string, boolean];
  const channel = await rdmaCreateEventChannel(program.verbs);
  const listener = await rdmaCreateId(channel, null, RDMA_PS_TCP);
  await rdmaBindAddr(listener, { sinAddr, sinPort });
  await rdmaListen(listener, 1);
  await program.exchange.put('listening', true);
  if (isRefused) return null;
  const { id, said } = await nextOf(channel);
  const area = await qpOf(id, program);
  postRecv(id.qp!, receiveOf([segment(area, 0, bytesSent)]));
  await rdmaAccept(id, { responderResources: 1, initiatorDepth: 1 });
  const established = (await nextOf(channel)).said;
  const [outcome] = await take(id.qp!.recvCq, 1);
  const addresses = await addressesOf(id);
  await rdmaDisconnect(id);
  return [[said, established], outcome!.byteLen, addresses];
}
