/**
 * A queue that has worked for so long that its 16-bit WQE counters begin anew, often with a packet lost at that place: every
 * request is carried out once and completes in its turn (interface sheet 6.2, 6.6; IBTA 10.8.3).
 */
import { psPerNs, psPerUs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  IBV_SEND_SIGNALED,
  IBV_WC_SUCCESS,
  IBV_WR_RDMA_WRITE,
  IBV_WR_SEND,
  IbvWc,
  pollCq,
  postRecv,
} from '../../userlib/index.ts';
import {
  askerAndAnswerer,
  completionsOf,
  connectWithPeer,
  leave,
  post,
  requestOf,
  type Side,
} from './pair.ts';
import { wrongOf } from './patterns.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Args {
  readonly opcode: number;
  /** Requests posted at once; the last of them is signalled. */
  readonly burst: number;
  readonly total: number;
}

const wrap = 65_536;
const slotCount = 512;
const slotBytes = 8;
/** Receives that are posted ahead. */
const receiveCount = 128;

function draw(random: Random): SceneDraft {
  const args: Args = {
    opcode: random.chance(0.5) ? IBV_WR_SEND : IBV_WR_RDMA_WRITE,
    burst: 1 + random.below(100),
    total: wrap + 1 + random.below(300),
  };
  const nth = wrap - 20 + random.below(args.total - wrap + 20);
  const packet = random.chance(0.5) ? 'lost' : 'duplicated';
  return {
    args: { ...args },
    hasDrawnHardware: false,
    ...(random.chance(0.6)
      ? {
          climate: 'lossy',
          faults: [{ packet, nth, node: 0, ...(packet === 'lost' ? {} : { delay: '3us' }) }],
        }
      : {}),
  };
}

const attributes = { timeoutCode: 8, rnrTimerCode: 1 };

const numberIn = (bytes: Uint8Array, slot: number): number =>
  new DataView(bytes.buffer, bytes.byteOffset).getUint32(slot * slotBytes);

/** The number of the last request that used a slot. */
const lastOf = (slot: number, total: number): number =>
  slot + slotCount * Math.floor((total - 1 - slot) / slotCount);

/** Posts burst after burst, each request with its own number. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const { opcode, burst, total } = program.args as unknown as Args;
  const side = await connectWithPeer(program, {
    areaBytes: slotCount * slotBytes,
    cap: { maxSendWr: burst },
    attributes,
  });
  const number = new Uint8Array(slotBytes);
  const view = new DataView(number.buffer);
  const wrong: string[] = [];
  for (let sent = 0; sent < total && wrong.length === 0; ) {
    const end = Math.min(total, sent + burst);
    for (; sent < end; sent++) {
      const offset = (sent % slotCount) * slotBytes;
      view.setUint32(0, sent);
      program.memory.write(side.area.address + offset, number);
      const request = requestOf(side, sent, opcode, { offset, lengthBytes: slotBytes });
      const sendFlags = sent === end - 1 ? IBV_SEND_SIGNALED : 0;
      const errno = post(side.qps[0]!, { ...request, sendFlags });
      if (errno !== 0) wrong.push(`request ${sent} refused with ${errno}`);
    }
    const [ended] = await completionsOf(side, 1);
    if (ended?.id !== end - 1 || ended.status !== IBV_WC_SUCCESS)
      wrong.push(`request ${end - 1} ended as ${JSON.stringify(ended ?? null)}`);
  }
  await barrier(program, 'sent');
  await leave(side);
  return { wrong };
}

/** Has the numbers written into its area, or receives them. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const { opcode, total } = program.args as unknown as Args;
  const isSend = opcode === IBV_WR_SEND;
  const receive = ({ area, qps }: Omit<Side, 'peer'>, id: number): void => {
    const addr = area.address + (id % slotCount) * slotBytes;
    postRecv(qps[0]!, { wrId: id, sgList: [{ addr, length: slotBytes, lkey: area.region.lkey }], numSge: 1 });
  };
  const side = await connectWithPeer(program, {
    areaBytes: slotCount * slotBytes,
    cap: { maxRecvWr: receiveCount },
    attributes,
    beforeReady: (early) => {
      for (let id = 0; isSend && id < receiveCount; id++) receive(early, id);
    },
  });
  const wrong = isSend ? await receiveAll(side, total, receive) : [];
  await barrier(program, 'sent');
  // The ACKs do not wait for the last bytes to be in memory.
  await program.cpu.sleep(20 * psPerUs);
  const bytes = program.memory.read(side.area.address, slotCount * slotBytes);
  for (let slot = 0; slot < slotCount && wrong.length < 5; slot++)
    if (numberIn(bytes, slot) !== lastOf(slot, total))
      wrong.push(`slot ${slot} has ${numberIn(bytes, slot)}, and not ${lastOf(slot, total)}`);
  await leave(side);
  return { wrong };
}

async function receiveAll(
  side: Side,
  total: number,
  receive: (side: Side, id: number) => void,
): Promise<string[]> {
  const { cpu } = side.endpoint.program;
  const wcs = Array.from({ length: 32 }, () => new IbvWc());
  let taken = 0;
  for (let idle = 0; taken < total && idle < 100_000; ) {
    const count = await pollCq(side.cq, wcs.length, wcs);
    for (const { wrId, status, byteLen } of wcs.slice(0, count)) {
      if (wrId !== taken || status !== IBV_WC_SUCCESS || byteLen !== slotBytes)
        return [`receive ${taken} ended as ${wrId}, status ${status}, ${byteLen} bytes`];
      taken++;
      receive(side, taken + receiveCount - 1);
    }
    idle = count > 0 ? 0 : idle + 1;
    if (count === 0) await cpu.sleep(200 * psPerNs);
  }
  return taken === total ? [] : [`${taken} of ${total} messages came`];
}

export const wrappedCounters: Scene = {
  name: 'wrapped-counters',
  about: 'queues work for so long that their 16-bit counters begin anew, with a packet lost there',
  module: import.meta.url,
  isSlow: true,
  programs: askerAndAnswerer,
  draw,
  judge: ({ results }) => wrongOf(results),
};
