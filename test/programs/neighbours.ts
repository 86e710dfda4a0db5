/** Programs that look for neighbours on a cable of Ethernet, and tell how long each took. */
import type { JsonValue, ProgramContext } from '../../system/machine/program.ts';
import {
  allocPd,
  createAh,
  getDeviceList,
  openDevice,
  RDMA_PS_TCP,
  rdmaAckCmEvent,
  rdmaCreateEventChannel,
  rdmaCreateId,
  rdmaEventStr,
  rdmaGetCmEvent,
  rdmaResolveAddr,
} from '../../userlib/index.ts';
import { codeOf } from './outcomes.ts';

/** Nanoseconds that a wait took, whole. */
const sinceNs = ({ cpu }: ProgramContext, startPs: number): number =>
  Math.round((cpu.localPs - startPs) / 1000);

/** A host that only answers, for so many seconds. */
export async function bystander({ cpu, args }: ProgramContext): Promise<void> {
  await cpu.sleep((args as number) * 1e12);
}

/** rdma_resolve_addr of each address, one after the other: the event, its status, and what it took. */
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

/** ibv_create_ah to each GID from a place of the own table, one after the other: an error or "ok", and what it took. */
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
