/**
 * Numbers at the ends of their fields, with memory that repeats, so that nothing has to move gigabytes:
 *
 *  - READs whose answers take some 2^23 PSNs in all: with 2^23 - 1 outstanding the next one waits (IBTA volume 1, 9.7.2), and the first one
 *    brings its bytes whatever follows it. The judge of answers counts PSNs on the cable.
 *  - READs and WRITEs of about the longest message (9.8.2.2, table 60; docs/deviations.md, 74): up to it they begin, beyond it they end
 *    in LOC_LEN_ERR.
 *  - requests up to 2^52 bytes from their region, which end in REM_ACCESS_ERR (9.7.4.1.5).
 *
 * What has begun is flushed when both ends leave service.
 */
import { psPerNs, psPerUs } from '../../base/index.ts';
import { allAccess, barrier } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  deregMr,
  IBV_QP_STATE,
  IBV_QPS_ERR,
  IBV_SEND_SIGNALED,
  IBV_WC_LOC_LEN_ERR,
  IBV_WC_REM_ACCESS_ERR,
  IBV_WC_SUCCESS,
  IBV_WC_WR_FLUSH_ERR,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  type IbvMr,
  type IbvSge,
  modifyQp,
  type PortAttr,
  postSend,
  regMr,
} from '../../userlib/index.ts';
import {
  askerAndAnswerer,
  completionsOf,
  connectWithPeer,
  type Ended,
  leave,
  nowPs,
  type Side,
} from './pair.ts';
import { differencesOf, patternOf, type Wrong, wrongOf } from './patterns.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Args {
  /** PSNs of the answers of READs that follow each other on one connection of the shortest packets. */
  readonly psnCounts: readonly number[];
  readonly restNs: number;
  /** log2 of the longest message. */
  readonly logLongest: number;
  readonly messages: readonly { readonly lengthBytes: number; readonly isWrite: boolean }[];
  /** Powers of two by which requests miss their region. */
  readonly farPowers: readonly number[];
}

const mtuBytes = 256;
const firstBytes = 4096;
const psnsMax = 2 ** 23 - 1;
const regionBytes = 2 ** 31 + 2 ** 22;
const stretchBytes = 2 ** 21;
/** Of one buffer: a list of several makes a message that is longer than any. */
const bufferBytesMax = 2 ** 30;
const patiencePs = 5000 * psPerUs;

function draw(random: Random): SceneDraft {
  const logLongest = random.chance(0.5) ? 31 : 30;
  const longest = longestBytes(logLongest);
  const count = 2 + random.below(3);
  const total = psnsMax + random.below(4) - 1 - firstBytes / mtuBytes;
  const share = Math.floor(total / count);
  const args: Args = {
    psnCounts: Array.from({ length: count }, (_, at) => (at === 0 ? total - (count - 1) * share : share)),
    restNs: random.below(20_000),
    logLongest,
    messages: Array.from({ length: random.below(3) }, () => ({
      lengthBytes: Math.min(regionBytes, longest + [-1, 0, 1, mtuBytes, 4096][random.below(5)]!),
      isWrite: random.chance(0.4),
    })),
    farPowers: Array.from({ length: 1 + random.below(3) }, () => 44 + random.below(9)),
  };
  return {
    args: args as unknown as JsonValue,
    set: { 'hca.capability.logMaxMessageBytes': args.logLongest },
    hasDrawnHardware: random.chance(0.2),
    climate: 'flawed',
  };
}

/** Of a reliable connection: no more PSNs than may be outstanding. */
const longestBytes = (logLongest: number): number => Math.min(2 ** logLongest, psnsMax * mtuBytes);

const qpCountOf = ({ messages, farPowers }: Args): number => 1 + messages.length + farPowers.length;

interface Far {
  readonly side: Side;
  readonly address: number;
  readonly mr: IbvMr;
}

async function open(program: ProgramContext): Promise<Far> {
  const args = program.args as unknown as Args;
  const side = await connectWithPeer(program, {
    areaBytes: 2 * firstBytes,
    qpCount: qpCountOf(args),
    cap: { maxSendWr: 8, maxSendSge: 4 },
    attributes: { pathMtu: 1 as PortAttr['activeMtu'] },
  });
  const address = program.memory.map(regionBytes, { stretchBytes, pageSize: stretchBytes });
  const mr = await regMr(side.endpoint.pd, address, regionBytes, allAccess);
  return { side, address, mr };
}

/** Both ends leave service at once: answers of gigabytes end there. */
async function halt(side: Side): Promise<void> {
  await barrier(side.endpoint.program, 'halt');
  for (const qp of side.qps) await modifyQp(qp, { qpState: IBV_QPS_ERR }, IBV_QP_STATE);
  await barrier(side.endpoint.program, 'halted');
}

async function close({ side, mr }: Far): Promise<void> {
  await barrier(side.endpoint.program, 'over');
  await deregMr(mr);
  await leave(side);
}

function buffersOf({ address, mr }: Far, lengthBytes: number): IbvSge[] {
  const buffers: IbvSge[] = [];
  for (let at = 0; at < lengthBytes; at += bufferBytesMax)
    buffers.push({ addr: address + at, length: Math.min(bufferBytesMax, lengthBytes - at), lkey: mr.lkey });
  return buffers;
}

/** Reads what comes first, and far more; then asks for what is too long, or too far away. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const far = await open(program);
  const { side } = far;
  const there = (await program.exchange.take('far')) as { address: number; rkey: number };
  const wrong: string[] = [];
  const due = new Map<number, readonly number[]>();
  const ask = (
    qp: number,
    opcode: number,
    sgList: readonly IbvSge[],
    reach: { remoteAddr: number; rkey: number },
    statuses: readonly number[],
  ): void => {
    const wrId = due.size;
    due.set(wrId, statuses);
    const request = {
      wrId,
      sgList: [...sgList],
      numSge: sgList.length,
      opcode,
      sendFlags: IBV_SEND_SIGNALED,
    };
    const errno = postSend(side.qps[qp]!, { ...request, wr: { rdma: reach } }, { wr: null, index: 0 });
    if (errno !== 0) wrong.push(`request ${wrId}: errno ${errno}`);
  };
  const note = (ended: readonly Ended[]): void => {
    for (const { id, status } of ended)
      if (due.get(id)?.includes(status) !== true)
        wrong.push(`request ${id} ended in status ${status}, due ${due.get(id)?.join(' or ')}`);
  };
  const begin = { remoteAddr: there.address, rkey: there.rkey };
  const first = { addr: side.area.address, length: firstBytes, lkey: side.area.region.lkey };
  ask(0, IBV_WR_RDMA_READ, [first], { remoteAddr: side.peer.address, rkey: side.peer.rkey }, [
    IBV_WC_SUCCESS,
  ]);
  for (const count of args.psnCounts)
    ask(0, IBV_WR_RDMA_READ, buffersOf(far, count * mtuBytes), begin, [IBV_WC_WR_FLUSH_ERR]);
  note(await completionsOf(side, 1, patiencePs));
  wrong.push(
    ...differencesOf('the first READ', program.memory.read(first.addr, firstBytes), patternOf(1, firstBytes)),
  );
  const longest = longestBytes(args.logLongest);
  for (const [at, { lengthBytes, isWrite }] of args.messages.entries())
    ask(1 + at, isWrite ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, buffersOf(far, lengthBytes), begin, [
      lengthBytes > longest ? IBV_WC_LOC_LEN_ERR : IBV_WC_WR_FLUSH_ERR,
    ]);
  for (const [at, power] of args.farPowers.entries())
    ask(
      1 + args.messages.length + at,
      at % 2 === 0 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
      [{ ...first, length: 8 }],
      { remoteAddr: there.address + 2 ** power, rkey: there.rkey },
      [IBV_WC_REM_ACCESS_ERR],
    );
  const refused = args.farPowers.length + args.messages.filter((one) => one.lengthBytes > longest).length;
  note(await completionsOf(side, refused, patiencePs));
  await program.cpu.sleep(args.restNs * psPerNs);
  const haltedPs = nowPs(program);
  await halt(side);
  note(await completionsOf(side, due.size - 1 - refused, patiencePs));
  if (nowPs(program) - haltedPs > 2 * patiencePs) wrong.push('the flush took too long');
  await close(far);
  return { wrong };
}

export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const far = await open(program);
  const { side, address, mr } = far;
  program.memory.write(side.area.address, patternOf(1, firstBytes));
  await program.exchange.put('far', { address, rkey: mr.rkey });
  await halt(side);
  await close(far);
  return { wrong: [] };
}

export const farApart: Scene = {
  name: 'far-apart',
  about:
    'READs over some 2^23 PSNs, messages of about the longest, and requests up to 2^52 bytes from their region',
  module: import.meta.url,
  programs: askerAndAnswerer,
  draw,
  judge: ({ results }) => wrongOf(results as unknown as readonly Wrong[]),
};
