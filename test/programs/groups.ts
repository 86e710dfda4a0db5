/** Multicast groups of two hosts: the receivers of host 0's datagrams, and refused attachments. For test/multicast.spec.ts. */
import type { Driver } from '../../driver/index.ts';
import { announcedOf, pathTo, peerFrom } from '../../experiments/workloads/port-address.ts';
import { connectUd, initUd, qkey } from '../../experiments/workloads/unreliable-states.ts';
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import * as ibv from '../../userlib/index.ts';
import { codeOf, take, takeAll } from './outcomes.ts';
import { receiveOf, segment } from './requests.ts';
import { type Area, Side } from './side.ts';

export interface GroupArgs {
  /** 16 bytes. */
  readonly gid: readonly number[];
  readonly lid: number;
  /** Number of groups like this one, each with another last byte, so that chains of entries form. */
  readonly groups?: number;
}

const datagramBytes = 64;
const headerBytes = 40;
const everyQp = 0xff_ffff;

interface Member {
  readonly qp: ibv.IbvQp;
  readonly area: Area;
}

async function memberOf(side: Side, createFlags = 0): Promise<Member> {
  const { context, pd } = side;
  const [sendCq, recvCq] = [await ibv.createCq(context, 8), await ibv.createCq(context, 8)];
  const cap = { maxSendWr: 4, maxRecvWr: 8, maxSendSge: 1, maxRecvSge: 1 };
  const qp = await ibv.createQp(pd, { sendCq, recvCq, qpType: ibv.IBV_QPT_UD, cap, createFlags });
  await initUd(qp);
  await connectUd(qp, 7);
  const area = await side.area(4096);
  for (let at = 0; at < 8; at++) ibv.postRecv(qp, receiveOf([segment(area, at * 128, 128)], at));
  return { qp, area };
}

async function sendTo(side: Side, { qp, area }: Member, { gid, lid }: GroupArgs): Promise<string> {
  const { sgidIndex = 0 } = side.own;
  const grh = { dgid: Uint8Array.from(gid), flowLabel: 0, sgidIndex, hopLimit: 5, trafficClass: 0 };
  const ah = await ibv.createAh(side.pd, { dlid: lid, isGlobal: 1, grh, portNum: 1 });
  ibv.postSend(qp, {
    wrId: 1,
    sgList: [segment(area, 2048, datagramBytes)],
    numSge: 1,
    opcode: ibv.IBV_WR_SEND,
    sendFlags: ibv.IBV_SEND_SIGNALED,
    wr: { ud: { ah, remoteQpn: everyQp, remoteQkey: qkey } },
  });
  return (await take(qp.sendCq, 1))[0]!.status;
}

/**
 * Members on each host: plain, plain, one that is not attached, and on host 0 the sender, which blocks its own datagrams.
 * @returns received datagrams
 */
export async function members(program: ProgramContext<GroupArgs>): Promise<JsonValue> {
  const args = program.args;
  const gid = Uint8Array.from(args.gid);
  const side = await Side.open(program);
  const all = [await memberOf(side), await memberOf(side), await memberOf(side)];
  const sender = await memberOf(side, ibv.IBV_QP_CREATE_BLOCK_SELF_MCAST_LB);
  for (const { qp } of [all[0]!, all[1]!, sender]) await ibv.attachMcast(qp, gid, args.lid);
  await ibv.attachMcast(all[0]!.qp, gid, args.lid);
  const received = async (): Promise<number[]> => {
    const counts: number[] = [];
    for (const { qp } of [...all, sender]) counts.push((await takeAll(qp.recvCq)).length);
    return counts;
  };
  await side.barrier('attached');
  const status = program.node === 0 ? await sendTo(side, sender, args) : 'none';
  await side.barrier('sent');
  const first = await received();
  await ibv.detachMcast(all[0]!.qp, gid, args.lid);
  await side.barrier('detached');
  if (program.node === 0) await sendTo(side, sender, args);
  await side.barrier('sent again');
  const second = await received();
  const busy = await codeOf(ibv.destroyQp(all[1]!.qp));
  await ibv.detachMcast(all[1]!.qp, gid, args.lid);
  const free = await codeOf(ibv.destroyQp(all[1]!.qp));
  return { status, first, second, busy, free };
}

/** Refused attachments and detachments. */
export async function refusals(program: ProgramContext<GroupArgs>): Promise<JsonValue> {
  const args = program.args;
  const gid = Uint8Array.from(args.gid);
  const side = await Side.open(program);
  const { qp } = await memberOf(side);
  const connected = (await side.unconnected('rc')).qp;
  const attach = (of: ibv.IbvQp, to: Uint8Array, lid: number): Promise<string> =>
    codeOf(ibv.attachMcast(of, to, lid));
  return {
    otherType: await attach(connected, gid, args.lid),
    unicastGid: await attach(qp, Uint8Array.from([0xfe, 0x80, ...new Array(14).fill(1)]), args.lid),
    shortGid: await attach(qp, gid.subarray(1), args.lid),
    unicastLid: await attach(qp, gid, 0xbfff),
    permissiveLid: await attach(qp, gid, 0xffff),
    notAttached: await codeOf(ibv.detachMcast(qp, gid, args.lid)),
    attached: await attach(qp, gid, args.lid),
    otherLid: await codeOf(ibv.detachMcast(qp, gid, args.lid + 1)),
    detached: await codeOf(ibv.detachMcast(qp, gid, args.lid)),
    again: await codeOf(ibv.detachMcast(qp, gid, args.lid)),
  };
}

/** Many groups, of which every third is left again; then host 0 sends to each once. @returns those that host 1 has received */
export async function many(program: ProgramContext<GroupArgs>): Promise<JsonValue> {
  const args = program.args;
  const count = args.groups ?? 0;
  const groups = Array.from({ length: count }, (_, at) =>
    Uint8Array.from([...args.gid.slice(0, 14), at >> 8, at & 0xff]),
  );
  const side = await Side.open(program);
  const member = await memberOf(side);
  if (program.node === 1) {
    for (const gid of groups) await ibv.attachMcast(member.qp, gid, args.lid);
    for (const [at, gid] of groups.entries())
      if (at % 3 === 0) await ibv.detachMcast(member.qp, gid, args.lid);
  }
  const found: boolean[] = [];
  for (const [at, gid] of groups.entries()) {
    await side.barrier(`group ${at}`);
    if (program.node === 0) await sendTo(side, member, { ...args, gid: [...gid] });
    await side.barrier(`sent ${at}`);
    if (program.node === 0) continue;
    const taken = await takeAll(member.qp.recvCq);
    found.push(taken.length > 0);
    for (const { wrId } of taken)
      ibv.postRecv(member.qp, receiveOf([segment(member.area, wrId * 128, 128)], wrId));
  }
  if (program.node === 0) return null;
  for (const [at, gid] of groups.entries()) if (at % 3 !== 0) await ibv.detachMcast(member.qp, gid, args.lid);
  return { found, left: (program.verbs.devices[0] as Driver).device.multicast.overflowCount };
}

/** Host 0 sends a datagram to host 1, which answers to the address in the completion. @returns the datagrams received by each */
export async function answers(program: ProgramContext): Promise<object> {
  const side = await Side.open(program);
  const member = await memberOf(side);
  await side.tell('there', { ...announcedOf(side.own), qpNum: member.qp.qpNum });
  const there = await side.hear<{ lid: number; qpNum: number }>('there');
  const isGlobal = program.args === true;
  const send = async (ah: ibv.IbvAh, remoteQpn: number): Promise<void> => {
    ibv.postSend(member.qp, {
      wrId: 1,
      sgList: [segment(member.area, 2048, datagramBytes)],
      numSge: 1,
      opcode: ibv.IBV_WR_SEND,
      sendFlags: ibv.IBV_SEND_SIGNALED,
      wr: { ud: { ah, remoteQpn, remoteQkey: qkey } },
    });
    await take(member.qp.sendCq, 1);
  };
  const received = async (): Promise<ibv.IbvWc> => {
    const wc = new ibv.IbvWc();
    await ibv.spinCq(member.qp.recvCq, 1, [wc]);
    return wc;
  };
  if (program.node === 0) {
    const peer = peerFrom(side.own, there);
    const path = pathTo(peer);
    const gid = await ibv.queryGid(side.context, 1, side.own.sgidIndex ?? 0);
    const dgid = Uint8Array.from(isGlobal ? await exchangedGid(side, gid) : []);
    const grh = {
      dgid,
      sgidIndex: side.own.sgidIndex ?? 0,
      hopLimit: 9,
      flowLabel: 0x12345,
      trafficClass: 0x2a,
    };
    await send(await ibv.createAh(side.pd, isGlobal ? { ...path, isGlobal: 1, grh } : path), there.qpNum);
    const wc = await received();
    return { srcQp: wc.srcQp === there.qpNum, flags: wc.wcFlags };
  }
  if (isGlobal) await exchangedGid(side, await ibv.queryGid(side.context, 1, 0));
  const wc = await received();
  const grh = program.memory.read(member.area.address + wc.wrId * 128, headerBytes);
  const attr = await ibv.initAhFromWc(side.context, 1, wc, grh);
  await send(await ibv.createAhFromWc(side.pd, wc, grh, 1), wc.srcQp);
  const elsewhere = grh.map((byte, at) => (at === 39 ? byte ^ 1 : byte));
  const stranger = isGlobal ? await codeOf(ibv.initAhFromWc(side.context, 1, wc, elsewhere)) : 'none';
  const { grh: route, ...local } = attr;
  return {
    local,
    route: route === undefined ? null : { ...route, dgid: [...route.dgid] },
    stranger,
  };
}

/** On InfiniBand, hosts tell each other their GIDs. */
async function exchangedGid(side: Side, own: Uint8Array): Promise<number[]> {
  await side.tell('gid', [...own]);
  return await side.hear<number[]>('gid');
}
