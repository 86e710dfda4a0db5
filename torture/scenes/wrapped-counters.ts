/**
 * The 16-bit WQE counters of a queue wrap, often with a packet lost at that place: every request is carried out once and completes in order
 * (interface sheet 6.2, 6.6; IBTA 10.8.3).
 */

import * as ibv from '../../userlib/index.ts';
import type { ArgsOf, Draft, Draws, FaultEntry, Side, Stage } from './language/index.ts';
import { connect, SEND, scene, times, WRITE } from './language/index.ts';

const wrap = 65_536;
const slotCount = 512;
const slotBytes = 8;
const areaBytes = slotCount * slotBytes;
/** Receives that are posted ahead. */
const receiveCount = 128;
const attributes = { timeoutCode: 8, rnrTimerCode: 1 };

function draw(random: Draws) {
  const args = {
    opcode: random.chance(0.5) ? SEND : WRITE,
    // Requests posted at once; the last of them is signalled.
    burst: 1 + random.below(100),
    total: wrap + 1 + random.below(300),
  };
  const which = { nth: wrap - 20 + random.below(args.total - wrap + 20), node: 0 };
  const fault: FaultEntry = random.chance(0.5)
    ? { packet: 'lost', ...which }
    : { packet: 'duplicated', delay: '3us', ...which };
  const hasFault = random.chance(0.6);
  const climate = hasFault ? 'lossy' : 'calm';
  return { args, faults: hasFault ? [fault] : [], climate } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;

const offsetOf = (id: number): number => (id % slotCount) * slotBytes;

/** Posts burst after burst, each request with its own number. */
async function asker(stage: Stage<Args>): Promise<void> {
  const { opcode, burst, total } = stage.args;
  const side = await connect(stage, { areaBytes, cap: { maxSendWr: burst }, attributes });
  const number = new DataView(new ArrayBuffer(slotBytes));
  for (let sent = 0; sent < total && stage.wrong.length === 0; ) {
    const end = Math.min(total, sent + burst);
    for (; sent < end; sent++) {
      number.setUint32(0, sent);
      side.fill(new Uint8Array(number.buffer), offsetOf(sent));
      const request = side.request(sent, opcode, { offset: offsetOf(sent), lengthBytes: slotBytes });
      const sendFlags = sent === end - 1 ? ibv.IBV_SEND_SIGNALED : 0;
      const errno = ibv.postSend(side.qp, { ...request, sendFlags });
      if (errno !== 0) stage.accuse(`request ${sent} refused with ${errno}`);
    }
    const ended = await side.next();
    if (ended?.id !== end - 1 || ended.status !== 'SUCCESS')
      stage.accuse(`request ${end - 1} ended as ${JSON.stringify(ended ?? null)}`);
  }
  await stage.meet('sent');
}

/** Has the numbers written into its area, or receives them. */
async function answerer(stage: Stage<Args>): Promise<void> {
  const { opcode, total } = stage.args;
  const receive = (side: Side, id: number): unknown =>
    side.receive(id, { offset: offsetOf(id), lengthBytes: slotBytes });
  const side = await connect(stage, {
    ...{ areaBytes, cap: { maxRecvWr: receiveCount }, attributes },
    beforeReady: (early) => {
      for (let id = 0; opcode === SEND && id < receiveCount; id++) receive(early, id);
    },
  });
  let taken = 0;
  for (let idle = 0; opcode === SEND && taken < total && idle < 100_000 && stage.wrong.length === 0; ) {
    const some = await stage.poll(side.cq, 32);
    for (const { id, status, byteLen } of some) {
      if (id !== taken || status !== 'SUCCESS' || byteLen !== slotBytes)
        stage.accuse(`receive ${taken} ended as ${id}, ${status}, ${byteLen} bytes`);
      taken++;
      receive(side, taken + receiveCount - 1);
    }
    idle = some.length > 0 ? 0 : idle + 1;
    if (some.length === 0) await stage.sleepNs(200);
  }
  if (opcode === SEND && taken < total) stage.accuse(`${taken} of ${total} messages came`);
  await stage.meet('sent');
  // The ACKs do not wait for the last bytes to be in memory.
  await stage.sleepUs(20);
  const bytes = side.bytes(0, areaBytes);
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  for (const [slot, number] of times(slotCount, (at) => view.getUint32(at * slotBytes)).entries()) {
    // The last request that used the slot.
    const due = slot + slotCount * Math.floor((total - 1 - slot) / slotCount);
    if (number !== due) stage.accuse(`slot ${slot} has ${number}, and not ${due}`);
  }
}

export const wrappedCounters = scene({
  about: 'queues work for so long that their 16-bit counters wrap, with a packet lost there',
  isSlow: true,
  draw,
  programs: [asker, answerer],
});
