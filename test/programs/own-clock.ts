/** Programs that keep their own record of reported values: latencies by their own clock, and counts. */
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import {
  createQp,
  createSrq,
  destroyQp,
  IBV_QPT_RC,
  IBV_SEND_SIGNALED,
  IbvWc,
  postSend,
  postSrqRecv,
  spinCq,
} from '../../userlib/index.ts';
import { take } from './outcomes.ts';
import { receiveOf, remoteAt, segment, sendOf, writeOf } from './requests.ts';
import { type Pair, Side } from './side.ts';

const lengths = { large: 1 << 20, small: 64 };

/**
 * Two QPs whose numbers differ by `apart`: in each round the first writes 1 MiB, and meanwhile the second writes 64 bytes with
 * the same WQE counter. Returns the difference of the numbers, and the sum of all latencies.
 */
export async function farApart(program: ProgramContext): Promise<JsonValue> {
  const { apart, rounds } = program.args as { apart: number; rounds: number };
  const side = await Side.open(program);
  const first = await side.pair('first', { bufferBytes: lengths.large });
  if (program.node === 0) await skipNumbers(side, first, apart - 1);
  const second = await side.pair('second');
  let latencyPs = 0;
  for (let round = 0; round < rounds && program.node === 0; round++) {
    const firstPs = post(first, lengths.large);
    await program.cpu.sleep(20_000_000);
    const secondPs = post(second, lengths.small);
    latencyPs += (await takenPs(second)) - secondPs;
    latencyPs += (await takenPs(first)) - firstPs;
  }
  await side.barrier('done');
  if (program.node === 1) return null;
  return { apart: second.qp.qpNum - first.qp.qpNum, latencyPs };
}

const slow = { messages: 40, lengthBytes: 10_000 };

/**
 * Host 0 sends 40 messages of 10,000 bytes to a shared queue, which grants no credits; host 1 posts a receive for each every 30
 * µs. Returns the number of completions, and their statuses.
 */
export async function slowReceiver(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const srq = await createSrq(side.pd, { attr: { maxWr: 64, maxSge: 1 } });
  const pair = await side.pair('slow', {
    srq,
    bufferBytes: slow.lengthBytes,
    cap: { maxSendWr: 64 },
    timeoutCode: 14,
  });
  const whole = segment(pair.buffer, 0, slow.lengthBytes);
  if (program.node === 0)
    for (let count = 0; count < slow.messages; count++) postSend(pair.qp, sendOf([whole]));
  for (let count = 0; count < slow.messages && program.node === 1; count++) {
    await program.cpu.sleep(30_000_000);
    postSrqRecv(srq, receiveOf([whole]));
  }
  const taken = await take(program.node === 0 ? pair.sendCq : pair.recvCq, slow.messages);
  await side.barrier('done');
  return { statuses: [...new Set(taken.map(({ status }) => status))], count: taken.length };
}

/** Creates and destroys QPs, so that the next one gets a number that many further on. */
async function skipNumbers(side: Side, { sendCq, recvCq }: Pair, count: number): Promise<void> {
  const cap = { maxSendWr: 1, maxRecvWr: 1, maxSendSge: 1, maxRecvSge: 1, maxInlineData: 0 };
  for (let made = 0; made < count; made++)
    await destroyQp(await createQp(side.pd, { sendCq, recvCq, cap, qpType: IBV_QPT_RC }));
}

/** @returns the program's time when the WRITE was posted */
function post(pair: Pair, lengthBytes: number): number {
  const request = writeOf([segment(pair.buffer, 0, lengthBytes)], remoteAt(pair, 0), {
    sendFlags: IBV_SEND_SIGNALED,
  });
  postSend(pair.qp, request);
  return pair.qp.cpu.localPs;
}

/** @returns the program's time of the pair's next completion */
async function takenPs({ sendCq, qp }: Pair): Promise<number> {
  await spinCq(sendCq, 1, [new IbvWc()]);
  return qp.cpu.localPs;
}
