/**
 * Memory windows as programs use them: host 1 gives host 0 access to parts of a region by windows of either type, and revokes
 * it by unbinding, by a local invalidate, and by a SEND with Invalidate of host 0. Host 0 tries each key while it is valid and
 * afterwards.
 */
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import {
  allocMw,
  bindMw,
  deallocMw,
  deregMr,
  IBV_ACCESS_LOCAL_WRITE,
  IBV_ACCESS_MW_BIND,
  IBV_ACCESS_REMOTE_READ,
  IBV_ACCESS_REMOTE_WRITE,
  IBV_ACCESS_ZERO_BASED,
  IBV_MW_TYPE_1,
  IBV_MW_TYPE_2,
  IBV_SEND_SIGNALED,
  IBV_WR_BIND_MW,
  IBV_WR_LOCAL_INV,
  IBV_WR_SEND_WITH_INV,
  type IbvMw,
  incRkey,
  postRecv,
  postSend,
  regMr,
  VerbsError,
} from '../../userlib/index.ts';
import { take } from './outcomes.ts';
import { patternOf, receiveOf, segment, sendOf, writeOf } from './requests.ts';
import { type Area, type Pair, Side } from './side.ts';

const access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
const given = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
const regionBytes = 16_384;
const [first, length] = [5000, 1000];

/** Host 0: writes through the keys that it receives. @returns the status of each attempt */
export async function user(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const statuses: string[] = [];
  for (let attempt = 0; ; attempt++) {
    const pair = await side.pair(`attempt ${attempt}`, { timeoutCode: 8 });
    side.write(pair.buffer, patternOf(attempt, 100));
    for (;;) {
      const order = await side.hear<{ do: string; address: number; rkey: number }>(`order ${attempt}`);
      if (order.do === 'end') return statuses;
      if (order.do === 'close') break;
      const to = { address: order.address, rkey: order.rkey };
      const data = [segment(pair.buffer, 0, 100)];
      const invalidate = { opcode: IBV_WR_SEND_WITH_INV, invalidateRkey: order.rkey };
      postSend(pair.qp, order.do === 'write' ? writeOf(data, to) : sendOf(data, invalidate));
      const [outcome] = await take(pair.sendCq, 1);
      statuses.push(`${order.do}: ${outcome!.status}`);
      await side.tell(`done ${attempt}`, outcome!.status);
    }
    await side.closePair(pair);
  }
}

/** Host 1: owns the memory. @returns its observations, one line each */
export async function owner(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const seen: string[] = [];
  const address = program.memory.map(regionBytes);
  const mr = await regMr(side.pd, address, regionBytes, access);
  const region: Area = { address, lengthBytes: regionBytes, mr };
  let attempt = 0;
  let pair = await side.pair('attempt 0', { timeoutCode: 8 });
  const order = async (what: string, at: number, rkey: number): Promise<void> => {
    await side.tell(`order ${attempt}`, { do: what, address: at, rkey });
    await side.hear(`done ${attempt}`);
  };
  const next = async (): Promise<void> => {
    await side.tell(`order ${attempt}`, { do: 'close', address: 0, rkey: 0 });
    await side.closePair(pair);
    pair = await side.pair(`attempt ${++attempt}`, { timeoutCode: 8 });
  };
  const note = async (name: string, error: number): Promise<void> => {
    seen.push(`${name}: ${error === 0 ? (await take(pair.sendCq, 1))[0]!.status : `error ${error}`}`);
  };

  const one = await allocMw(side.pd, IBV_MW_TYPE_1);
  const info = { mr, addr: address + first, length, mwAccessFlags: given };
  await note('bind', bindMw(pair.qp, one, { wrId: 1, sendFlags: IBV_SEND_SIGNALED, bindInfo: info }));
  await order('write', address + first, one.rkey);
  seen.push(`there: ${holds(side, region, first, 0)}`);
  seen.push(await deregistration(mr));
  const nothing = { ...info, length: 0 };
  await note('unbind', bindMw(pair.qp, one, { wrId: 1, sendFlags: IBV_SEND_SIGNALED, bindInfo: nothing }));
  await order('write', address + first, one.rkey);
  await next();

  const two = await allocMw(side.pd, IBV_MW_TYPE_2);
  await note('bind 2', bindTwo(pair, two, { ...info, mwAccessFlags: given | IBV_ACCESS_ZERO_BASED }));
  await order('write', 200, two.rkey);
  seen.push(`there: ${holds(side, region, first + 200, 1)}`);
  const invalidation = { wrId: 1, sgList: [], numSge: 0, sendFlags: IBV_SEND_SIGNALED };
  await note(
    'invalidate',
    postSend(pair.qp, { ...invalidation, opcode: IBV_WR_LOCAL_INV, invalidateRkey: two.rkey }),
  );
  await note('bind 2 again', bindTwo(pair, two, info));
  await order('write', address + first, two.rkey);
  postRecv(pair.qp, receiveOf([segment(pair.buffer, 0, 100)]));
  await order('invalidate', 0, two.rkey);
  const [received] = await take(pair.recvCq, 1);
  seen.push(
    `received: ${received!.status}, key ${received!.immData === two.rkey}, flags ${received!.wcFlags}`,
  );
  await order('write', address + first, two.rkey);
  await side.tell(`order ${attempt}`, { do: 'end', address: 0, rkey: 0 });
  await deallocMw(one);
  await deallocMw(two);
  seen.push(await deregistration(mr));
  return seen;
}

/** Binds a window of type 2 under its next key. */
function bindTwo(pair: Pair, mw: IbvMw, bindInfo: Parameters<typeof bindMw>[2]['bindInfo']): number {
  mw.rkey = incRkey(mw.rkey);
  const request = { wrId: 1, sgList: [], numSge: 0, sendFlags: IBV_SEND_SIGNALED, opcode: IBV_WR_BIND_MW };
  return postSend(pair.qp, { ...request, bindMw: { mw, rkey: mw.rkey, bindInfo } });
}

const holds = (side: Side, region: Area, offset: number, seed: number): boolean =>
  side.read(region, 100, offset).every((byte, index) => byte === patternOf(seed, 100)[index]);

async function deregistration(mr: Area['mr']): Promise<string> {
  try {
    await deregMr(mr);
    return 'deregistered';
  } catch (error) {
    return `not deregistered: ${error instanceof VerbsError ? error.code : String(error)}`;
  }
}
