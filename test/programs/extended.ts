/**
 * XRC as programs use it: two processes of one host, each with an SRQ of a file's domain, share the target of one connection;
 * and misuse that the verbs refuse.
 *
 *     node 0: sender (initiator) ──one connection──> node 1: owner (target, SRQ)     guest (SRQ of the same domain)
 */

import { announcedOf, type PortAddress, peerFrom } from '../../experiments/workloads/port-address.ts';
import { connectInitiator, connectTarget } from '../../experiments/workloads/xrc-states.ts';
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import {
  closeDevice,
  closeXrcd,
  createCq,
  createQpEx,
  createSrqEx,
  deallocPd,
  deregMr,
  destroyCq,
  destroyQp,
  destroySrq,
  getSrqNum,
  IBV_QPT_RC,
  IBV_QPT_XRC_RECV,
  IBV_QPT_XRC_SEND,
  IBV_SRQT_XRC,
  IBV_WR_RDMA_WRITE_WITH_IMM,
  IBV_WR_SEND,
  type IbvCq,
  type IbvSrq,
  type IbvXrcd,
  O_CREAT,
  O_EXCL,
  openQp,
  openXrcd,
  postRecv,
  postSend,
  postSrqRecv,
  queryQp,
} from '../../userlib/index.ts';
import { codeOf, eventsWithin, statusesOf, take } from './outcomes.ts';
import {
  areEqual,
  compareSwapOf,
  fetchAddOf,
  patternOf,
  readOf,
  receiveOf,
  segment,
  sendOf,
  writeOf,
} from './requests.ts';
import { type Area, attributesOf, Side } from './side.ts';

/** The file that the two processes of node 1 share. */
const sharedFile = 7;
const areaBytes = 4096;
const attributes = attributesOf({});

interface Address extends PortAddress {
  readonly qpNum: number;
  readonly psn: number;
}

/** Data that a process of node 1 sends about its queue. */
interface Queue {
  readonly srqn: number;
  readonly address: number;
  readonly rkey: number;
}

interface Receiver {
  readonly side: Side;
  readonly xrcd: IbvXrcd;
  readonly cq: IbvCq;
  readonly srq: IbvSrq;
  readonly area: Area;
}

async function openReceiver(side: Side, xrcd: IbvXrcd): Promise<Receiver> {
  const { program } = side;
  const cq = await createCq(side.context, 16);
  const attr = { maxWr: 8, maxSge: 1 };
  const srq = await createSrqEx(side.context, { pd: side.pd, attr, srqType: IBV_SRQT_XRC, xrcd, cq });
  const area = await side.area(areaBytes);
  for (let at = 0; at < 4; at++) postSrqRecv(srq, receiveOf([segment(area, at * 1024, 1024)], at));
  const queue: Queue = { srqn: getSrqNum(srq), address: area.address, rkey: area.mr.rkey };
  await program.exchange.put('queue', queue);
  return { side, xrcd, cq, srq, area };
}

async function closeReceiver({ side, xrcd, cq, srq, area }: Receiver): Promise<JsonValue> {
  const busy = { xrcd: await codeOf(closeXrcd(xrcd)), cq: await codeOf(destroyCq(cq)) };
  await destroySrq(srq);
  await destroyCq(cq);
  await closeXrcd(xrcd);
  await deregMr(area.mr);
  await deallocPd(side.pd);
  await closeDevice(side.context);
  return busy;
}

/** Receives two messages, regardless of the target's holder. */
async function received({ side, cq, area }: Receiver): Promise<JsonValue> {
  const wcs = await take(cq, 2);
  return {
    statuses: statusesOf(wcs),
    lengths: wcs.map(({ byteLen }) => byteLen),
    ids: wcs.map(({ wrId }) => wrId),
    first: [...side.read(area, 4, wcs[0]!.wrId * 1024)],
  };
}

/** Creates the domain and the target. */
export async function owner(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const { context } = side;
  const xrcd = await openXrcd(context, { fd: sharedFile, oflags: O_CREAT | O_EXCL });
  const receiver = await openReceiver(side, xrcd);
  const again = await codeOf(openXrcd(context, { fd: sharedFile, oflags: O_CREAT | O_EXCL }));
  const absent = await codeOf(openXrcd(context, { fd: 99, oflags: 0 }));
  const target = await createQpEx(context, { qpType: IBV_QPT_XRC_RECV, xrcd: receiver.xrcd });
  const own: Address = { ...announcedOf(side.own), qpNum: target.qpNum, psn: 0 };
  await program.exchange.put('target', own);
  const initiator = await program.exchange.take<Address>('initiator');
  await connectTarget(target, { ...initiator, ...peerFrom(side.own, initiator) }, attributes);
  await program.exchange.put('ready', true);
  const told = await received(receiver);
  await program.exchange.take('over');
  const isMarked = (target.qpNum & 0x80_0000) !== 0;
  const events = await eventsWithin(context, 1000);
  await destroyQp(target);
  await program.exchange.put('gone', true);
  return { again, absent, isMarked, told, events, busy: await closeReceiver(receiver) };
}

/** The owner may start later. */
async function sharedDomain(side: Side): Promise<IbvXrcd> {
  for (;;) {
    try {
      return await openXrcd(side.context, { fd: sharedFile, oflags: 0 });
    } catch {
      await side.program.cpu.sleep(1e9);
    }
  }
}

/** Shares the domain and the target, which it holds longer than its creator. */
export async function guest(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const { context } = side;
  const xrcd = await sharedDomain(side);
  const receiver = await openReceiver(side, xrcd);
  const qpNum = await program.exchange.take<number>('number');
  const qpType = IBV_QPT_XRC_RECV;
  const target = await openQp(context, { qpNum, xrcd, qpType });
  const opened = (await queryQp(target)).qpState!;
  const unopened = [
    await codeOf(openQp(context, { qpNum: qpNum ^ 1, xrcd, qpType })),
    await codeOf(openQp(context, { qpNum, xrcd, qpType: IBV_QPT_RC as typeof IBV_QPT_XRC_RECV })),
  ];
  await program.exchange.put('opened', true);
  const told = await received(receiver);
  await program.exchange.take('over');
  const events = await eventsWithin(context, 1000);
  await program.exchange.take('owner is gone');
  const left = (await queryQp(target)).qpState!;
  await destroyQp(target);
  return { told, opened, unopened, events, left, busy: await closeReceiver(receiver) };
}

export async function sender(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const { context, pd } = side;
  const cq = await createCq(context, 32);
  const cap = { maxSendWr: 16, maxRecvWr: 8, maxSendSge: 1, maxRecvSge: 1 };
  const refused = await codeOf(createQpEx(context, { pd, sendCq: cq, qpType: IBV_QPT_RC, cap: { ...cap } }));
  const qp = await createQpEx(context, { pd, sendCq: cq, qpType: IBV_QPT_XRC_SEND, cap: { ...cap } });
  const area = await side.area(areaBytes);
  side.write(area, patternOf(3, areaBytes));
  const queues = [await program.exchange.take<Queue>('queue'), await program.exchange.take<Queue>('queue')];
  const target = await program.exchange.take<Address>('target');
  const own: Address = { ...announcedOf(side.own), qpNum: qp.qpNum, psn: 0x123 };
  await program.exchange.put('initiator', own);
  await connectInitiator(qp, { ...target, ...peerFrom(side.own, target) }, own.psn, attributes);
  await program.exchange.take('ready');
  await program.exchange.put('number', target.qpNum);
  await program.exchange.take('opened');
  const errors = [
    postSend(qp, sendOf([segment(area, 0, 8)])),
    postSend(qp, sendOf([segment(area, 0, 8)], { qpType: { xrc: { remoteSrqn: 2 ** 24 } } })),
    postRecv(qp, receiveOf([segment(area, 0, 8)])),
  ];
  for (const queue of queues) {
    const qpType = { xrc: { remoteSrqn: queue.srqn } };
    const there = { address: queue.address + 3072, rkey: queue.rkey };
    postSend(qp, sendOf([segment(area, 0, 700)], { opcode: IBV_WR_SEND, qpType }));
    const immediate = { opcode: IBV_WR_RDMA_WRITE_WITH_IMM, immData: 5, qpType };
    postSend(qp, writeOf([segment(area, 0, 100)], there, immediate));
    postSend(qp, readOf([segment(area, 2048, 100)], there, { qpType }));
    const counter = { address: queue.address + 4088, rkey: queue.rkey };
    postSend(qp, writeOf([segment(area, 1024, 900)], { ...there, address: there.address + 100 }, { qpType }));
    postSend(qp, fetchAddOf(segment(area, 3072, 8), counter, 5n, { qpType }));
    postSend(qp, compareSwapOf(segment(area, 3080, 8), counter, 5n, 9n, { qpType }));
    postSend(qp, fetchAddOf(segment(area, 3088, 8), counter, 0n, { qpType }));
    postSend(
      qp,
      readOf([segment(area, 3200, 900 - 8)], { ...there, address: there.address + 100 }, { qpType }),
    );
  }
  const statuses = statusesOf(await take(cq, 16));
  const isRead =
    areEqual(side.read(area, 100, 2048), side.read(area, 100)) &&
    areEqual(side.read(area, 892, 3200), side.read(area, 892, 1024));
  const words = new DataView(side.read(area, 24, 3072).slice().buffer);
  const atomics = [0, 8, 16].map((at) => Number(words.getBigUint64(at, true)));
  // Accesses memory of one process through the queue of another, or of none.
  const [first, second] = queues as [Queue, Queue];
  const foreign = { address: first.address, rkey: first.rkey };
  const qpType = { xrc: { remoteSrqn: program.args === 'no queue' ? 0xfffffe : second.srqn } };
  postSend(qp, readOf([segment(area, 0, 8)], foreign, { qpType }));
  const wrong = statusesOf(await take(cq, 1));
  for (let process = 0; process < 2; process++) await program.exchange.put('over', true);
  await program.exchange.put('owner is gone', await program.exchange.take('gone'));
  await destroyQp(qp);
  await destroyCq(cq);
  await deregMr(area.mr);
  await deallocPd(pd);
  await closeDevice(context);
  return { refused, errors, statuses, isRead, atomics, wrong };
}
