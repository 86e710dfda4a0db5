/** ibv_rereg_mr under traffic of a peer, for test/rereg.spec.ts: host 1 changes its region, host 0 writes to it. */

import { allAccess } from '../../experiments/workloads/rc-states.ts';
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import * as ibv from '../../userlib/index.ts';
import { codeOf, take } from './outcomes.ts';
import { areEqual, patternOf, segment, writeOf } from './requests.ts';
import { Side } from './side.ts';

const bytes = 512;
const { IBV_ACCESS_LOCAL_WRITE: local, IBV_ACCESS_REMOTE_WRITE: remote } = ibv;

/** Action of host 1 before each WRITE, and the PD of the target QP. */
const steps = ['none', 'noRemoteWrite', 'remoteWrite', 'moved', 'otherPd', 'ownPd', 'all'] as const;

/** Host 0: one WRITE after each step, over a new connection. @returns their statuses */
export async function writer(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const statuses: string[] = [];
  for (const step of steps) {
    const pair = await side.pair(step, { bufferBytes: 4096 });
    const target = await side.hear<{ address: number; rkey: number }>(`region ${step}`);
    side.write(pair.buffer, patternOf(steps.indexOf(step) + 1, bytes));
    ibv.postSend(pair.qp, writeOf([segment(pair.buffer, 0, bytes)], target));
    statuses.push((await take(pair.sendCq, 1))[0]!.status);
    await side.barrier(`written ${step}`);
  }
  return statuses;
}

/** Host 1. @returns whether each WRITE is at its target, whether keys stayed, and the resources held at the end */
export async function changer(program: ProgramContext): Promise<JsonValue> {
  const { memory, verbs } = program;
  const side = await Side.open(program);
  const other = await ibv.allocPd(side.context);
  const [first, second] = [memory.map(8192), memory.map(8192)];
  const mr = await ibv.regMr(side.pd, first, 8192, local | remote);
  const { lkey, rkey } = mr;
  const { IBV_REREG_MR_CHANGE_ACCESS: access, IBV_REREG_MR_CHANGE_PD: pd } = ibv;
  const { IBV_REREG_MR_CHANGE_TRANSLATION: translation } = ibv;
  const changes: Readonly<Record<(typeof steps)[number], () => Promise<void>>> = {
    none: async () => undefined,
    noRemoteWrite: () => ibv.reregMr(mr, access, null, 0, 0, local),
    remoteWrite: () => ibv.reregMr(mr, access, null, 0, 0, local | remote),
    moved: () => ibv.reregMr(mr, translation, null, second + 0x240, 1024, 0),
    otherPd: () => ibv.reregMr(mr, pd, other, 0, 0, 0),
    ownPd: () => ibv.reregMr(mr, pd, side.pd, 0, 0, 0),
    all: () => ibv.reregMr(mr, access | pd | translation, side.pd, first + 4096, 4096, allAccess),
  };
  const isThere: boolean[] = [];
  for (const step of steps) {
    await changes[step]();
    await side.pair(step);
    await side.tell(`region ${step}`, { address: mr.addr, rkey: mr.rkey });
    await side.barrier(`written ${step}`);
    isThere.push(areEqual(memory.read(mr.addr, bytes), patternOf(steps.indexOf(step) + 1, bytes)));
  }
  const busy = [await codeOf(ibv.deallocPd(other)), mr.pd === side.pd];
  const isSameKey = mr.lkey === lkey && mr.rkey === rkey;
  const { pinnedBytes } = memory.process.space;
  const regions = verbs.devices[0]!.resourceCounts().regions;
  await ibv.deregMr(mr);
  const released = pinnedBytes - memory.process.space.pinnedBytes;
  return {
    isThere,
    isSameKey,
    busy,
    released,
    regions: regions - verbs.devices[0]!.resourceCounts().regions,
  };
}

/** Refusals before any change, and the state after a failure half-way. */
export async function failures(program: ProgramContext): Promise<JsonValue> {
  const { memory } = program;
  const side = await Side.open(program);
  const address = memory.map(4096);
  const mr = await ibv.regMr(side.pd, address, 4096, local);
  const codes: Record<string, string> = {};
  const { IBV_REREG_MR_CHANGE_ACCESS: access, IBV_REREG_MR_CHANGE_PD: pd } = ibv;
  const { IBV_REREG_MR_CHANGE_TRANSLATION: translation } = ibv;
  const rereg = (...args: [number, ibv.IbvPd | null, number, number, number]) =>
    codeOf(ibv.reregMr(mr, ...args));
  codes['noFlag'] = await rereg(0, null, 0, 0, 0);
  codes['unknownFlag'] = await rereg(8, null, 0, 0, 0);
  codes['accessWithoutFlag'] = await rereg(pd, side.pd, 0, 0, local);
  codes['remoteWriteAlone'] = await rereg(access, null, 0, 0, remote);
  codes['noLength'] = await rereg(translation, null, address, 0, 0);
  codes['noPd'] = await rereg(pd, null, 0, 0, 0);
  codes['stillGood'] = await rereg(access, null, 0, 0, local | remote);
  codes['unmapped'] = await rereg(translation, null, 2 ** 40, 4096, 0);
  codes['afterwards'] = await rereg(access, null, 0, 0, local);
  const { pinnedBytes } = memory.process.space;
  codes['dereg'] = await codeOf(ibv.deregMr(mr));
  codes['next'] = await codeOf(ibv.regMr(side.pd, address, 4096, local));
  return { ...codes, pinnedLater: memory.process.space.pinnedBytes - pinnedBytes };
}

/** Requests write access to memory that was read-only when it was pinned. @returns the outcome */
export async function readOnly({ memory, verbs }: ProgramContext): Promise<JsonValue> {
  const context = await ibv.openDevice(ibv.getDeviceList(verbs)[0]!);
  const protectionDomain = await ibv.allocPd(context);
  const lengthBytes = 512 * 1024;
  const address = memory.map(lengthBytes);
  memory.process.space.protect(address, lengthBytes, 'read');
  const mr = await ibv.regMr(protectionDomain, address, lengthBytes, ibv.IBV_ACCESS_REMOTE_READ);
  const { IBV_REREG_MR_CHANGE_ACCESS: access } = ibv;
  const wider = await codeOf(ibv.reregMr(mr, access, null, 0, 0, local));
  return { wider, dereg: await codeOf(ibv.deregMr(mr)) };
}
