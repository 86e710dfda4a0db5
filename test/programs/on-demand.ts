/** Programs over on-demand regions: nothing is pinned, pages arrive when the device requests them, and leave when they must. */
import { pageBytes } from '../../base/index.ts';
import { allAccess } from '../../experiments/workloads/rc-states.ts';
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import { IBV_ACCESS_ON_DEMAND, postRecv, postSend, regMr } from '../../userlib/index.ts';
import { statusesOf, take, takeAll } from './outcomes.ts';
import {
  areEqual,
  fetchAddOf,
  patternOf,
  readOf,
  receiveOf,
  remoteAt,
  segment,
  sendOf,
  writeOf,
} from './requests.ts';
import { type Area, type Pair, Side } from './side.ts';

const kib = 1024;
const mib = 1024 * kib;
const onDemandAccess = allAccess | IBV_ACCESS_ON_DEMAND;

const pageOf = (area: Area, page: number, length: number) => segment(area, page * pageBytes, length);

/** Posts one request and waits for its status. @returns its duration */
async function timed(
  { program }: Side,
  pair: Pair,
  wr: Parameters<typeof postSend>[1],
): Promise<[string, number]> {
  const startPs = program.cpu.localPs;
  postSend(pair.qp, wr);
  const [status] = statusesOf(await take(pair.sendCq, 1));
  return [status!, program.cpu.localPs - startPs];
}

/**
 * Node 0 does every operation twice over untouched pages of both sides, first touch and steady; each has its own pages. The
 * second argument selects the on-demand side: the opposite side is pinned.
 */
export async function everyOperation(program: ProgramContext): Promise<JsonValue> {
  const { sender, receiver } = program.args as { sender: boolean; receiver: boolean };
  const isOnDemand = program.node === 0 ? sender : receiver;
  const bufferAccess = isOnDemand ? onDemandAccess : allAccess;
  const side = await Side.open(program);
  const length = 9 * kib;
  const pair = await side.pair('all', {
    bufferBytes: 64 * pageBytes,
    bufferAccess,
    beforeReady: (made) => {
      for (const wrId of [1, 2]) postRecv(made.qp, receiveOf([pageOf(made.buffer, 20, length)], wrId));
    },
  });
  const pinned = program.memory.process.space.pinnedBytes;
  const results = program.node === 0 ? await operate(side, pair, length) : {};
  await side.barrier('operated');
  if (program.node === 1) {
    const received = await take(pair.recvCq, 2);
    const wrote = areEqual(side.read(pair.buffer, length), patternOf(1, length));
    const sent = areEqual(side.read(pair.buffer, length, 20 * pageBytes), patternOf(2, length));
    const counted = side.read(pair.buffer, 8, 40 * pageBytes)[0];
    Object.assign(results, { statuses: statusesOf(received), wrote, sent, counted });
  }
  await side.closePair(pair);
  await side.barrier('closed');
  const left = program.memory.process.space.mm.counts;
  return {
    ...results,
    isPinned: pinned > 64 * pageBytes,
    isGivenBack: left.devicePagesHeld === left.devicePagesReleased,
  };
}

async function operate(side: Side, pair: Pair, length: number): Promise<Record<string, JsonValue>> {
  const times: Record<string, JsonValue> = {};
  const wrong: string[] = [];
  const run = async (name: string, wr: Parameters<typeof postSend>[1]): Promise<void> => {
    const [first, firstPs] = await timed(side, pair, wr);
    const [second, secondPs] = await timed(side, pair, wr);
    if (first !== 'SUCCESS' || second !== 'SUCCESS') wrong.push(`${name}: ${first}, ${second}`);
    times[name] = [firstPs, secondPs];
  };
  // Writing touches the sender's pages of WRITE and SEND, but not the device's view of them.
  side.write(pair.buffer, patternOf(1, length));
  await run('WRITE', writeOf([pageOf(pair.buffer, 0, length)], remoteAt(pair, 0)));
  side.write(pair.buffer, patternOf(2, length), 20 * pageBytes);
  await run('SEND', sendOf([pageOf(pair.buffer, 20, length)]));
  await run('READ', readOf([pageOf(pair.buffer, 30, length)], remoteAt(pair, 30 * pageBytes)));
  await run('READ back', readOf([pageOf(pair.buffer, 50, length)], remoteAt(pair, 0)));
  if (!areEqual(side.read(pair.buffer, length, 50 * pageBytes), patternOf(1, length)))
    wrong.push('READ back');
  await run('FETCH_ADD', fetchAddOf(pageOf(pair.buffer, 40, 8), remoteAt(pair, 40 * pageBytes), 5n));
  if (side.read(pair.buffer, 8, 40 * pageBytes)[0] !== 5) wrong.push('old value');
  return { wrong, times };
}

/** Content of a chunk: each of its pages names chunk and page. */
function stamp(bytes: Uint8Array<ArrayBuffer>, chunk: number): Uint8Array<ArrayBuffer> {
  const view = new DataView(bytes.buffer);
  for (let at = 0; at < bytes.length; at += pageBytes) {
    view.setUint32(at, chunk);
    view.setUint32(at + pageBytes - 4, ~(chunk * 64 + at / pageBytes));
  }
  return bytes;
}

/** A region of several times the host's memory: every page written and read back by RDMA, through swap. */
export async function largerThanMemory(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const totalBytes = (program.args as number) * program.host.memory.sizeBytes;
  const chunk = 64 * kib;
  const pair = await side.pair('pressed', {
    bufferBytes: program.node === 1 ? totalBytes : pageBytes,
    bufferAccess: program.node === 1 ? onDemandAccess : allAccess,
    timeoutCode: 18,
  });
  const local = await side.area(2 * chunk);
  const bytes = new Uint8Array(patternOf(1, chunk));
  const wrong: string[] = [];
  for (let at = 0; program.node === 0 && at < totalBytes; at += chunk) {
    side.write(local, stamp(bytes, at / chunk));
    const [status] = await timed(side, pair, writeOf([segment(local, 0, chunk)], remoteAt(pair, at)));
    if (status !== 'SUCCESS') wrong.push(`write ${at}: ${status}`);
    if (status !== 'SUCCESS') break;
  }
  for (let at = 0; program.node === 0 && at < totalBytes && wrong.length === 0; at += chunk) {
    const [status] = await timed(side, pair, readOf([segment(local, chunk, chunk)], remoteAt(pair, at)));
    const isRight = Buffer.compare(side.read(local, chunk, chunk), stamp(bytes, at / chunk)) === 0;
    if (status !== 'SUCCESS' || !isRight) wrong.push(`read ${at}: ${status}`);
  }
  await side.barrier('over');
  await side.closePair(pair);
  return { wrong };
}

/** The parent forks between two writes of the peer: the child keeps the old data, the parent gets the new ones. */
export async function forked(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const length = 3 * pageBytes;
  const pair = await side.pair('forked', { bufferBytes: 16 * pageBytes, bufferAccess: onDemandAccess });
  const seen: boolean[] = [];
  if (program.node === 0) {
    side.write(pair.buffer, patternOf(1, length));
    const [first] = await timed(side, pair, writeOf([segment(pair.buffer, 0, length)], remoteAt(pair, 0)));
    await side.barrier('written');
    await side.barrier('forked');
    side.write(pair.buffer, patternOf(2, 2 * length));
    const [second] = await timed(
      side,
      pair,
      writeOf([segment(pair.buffer, 0, 2 * length)], remoteAt(pair, 0)),
    );
    await side.barrier('again');
    return { statuses: [first, second] };
  }
  side.write(pair.buffer, patternOf(3, length), length);
  await side.barrier('written');
  const child = program.fork('child', async (context) => {
    await context.cpu.sleep(5e9);
    seen.push(areEqual(context.memory.read(pair.buffer.address, length), patternOf(1, length)));
    seen.push(areEqual(context.memory.read(pair.buffer.address + length, length), patternOf(3, length)));
    return null;
  });
  if (child === 'ENOMEM') return 'ENOMEM';
  await program.cpu.settle();
  await side.barrier('forked');
  await side.barrier('again');
  const isRight = areEqual(side.read(pair.buffer, 2 * length), patternOf(2, 2 * length));
  while (!child.isEnded) await program.cpu.sleep(1e8);
  return { isRight, seen };
}

/** Node 1 unmaps under a stream of writes; another pair of the same processes continues. */
export async function unmapped(program: ProgramContext): Promise<JsonValue> {
  const what = program.args as 'target' | 'source' | 'receive' | 'dontNeed';
  const side = await Side.open(program);
  const length = mib;
  const onDemand = { bufferBytes: length, bufferAccess: onDemandAccess, timeoutCode: 14 };
  const pair = await side.pair('torn', {
    ...onDemand,
    beforeReady: (made) => postRecv(made.qp, receiveOf([segment(made.buffer, 0, length)])),
  });
  const other = await side.pair('other', { bufferBytes: 16 * kib, bufferAccess: onDemandAccess });
  const isCause = (what === 'source') === (program.node === 0);
  const whole = [segment(pair.buffer, 0, length)];
  if (program.node === 0) {
    await program.memory.touch(pair.buffer.address, length, 'write');
    const wr = what === 'receive' ? sendOf(whole) : writeOf(whole, remoteAt(pair, 0));
    postSend(pair.qp, wr);
    if (what !== 'receive') postSend(pair.qp, { ...wr, wrId: 2 });
  }
  if (isCause) {
    await program.cpu.sleep(250e6);
    if (what === 'dontNeed') program.memory.advise(pair.buffer.address, length, 'dontNeed');
    else program.memory.unmap(pair.buffer.address, length);
    await program.cpu.settle();
  }
  const statuses: string[] = [];
  if (program.node === 0) statuses.push(...statusesOf(await take(pair.sendCq, what === 'receive' ? 1 : 2)));
  await side.barrier('torn');
  const received = statusesOf(await takeAll(pair.recvCq));
  const again: string[] = [];
  if (program.node === 0) {
    side.write(other.buffer, patternOf(9, 8 * kib));
    const [status] = await timed(
      side,
      other,
      writeOf([segment(other.buffer, 0, 8 * kib)], remoteAt(other, 0)),
    );
    again.push(status);
  }
  await side.barrier('other');
  const isRight = program.node === 0 || areEqual(side.read(other.buffer, 8 * kib), patternOf(9, 8 * kib));
  const events = await side.events();
  return { statuses, received, again, isRight, events, state: await side.stateOf(pair) };
}

/** The device works on the memory as the program changed it before posting, even with cached translations. */
export async function replaced(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const pair = await side.pair('replaced', { bufferBytes: 4 * pageBytes, bufferAccess: onDemandAccess });
  const wrong: number[] = [];
  if (program.node === 0) {
    for (let round = 0; round < 40; round++) {
      if (round % 2 === 0) program.memory.advise(pair.buffer.address, 2 * pageBytes, 'dontNeed');
      else program.memory.mapFixed(pair.buffer.address, 2 * pageBytes);
      side.write(pair.buffer, patternOf(round + 1, 100));
      const [status] = await timed(side, pair, writeOf([segment(pair.buffer, 0, 100)], remoteAt(pair, 0)));
      const target = segment(pair.buffer, pageBytes, 100);
      const [back] = await timed(side, pair, readOf([target], remoteAt(pair, 0)));
      const isRight = areEqual(side.read(pair.buffer, 100, pageBytes), patternOf(round + 1, 100));
      if (status !== 'SUCCESS' || back !== 'SUCCESS' || !isRight) wrong.push(round);
    }
  }
  await side.barrier('over');
  return { wrong };
}

/** Pages that cannot be paged in: an unmapped range, and read-only memory. */
export async function refused(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const statuses: string[] = [];
  const events: string[] = [];
  for (const what of ['remote', 'local', 'readOnly', 'receive']) {
    const isBad = program.node === (what === 'local' ? 0 : 1);
    const pair = await side.pair(what, { bufferBytes: pageBytes, timeoutCode: 14 });
    const options = what === 'readOnly' ? ({ access: 'read' } as const) : {};
    const address = program.memory.map(2 * pageBytes, isBad ? options : {});
    const mr = await regMr(side.pd, address, 2 * pageBytes, onDemandAccess);
    const area = { address, lengthBytes: 2 * pageBytes, mr };
    if (isBad && what !== 'readOnly') program.memory.unmap(address, 2 * pageBytes);
    if (program.node === 1) postRecv(pair.qp, receiveOf([segment(area, 0, 64)]));
    await side.tell('area', { address, rkey: mr.rkey });
    const remote = await side.hear<{ address: number; rkey: number }>('area');
    const from = [segment(area, 0, 64)];
    if (program.node === 0) {
      const [status] = await timed(side, pair, what === 'receive' ? sendOf(from) : writeOf(from, remote));
      statuses.push(status);
    }
    await side.barrier(`${what} over`);
    if (what === 'receive') statuses.push(...statusesOf(await takeAll(pair.recvCq)));
    events.push(...(await side.events()));
  }
  return { statuses, events };
}
