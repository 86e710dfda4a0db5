/**
 * Hundreds of QPs at each end, all of one CQ, on a device that keeps few of their contexts: every message comes to its own QP,
 * and every completion says so. At the end some plays stop polling: the CQ is overrun, and all its QPs fail at once, with
 * receives in all their queues (IBTA 11.6.3.2).
 */
import { psPerMs, psPerUs } from '../../base/index.ts';
import {
  barrier,
  connectRc,
  createBuffer,
  createRcQps,
  openEndpoint,
  type RcBuffer,
} from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  closeDevice,
  createCq,
  deallocPd,
  deregMr,
  destroyCq,
  destroyQp,
  IBV_QPS_ERR,
  IBV_SEND_SIGNALED,
  IBV_WC_RECV,
  IBV_WC_SUCCESS,
  IBV_WR_SEND,
  type IbvCq,
  type IbvQp,
  IbvWc,
  pollCq,
  postRecv,
  queryQp,
} from '../../userlib/index.ts';
import { askerAndAnswerer, post, someOrder } from './pair.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Args {
  readonly qpCount: number;
  /** QPs of each end that send, one after another: a message of one byte each, which names the round. */
  readonly rounds: readonly (readonly number[])[];
  readonly isOverrun: boolean;
}

const cqEntries = 127;
const receivesPerQp = 3;
/** Until everything that was posted has ended; looks at the CQ come much oftener. */
const lapPs = 100 * psPerMs;

function draw(random: Random): SceneDraft {
  const qpCount = 132 + random.below(60);
  const args: Args = {
    qpCount,
    rounds: Array.from({ length: 1 + random.below(4) }, () =>
      // At both ends each sends and receives one message: no more than the CQ holds.
      someOrder(random, qpCount).slice(0, 1 + random.below(60)),
    ),
    isOverrun: random.chance(0.7),
  };
  const few = (): number => 2 ** random.below(4);
  return {
    args: args as unknown as JsonValue,
    set: {
      'hca.qpcCacheEntries': few(),
      'hca.qpcCacheWays': 1,
      'hca.cqcCacheEntries': 1,
      'hca.cqcCacheWays': 1,
      'pcie.rootComplex.readLatencyPs': random.chance(0.6) ? 1_000_000 * (1 + random.below(10)) : 170_000,
    },
    hasDrawnHardware: false,
    climate: 'flawed',
  };
}

/** One end. */
export const asker = (program: ProgramContext): Promise<JsonValue> => play(program, 0);

/** The other, whose CQ is overrun. */
export const answerer = (program: ProgramContext): Promise<JsonValue> => play(program, 1);

async function play(program: ProgramContext, number: 0 | 1): Promise<JsonValue> {
  const { qpCount, rounds, isOverrun } = program.args as unknown as Args;
  const endpoint = await openEndpoint(program);
  const cq = await createCq(endpoint.context, cqEntries);
  const cap = { maxSendWr: 4, maxRecvWr: receivesPerQp + 1 };
  const qps = await createRcQps(endpoint, qpCount, { send: cq, receive: cq }, cap);
  const area = await createBuffer(endpoint, 2 * qpCount + 1);
  await connectRc(endpoint, qps, 'crowd', null, () => {
    for (const [at, qp] of qps.entries())
      for (let left = receivesPerQp; left > 0; left--) receive(qp, at, area);
  });
  const found: string[] = [];
  for (const [round, senders] of rounds.entries()) {
    program.memory.write(area.address, new Uint8Array(2 * qpCount).fill(round + 1));
    await barrier(program, `round ${round}`);
    for (const at of senders) send(qps[at]!, at, qpCount, area);
    await program.cpu.sleep(lapPs);
    found.push(...(await wrongOf(cq, qps, senders)).map((what) => `round ${round}: ${what}`));
    for (const at of senders) receive(qps[at]!, at, area);
    await barrier(program, `round ${round} is over`);
  }
  if (isOverrun) {
    await barrier(program, 'no program polls');
    if (number === 0) await flood(program, cq, qps, area);
    await program.cpu.sleep(lapPs);
    if (number === 1)
      for (const at of [0, Math.floor(qpCount / 2), qpCount - 1])
        if ((await queryQp(qps[at]!)).qpState !== IBV_QPS_ERR)
          found.push(`QP ${at} did not fail with its CQ`);
  }
  await barrier(program, 'over');
  for (const qp of qps) await destroyQp(qp);
  await destroyCq(cq);
  await deregMr(area.region);
  await deallocPd(endpoint.pd);
  await closeDevice(endpoint.context);
  return found;
}

/** A message by each QP. What becomes of them is left open, but the own CQ is not overrun. */
async function flood(
  { cpu }: ProgramContext,
  cq: IbvCq,
  qps: readonly IbvQp[],
  area: RcBuffer,
): Promise<void> {
  const wcs = Array.from({ length: cqEntries }, () => new IbvWc());
  for (const [at, qp] of qps.entries()) {
    send(qp, at, qps.length, area);
    if (at % 16 === 15) await cpu.sleep(100 * psPerUs);
    if (at % 16 === 15) await pollCq(cq, cqEntries, wcs);
  }
  await cpu.sleep(psPerMs);
  await pollCq(cq, cqEntries, wcs);
}

function receive(qp: IbvQp, at: number, { address, region }: RcBuffer): void {
  postRecv(qp, { wrId: at, sgList: [{ addr: address + at, length: 1, lkey: region.lkey }], numSge: 1 });
}

function send(qp: IbvQp, at: number, qpCount: number, { address, region }: RcBuffer): void {
  post(qp, {
    wrId: qpCount + at,
    sgList: [{ addr: address + qpCount + at, length: 1, lkey: region.lkey }],
    numSge: 1,
    opcode: IBV_WR_SEND,
    sendFlags: IBV_SEND_SIGNALED,
  });
}

/** Takes all that is in the CQ: of each sender one send and one receive. */
async function wrongOf(cq: IbvCq, qps: readonly IbvQp[], senders: readonly number[]): Promise<string[]> {
  const wcs = Array.from({ length: 32 }, () => new IbvWc());
  const found: string[] = [];
  const seen: string[] = [];
  for (let taken = 1; taken > 0; ) {
    taken = await pollCq(cq, wcs.length, wcs);
    for (const { wrId, qpNum, status, opcode } of wcs.slice(0, taken)) {
      const isReceive = opcode === IBV_WC_RECV;
      const at = isReceive ? wrId : wrId - qps.length;
      if (status !== IBV_WC_SUCCESS || qps[at]?.qpNum !== qpNum)
        found.push(`request ${wrId} ended at QP ${qpNum} in status ${status}`);
      seen.push(`${isReceive ? 'receive' : 'send'} ${at}`);
    }
  }
  const due = senders.flatMap((at) => [`send ${at}`, `receive ${at}`]);
  const missing = due.filter((one) => !seen.includes(one));
  if (seen.length !== due.length || missing.length > 0)
    found.push(`${seen.length} of ${due.length} completions; ${missing.join(', ')} never came`);
  return found;
}

export const crowdOfQueues: Scene = {
  name: 'crowd-of-queues',
  about: 'hundreds of QPs of one CQ, which is overrun in the end',
  module: import.meta.url,
  isSlow: true,
  programs: askerAndAnswerer,
  draw,
  judge: ({ results }) => (results as unknown as readonly string[][]).flat(),
};
