/** Two hosts in partitions: traffic between full and limited members, for test/pkeys.spec.ts. */

import { announcedOf, peerFrom } from '../../experiments/workloads/port-address.ts';
import { allAccess, toInit, toRtr, toRts } from '../../experiments/workloads/rc-states.ts';
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import * as ibv from '../../userlib/index.ts';
import { codeOf, statusesOf, take } from './outcomes.ts';
import { segment, writeOf } from './requests.ts';
import { attributesOf, type Remote, Side } from './side.ts';

/** P_Key of each host, at index 1 of its table, one pair after another. */
export type PkeyPairs = readonly (readonly [number, number])[];

/** Host 0 writes to host 1 over a new connection for each pair of P_Keys. @returns statuses, and host 1's P_Key violations after each */
export async function members(program: ProgramContext<PkeyPairs>): Promise<JsonValue> {
  const side = await Side.open(program);
  const { context } = side;
  const told: JsonValue[] = [];
  const options = attributesOf({ timeoutCode: 4, retryCount: 1 });
  for (const [at, pair] of program.args.entries()) {
    await ibv.smSetPkeys(context, 1, 1, [pair[program.node]!]);
    const events = await side.events();
    const end = await side.unconnected(`pair ${at}`);
    await toInit(end.qp, allAccess, 1);
    const { address, mr } = end.buffer;
    const own = { ...announcedOf(side.own), qpNum: end.qp.qpNum, psn: 1, address, rkey: mr.rkey, note: null };
    await side.tell(`pair ${at}`, own);
    const remote = await side.hear<Remote>(`pair ${at}`);
    await toRtr(end.qp, { ...remote, ...peerFrom(side.own, remote) }, options);
    await toRts(end.qp, 1, options);
    await side.barrier(`ready ${at}`);
    let status = 'none';
    if (program.node === 0) {
      ibv.postSend(end.qp, writeOf([segment(end.buffer, 0, 64)], remote));
      [status] = statusesOf(await take(end.sendCq, 1)) as [string];
    }
    await side.barrier(`over ${at}`);
    const { badPkeyCntr } = await ibv.queryPort(context, 1);
    told.push([status, badPkeyCntr, await ibv.queryPkey(context, 1, 1), events]);
  }
  return told;
}

/** Result of setting an entry. */
export async function setting(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  return codeOf(ibv.smSetPkeys(side.context, 1, 0, [0x8001]));
}

/** Refusals of the table and of a QP. */
export async function refusals(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const { context } = side;
  const { pkeyTblLen } = side.port;
  const set = (index: number, pkeys: readonly number[]) => codeOf(ibv.smSetPkeys(context, 1, index, pkeys));
  const { qp } = await side.unconnected('qp');
  return {
    length: pkeyTblLen,
    overTheEnd: await set(pkeyTblLen - 1, [1, 2]),
    tooLarge: await set(1, [0x1_0000]),
    none: await set(1, []),
    acrossBlocks: await set(30, [0x8011, 0x8012, 0x8013, 0x8014]),
    read: [
      await ibv.queryPkey(context, 1, 31),
      await ibv.queryPkey(context, 1, 32),
      await ibv.queryPkey(context, 1, 34),
    ],
    places: [await ibv.getPkeyIndex(context, 1, 0x8012), await ibv.getPkeyIndex(context, 1, 0x8099)],
    beyond: await codeOf(toInit(qp, allAccess, pkeyTblLen)),
  };
}

/** Attributes by ibv_query_device_ex compared with those by ibv_query_device. */
export async function attributes(program: ProgramContext): Promise<JsonValue> {
  const { context } = await Side.open(program);
  const { origAttr, completionTimestampMask, ...rest } = await ibv.queryDeviceEx(context);
  const plain = await ibv.queryDevice(context);
  const isSame = Object.entries(plain).every(
    ([name, value]) => origAttr[name as keyof typeof plain] === value,
  );
  return { ...rest, isSame, timestampBits: completionTimestampMask.toString(2).length };
}
