/**
 * Numbers at the ends of their fields, with memory that repeats, so that no gigabytes have to move:
 *
 *  - READs whose answers take some 2^23 PSNs in all: with 2^23 - 1 outstanding the next one waits (IBTA volume 1, 9.7.2), and the first one
 *    brings its bytes whatever follows it. The judge of answers counts PSNs on the cable.
 *  - READs and WRITEs of about the longest message (9.8.2.2, table 60; docs/reference/deviations.md, 74): up to it they begin, beyond it they end
 *    in LOC_LEN_ERR.
 *  - requests up to 2^52 bytes from their region, which end in REM_ACCESS_ERR (9.7.4.1.5).
 *
 * Requests that have begun are flushed when both ends leave service.
 */

import { allAccess } from '../../experiments/workloads/index.ts';
import * as ibv from '../../userlib/index.ts';
import type { ArgsOf, Draft, Draws, Ended, Reach, Side, Stage } from './language/index.ts';
import { connect, patternOf, psPerUs, READ, scene, times, topic, WRITE } from './language/index.ts';

const mtuBytes = 256;
const firstBytes = 4096;
const psnsMax = 2 ** 23 - 1;
const regionBytes = 2 ** 31 + 2 ** 22;
const stretchBytes = 2 ** 21;
/** Limit of one buffer: a list of several makes a message that exceeds any limit. */
const bufferBytesMax = 2 ** 30;
const patiencePs = 5000 * psPerUs;

/** Longest message of a reliable connection: it has no more PSNs than may be outstanding. */
const longestBytes = (logLongest: number): number => Math.min(2 ** logLongest, psnsMax * mtuBytes);

function draw(random: Draws) {
  const logLongest = random.chance(0.5) ? 31 : 30;
  const longest = longestBytes(logLongest);
  const count = 2 + random.below(3);
  const total = psnsMax + random.below(4) - 1 - firstBytes / mtuBytes;
  const share = Math.floor(total / count);
  const args = {
    // PSNs of the responses of successive READs on the connection with the shortest packets.
    psnCounts: times(count, (at) => (at === 0 ? total - (count - 1) * share : share)),
    restNs: random.below(20_000),
    // log2 of the longest message.
    logLongest,
    messages: times(random.below(3), () => ({
      lengthBytes: Math.min(regionBytes, longest + random.oneOf([-1, 0, 1, mtuBytes, 4096])),
      isWrite: random.chance(0.4),
    })),
    // Powers of two by which requests miss their region.
    farPowers: times(1 + random.below(3), () => 44 + random.below(9)),
  };
  return {
    args,
    set: { 'hca.capability.logMaxMessageBytes': args.logLongest },
    hasDrawnHardware: random.chance(0.2),
    climate: 'flawed',
  } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;

interface Far {
  readonly side: Side;
  readonly address: number;
  readonly mr: ibv.IbvMr;
}

const farTopic = topic<Reach>('far');

async function open(stage: Stage<Args>): Promise<Far> {
  const { messages, farPowers } = stage.args;
  const side = await connect(stage, {
    areaBytes: 2 * firstBytes,
    qpCount: 1 + messages.length + farPowers.length,
    cap: { maxSendWr: 8, maxSendSge: 4 },
    mtuCode: 1,
  });
  const address = stage.memory.map(regionBytes, { stretchBytes, pageSize: stretchBytes });
  return { side, address, mr: await side.device.region(address, regionBytes, allAccess) };
}

/** Both ends leave service at once: answers of gigabytes end there. */
async function halt(stage: Stage<Args>, side: Side): Promise<void> {
  await stage.meet('halt');
  for (const qp of side.qps) await ibv.modifyQp(qp, { qpState: ibv.IBV_QPS_ERR }, ibv.IBV_QP_STATE);
  await stage.meet('halted');
}

function buffersOf({ address, mr }: Far, lengthBytes: number): ibv.IbvSge[] {
  const buffers: ibv.IbvSge[] = [];
  for (let at = 0; at < lengthBytes; at += bufferBytesMax)
    buffers.push({ addr: address + at, length: Math.min(bufferBytesMax, lengthBytes - at), lkey: mr.lkey });
  return buffers;
}

/** Requests of the asker, and the status in which each must end. */
class Requests {
  readonly #due: string[] = [];
  readonly #stage: Stage<Args>;
  readonly #side: Side;

  constructor(stage: Stage<Args>, side: Side) {
    this.#stage = stage;
    this.#side = side;
  }

  get count(): number {
    return this.#due.length;
  }

  post(qp: number, opcode: number, sgList: ibv.IbvSge[], { address, rkey }: Reach, due: string): void {
    const wrId = this.#due.push(due) - 1;
    const wr = { rdma: { remoteAddr: address, rkey } };
    const request = { wrId, sgList, numSge: sgList.length, opcode, sendFlags: ibv.IBV_SEND_SIGNALED, wr };
    const errno = ibv.postSend(this.#side.qps[qp]!, request, { wr: null, index: 0 });
    if (errno !== 0) this.#stage.accuse(`request ${wrId}: errno ${errno}`);
  }

  judge(ended: readonly Ended[], count: number): void {
    if (ended.length < count) this.#stage.accuse(`${ended.length} of ${count} completions came`);
    for (const { id, status } of ended)
      if (this.#due[id] !== status)
        this.#stage.accuse(`request ${id} ended in ${status}, due ${this.#due[id]}`);
  }
}

/** Reads near and far addresses; then posts requests that are too long, or too far away. */
async function asker(stage: Stage<Args>): Promise<void> {
  const { psnCounts, messages, farPowers, logLongest, restNs } = stage.args;
  const far = await open(stage);
  const { side } = far;
  const there = await stage.take(farTopic);
  const requests = new Requests(stage, side);
  requests.post(0, READ, [side.sge({ lengthBytes: firstBytes })], side.peer, 'SUCCESS');
  for (const count of psnCounts)
    requests.post(0, READ, buffersOf(far, count * mtuBytes), there, 'WR_FLUSH_ERR');
  requests.judge(await side.completions(1, patiencePs), 1);
  side.expect('the first READ', 0, patternOf(1, firstBytes));
  const longest = longestBytes(logLongest);
  for (const [at, { lengthBytes, isWrite }] of messages.entries()) {
    const due = lengthBytes > longest ? 'LOC_LEN_ERR' : 'WR_FLUSH_ERR';
    requests.post(1 + at, isWrite ? WRITE : READ, buffersOf(far, lengthBytes), there, due);
  }
  for (const [at, power] of farPowers.entries()) {
    const beyond = { ...there, address: there.address + 2 ** power };
    const opcode = at % 2 === 0 ? READ : WRITE;
    requests.post(1 + messages.length + at, opcode, [side.sge({ lengthBytes: 8 })], beyond, 'REM_ACCESS_ERR');
  }
  const refused = farPowers.length + messages.filter((one) => one.lengthBytes > longest).length;
  requests.judge(await side.completions(refused, patiencePs), refused);
  await stage.sleepNs(restNs);
  const haltedPs = stage.nowPs;
  await halt(stage, side);
  const flushed = requests.count - 1 - refused;
  requests.judge(await side.completions(flushed, patiencePs), flushed);
  if (stage.nowPs - haltedPs > 2 * patiencePs) stage.accuse('the flush took too long');
  await stage.meet('over');
}

async function answerer(stage: Stage<Args>): Promise<void> {
  const { side, address, mr } = await open(stage);
  side.fill(patternOf(1, firstBytes));
  await stage.put(farTopic, { address, rkey: mr.rkey });
  await halt(stage, side);
  await stage.meet('over');
}

export const farApart = scene({
  about:
    'READs over some 2^23 PSNs, messages of about the longest, and requests up to 2^52 bytes from their region',
  draw,
  programs: [asker, answerer],
});
