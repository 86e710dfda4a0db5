/** Programs of two hosts whose ports are Ethernet: a single WRITE, a datagram, and the refusals of the verbs there. */

import { pathTo, peerFrom } from '../../experiments/workloads/port-address.ts';
import { allAccess, toInit, toRtr } from '../../experiments/workloads/rc-states.ts';
import { connectUd, initUd, qkey } from '../../experiments/workloads/unreliable-states.ts';
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import {
  type AhAttr,
  createAh,
  createCq,
  createQp,
  IBV_QPT_UD,
  IBV_SEND_SIGNALED,
  IBV_WR_SEND_WITH_IMM,
  type IbvQp,
  IbvWc,
  postRecv,
  postSend,
  queryGid,
  queryGidTable,
  queryPkey,
  queryQp,
  spinCq,
} from '../../userlib/index.ts';
import { codeOf, take } from './outcomes.ts';
import { areEqual, patternOf, receiveOf, remoteAt, segment, writeOf } from './requests.ts';
import { attributesOf, Side } from './side.ts';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** The verbs' attributes of the port; host 0 then writes this many bytes three times, one after another, and host 1 reports its data. */
export async function oneByOne(program: ProgramContext<number>): Promise<object | string | null> {
  const side = await Side.open(program);
  const { context, port } = side;
  const gids = (await queryGidTable(context, 1)).map(({ gid, gidIndex, gidType }) => [
    gidIndex,
    gidType,
    hex(gid),
  ]);
  const lengthBytes = program.args;
  const pair = await side.pair('write', { mtu: port.activeMtu, bufferBytes: 3 * lengthBytes });
  const { ahAttr } = await queryQp(pair.qp);
  const bytes = patternOf(5, lengthBytes);
  if (program.node === 0) {
    program.memory.write(pair.buffer.address, bytes);
    for (let count = 0; count < 3; count++) {
      postSend(pair.qp, writeOf([segment(pair.buffer, 0, lengthBytes)], remoteAt(pair, lengthBytes * count)));
      const [outcome] = await take(pair.sendCq, 1);
      if (outcome?.status !== 'SUCCESS') return outcome?.status ?? null;
    }
  }
  await side.barrier('written');
  return {
    port: { ...port },
    gids,
    none: hex(await queryGid(context, 1, gids.length)),
    pkey: await queryPkey(context, 1, 0),
    path: { ...ahAttr, grh: { ...ahAttr?.grh, dgid: hex(ahAttr?.grh?.dgid ?? new Uint8Array()) } },
    isRight: [0, 1, 2].every((at) =>
      areEqual(program.memory.read(pair.buffer.address + lengthBytes * at, lengthBytes), bytes),
    ),
  };
}

const datagramBytes = 500;
const headerBytes = 40;

async function datagramQp(side: Side): Promise<IbvQp> {
  const { context, pd } = side;
  const [sendCq, recvCq] = [await createCq(context, 4), await createCq(context, 4)];
  const cap = { maxSendWr: 4, maxRecvWr: 4, maxSendSge: 1, maxRecvSge: 1 };
  const qp = await createQp(pd, { sendCq, recvCq, qpType: IBV_QPT_UD, cap });
  await initUd(qp);
  await connectUd(qp, 7);
  return qp;
}

/** A datagram with immediate from host 0 to host 1, and one of host 1 to itself. */
export async function datagram(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const qp = await datagramQp(side);
  const area = await side.area(4096);
  const post = (at: number): number =>
    postRecv(qp, receiveOf([segment(area, at, headerBytes + datagramBytes)], at));
  await side.tell('there', { lid: side.own.lid, gid: [...(side.own.gid ?? [])], qpNum: qp.qpNum });
  const there = await side.hear<{ lid: number; gid: number[]; qpNum: number }>('there');
  post(0);
  post(1024);
  await side.barrier('posted');
  const send = async (to: { lid: number; gid: readonly number[] }, remoteQpn: number): Promise<string> => {
    program.memory.write(area.address + 3072, patternOf(9, datagramBytes));
    const ah = await createAh(side.pd, pathTo(peerFrom(side.own, to)));
    const error = postSend(qp, {
      wrId: 1,
      sgList: [segment(area, 3072, datagramBytes)],
      numSge: 1,
      opcode: IBV_WR_SEND_WITH_IMM,
      sendFlags: IBV_SEND_SIGNALED,
      immData: 77,
      wr: { ud: { ah, remoteQpn, remoteQkey: qkey } },
    });
    return error === 0 ? (await take(qp.sendCq, 1))[0]!.status : `errno ${error}`;
  };
  if (program.node === 0) return send(there, there.qpNum);
  const taken = async (at: number): Promise<JsonValue> => {
    const [wc] = [new IbvWc()];
    await spinCq(qp.recvCq, 1, [wc!]);
    const { byteLen, immData, wcFlags, srcQp } = wc!;
    const bytes = program.memory.read(area.address + at, headerBytes + datagramBytes);
    const isRight = areEqual(bytes.subarray(headerBytes), patternOf(9, datagramBytes));
    return { byteLen, immData, wcFlags, srcQp, header: hex(bytes.subarray(0, headerBytes)), isRight };
  };
  const first = await taken(0);
  const status = await send({ lid: 0, gid: side.own.gid ?? [] }, qp.qpNum);
  return [first, status, await taken(1024)];
}

/** Error codes of addresses that do not exist on Ethernet. */
export async function refused(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const { sgidIndex = 0, gid = [] } = side.own;
  const grh = { dgid: Uint8Array.from(gid), flowLabel: 0, sgidIndex, hopLimit: 1, trafficClass: 0 };
  const to = (more: Partial<AhAttr>): AhAttr => ({ dlid: 0, isGlobal: 1, grh, portNum: 1, ...more });
  const stranger = Uint8Array.from([...gid.slice(0, 15), 99]);
  const pair = await side.unconnected('none');
  await toInit(pair.qp, allAccess);
  return {
    withoutGid: await codeOf(createAh(side.pd, to({ isGlobal: 0 }))),
    emptyPlace: await codeOf(createAh(side.pd, to({ grh: { ...grh, sgidIndex: 100 } }))),
    stranger: await codeOf(createAh(side.pd, to({ grh: { ...grh, dgid: stranger } }))),
    connection: await codeOf(toRtr(pair.qp, { lid: 2, qpNum: 5, psn: 0 }, attributesOf({}))),
  };
}
