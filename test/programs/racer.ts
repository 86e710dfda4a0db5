/** Programs that break the contract of use in each way, and one that keeps it. */
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import { IBV_SEND_INLINE, IBV_SEND_SIGNALED, postRecv, postSend } from '../../userlib/index.ts';
import { take } from './outcomes.ts';
import { fetchAddOf, readOf, receiveOf, remoteAt, segment, sendOf, writeOf } from './requests.ts';
import { type Pair, Side } from './side.ts';

const bufferBytes = 65_536;

type Breach = (side: Side, pair: Pair) => Promise<void>;

const breaches: Readonly<Record<string, Breach>> = {
  'writes what the device reads': async (side, pair) => {
    postSend(pair.qp, writeOf([segment(pair.buffer, 0, 32_768)], remoteAt(pair, 0), { wrId: 11 }));
    side.write(pair.buffer, Uint8Array.of(1, 2, 3), 1000);
    await take(pair.sendCq, 1);
  },
  'reads before the completion': async (side, pair) => {
    postSend(pair.qp, readOf([segment(pair.buffer, 4096, 4096)], remoteAt(pair, 0), { wrId: 12 }));
    side.read(pair.buffer, 8, 8184);
    await take(pair.sendCq, 1);
  },
  'reads more often than is listed': async (side, pair) => {
    postSend(pair.qp, readOf([segment(pair.buffer, 4096, 4096)], remoteAt(pair, 0), { wrId: 12 }));
    for (let count = 0; count < 1007; count++) side.read(pair.buffer, 1, 4096);
    await take(pair.sendCq, 1);
  },
  'frees in flight': async ({ program }, pair) => {
    postSend(pair.qp, writeOf([segment(pair.buffer, 8192, 4096)], remoteAt(pair, 0), { wrId: 13 }));
    program.memory.unmap(pair.buffer.address + 8192, 4096);
    await take(pair.sendCq, 1);
  },
  'remaps in flight': async ({ program }, pair) => {
    postSend(pair.qp, writeOf([segment(pair.buffer, 16_384, 4096)], remoteAt(pair, 0), { wrId: 14 }));
    program.memory.remap(pair.buffer.address + 16_384, 4096, 8192, true);
    await take(pair.sendCq, 1);
  },
  'reads a posted receive': async (side, pair) => {
    postRecv(pair.qp, receiveOf([segment(pair.buffer, 0, 64)], 15));
    side.read(pair.buffer, 1, 63);
    await side.barrier('posted');
    await take(pair.recvCq, 1);
    side.read(pair.buffer, 64);
  },
};

/** Permitted actions of a program: reading memory that the device reads, writing buffers of completed requests, reusing inline data at once. */
async function keeps(side: Side, pair: Pair): Promise<void> {
  side.write(pair.buffer, Uint8Array.of(1, 2, 3));
  postSend(pair.qp, writeOf([segment(pair.buffer, 0, 4096)], remoteAt(pair, 0)));
  side.read(pair.buffer, 4096);
  side.write(pair.buffer, Uint8Array.of(9), 4096);
  await take(pair.sendCq, 1);
  side.write(pair.buffer, Uint8Array.of(4));
  // The first has no completion of its own; the second's completion ends both.
  postSend(pair.qp, writeOf([segment(pair.buffer, 0, 64)], remoteAt(pair, 0), { sendFlags: 0 }));
  postSend(pair.qp, fetchAddOf(segment(pair.buffer, 64, 8), remoteAt(pair, 0), 1n));
  await take(pair.sendCq, 1);
  side.write(pair.buffer, new Uint8Array(72));
  const sendFlags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
  postSend(pair.qp, writeOf([segment(pair.buffer, 0, 32)], remoteAt(pair, 0), { sendFlags }));
  side.write(pair.buffer, Uint8Array.of(5));
  await take(pair.sendCq, 1);
  postRecv(pair.qp, receiveOf([segment(pair.buffer, 0, 64)]));
  await side.barrier('posted');
  await take(pair.recvCq, 1);
  side.read(pair.buffer, 64);
}

export async function race(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const pair = await side.pair('race', { bufferBytes });
  const breach = breaches[String(program.args)] ?? keeps;
  const hasReceive = breach === keeps || breach === breaches['reads a posted receive'];
  if (program.node === 0) await breach(side, pair);
  else if (hasReceive) {
    await side.barrier('posted');
    postSend(pair.qp, sendOf([segment(pair.buffer, 0, 64)]));
    await take(pair.sendCq, 1);
  }
  await side.barrier('over');
  return pair.buffer.address;
}
