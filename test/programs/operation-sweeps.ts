/** Acts: WRITE, READ and SEND of every relevant size, at every relevant offset; payload is checked byte by byte at both ends. */

import { allAccess } from '../../experiments/workloads/rc-states.ts';
import type { JsonValue } from '../../machine/program.ts';
import {
  IBV_MTU_256,
  IBV_SEND_FENCE,
  IBV_SEND_SIGNALED,
  postRecv,
  postSend,
  regMr,
} from '../../userlib/index.ts';
import { statusesOf, take } from './outcomes.ts';
import { areEqual, patternOf, readOf, receiveOf, remoteAt, segment, sendOf, writeOf } from './requests.ts';
import type { Area, Pair, Side } from './side.ts';

/** MTU of the sweeps: small, so that a few hundred bytes need many packets. */
const mtuBytes = 256;
const sizes = [0, 1, mtuBytes - 1, mtuBytes, mtuBytes + 1, 3 * mtuBytes, 5000];
/** Offsets that begin or end at a 4 KiB page boundary, or cross one. */
const offsets = [0, 1, 4095, 4096 - mtuBytes, 8191];
const sweepBytes = 16_384;
const receiveAt = 0;

/** WRITE, READ and SEND of every size at every offset; the peer's memory is read back to be compared. */
export async function sweep(side: Side, name: string): Promise<JsonValue> {
  const pair = await side.pair(name, { mtu: IBV_MTU_256, bufferBytes: 3 * sweepBytes });
  return sweepPair(side, pair);
}

async function sweepPair(side: Side, pair: Pair): Promise<JsonValue> {
  const mistakes: string[] = [];
  let seed = 1;
  for (const size of sizes) {
    for (const offset of offsets) {
      const pattern = patternOf(++seed, size);
      side.write(pair.buffer, pattern, offset);
      const source = segment(pair.buffer, offset, size);
      const back = segment(pair.buffer, sweepBytes + offset + 3, size);
      postSend(pair.qp, writeOf([source], remoteAt(pair, sweepBytes + offset)));
      postSend(
        pair.qp,
        readOf([back], remoteAt(pair, sweepBytes + offset), {
          sendFlags: IBV_SEND_SIGNALED | IBV_SEND_FENCE,
        }),
      );
      const taken = await take(pair.sendCq, 2);
      const isRight = areEqual(side.read(pair.buffer, size, sweepBytes + offset + 3), pattern);
      if (!isRight || statusesOf(taken).join() !== 'SUCCESS,SUCCESS' || taken[1]!.byteLen !== size)
        mistakes.push(`WRITE and READ of ${size} at ${offset}: ${JSON.stringify(taken)}`);
      postSend(pair.qp, sendOf([source]));
      mistakes.push(...statusesOf(await take(pair.sendCq, 1)).filter((status) => status !== 'SUCCESS'));
    }
  }
  return mistakes;
}

/** Receives each SEND of a sweep into a buffer longer than the message, and checks the bytes around it. */
export async function sweepPartner(side: Side, name: string): Promise<JsonValue> {
  const pair = await side.pair(name, {
    mtu: IBV_MTU_256,
    bufferBytes: 3 * sweepBytes,
    beforeReady: ({ qp, buffer }) => {
      for (let index = 0; index < 8; index++)
        postRecv(qp, receiveOf([segment(buffer, receiveAt, sweepBytes)], index));
    },
  });
  return takeSweep(side, pair);
}

async function takeSweep(side: Side, pair: Pair): Promise<JsonValue> {
  const mistakes: string[] = [];
  let seed = 1;
  for (const size of sizes) {
    for (const offset of offsets) {
      const [taken] = await take(pair.recvCq, 1);
      const pattern = patternOf(++seed, size);
      const isRight = areEqual(side.read(pair.buffer, size, receiveAt), pattern);
      if (taken!.status !== 'SUCCESS' || taken!.byteLen !== size || !isRight)
        mistakes.push(`SEND of ${size} from ${offset}: ${JSON.stringify(taken)}`);
      postRecv(pair.qp, receiveOf([segment(pair.buffer, receiveAt, sweepBytes)]));
    }
  }
  return mistakes;
}

/** Messages over the boundary of two 2 MiB pages, and over 4 KiB pages of the peer, in both directions. */
export async function hugePages(side: Side, name: string): Promise<JsonValue> {
  const { process } = side.program.memory;
  const hugeBytes = 2 ** 21;
  const address = process.space.map(2 * hugeBytes, hugeBytes);
  const huge: Area = {
    address,
    lengthBytes: 2 * hugeBytes,
    mr: await regMr(side.pd, address, 2 * hugeBytes, allAccess),
  };
  const pair = await side.pair(name, { bufferBytes: 20_000, note: { address, rkey: huge.mr.rkey } });
  if (side.program.node === 1) {
    await side.barrier(`${name} done`);
    const bytes = side.read(huge, 10_000, hugeBytes - 5000);
    return areEqual(bytes, patternOf(77, 10_000)) ? [] : ['other bytes written over the boundary'];
  }
  const remote = pair.remote.note as { address: number; rkey: number };
  const target = { address: remote.address + hugeBytes - 5000, rkey: remote.rkey };
  const mistakes: string[] = [];
  side.write(pair.buffer, patternOf(77, 10_000), 123);
  postSend(pair.qp, writeOf([segment(pair.buffer, 123, 10_000)], target));
  const sendFlags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
  postSend(pair.qp, readOf([segment(huge, hugeBytes - 1, 10_000)], target, { sendFlags }));
  mistakes.push(...statusesOf(await take(pair.sendCq, 2)).filter((status) => status !== 'SUCCESS'));
  if (!areEqual(side.read(huge, 10_000, hugeBytes - 1), patternOf(77, 10_000)))
    mistakes.push('other bytes read');
  await side.barrier(`${name} done`);
  return mistakes;
}
