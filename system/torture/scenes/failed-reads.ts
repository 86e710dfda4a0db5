/**
 * Reads of the device that the host refuses, poisons, or answers so late that the device has given them up, and good ones behind
 * them: just those requests fail whose bytes did not come, and what arrives under SUCCESS is right. After a failure the asker goes on with its next QP.
 *
 *     asker: WRITE, WRITE, … one at a time, or several ─► failed? next QP, pause ─► peer: which bytes are there?
 */
import { psPerMs, psPerUs } from '../../../base/units.ts';
import type { Random } from '../../../sim/index.ts';
import { IBV_WC_SUCCESS, IBV_WC_WR_FLUSH_ERR, IBV_WR_RDMA_WRITE } from '../../../userlib/index.ts';
import type { FaultEntry } from '../../machine/faults/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import { barrier } from '../../workloads/rc-endpoint.ts';
import {
  askerAndAnswerer,
  completionsOf,
  connectWithPeer,
  lastBytesIn,
  leave,
  post,
  requestOf,
  type Side,
} from './pair.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Args {
  /** WRITEs of one read each that fail, by number from 0; empty where time alone decides. */
  readonly failing: readonly number[];
  /** Length of each WRITE, and how many are posted at once. */
  readonly lengths: readonly number[];
  readonly depth: number;
  /** Between a failure and the next QP. */
  readonly pauseUs: number;
  readonly isLate: boolean;
}

const slotBytes = 8192;
const qpCountMax = 12;
/** Far longer than all retries. */
const patiencePs = 200 * psPerMs;

const one = <T>(random: Random, ...choices: readonly T[]): T => choices[random.below(choices.length)]!;

function drawRefused(random: Random): SceneDraft {
  const count = 24 + random.below(40);
  const failing = [...new Set(Array.from({ length: 1 + random.below(6) }, () => random.below(count)))];
  const args: Args = {
    failing: failing.toSorted((left, right) => left - right),
    // A read each, whatever MRRS and payload are.
    lengths: Array.from({ length: count }, () => 1 + random.below(120)),
    depth: 1,
    pauseUs: random.below(20),
    isLate: false,
  };
  const faults: FaultEntry[] = args.failing.map((write) => ({
    read: 'payloadRead',
    nth: write + 1,
    answer: one(random, 'lost', 'unsupportedRequest', 'completerAbort', 'poisoned'),
    node: 0,
  }));
  return {
    args: args as unknown as JsonValue,
    set: {
      'host.memory.sizeMib': 64,
      'pcie.function.completionTimeoutDefaultUs': one(random, 50, 1000),
      'pcie.rootPort.nonPostedHeaders': 1 + random.below(4),
      'pcie.link.updateFcPercent': one(random, 0, 25, 100),
      ...(random.chance(0.5) ? { 'dma.tagCount': 1 + random.below(4) } : {}),
    },
    hasDrawnHardware: false,
    faults,
    climate: 'flawed',
  };
}

function drawLate(random: Random): SceneDraft {
  const tagCount = 4 + random.below(5);
  const timeoutUs = 50;
  // The last of as many reads as there are tags comes after one time-out, and before a second one has passed.
  const lateness = 1.1 + 0.7 * random.unit();
  const readLatencyPs = Math.floor((timeoutUs * psPerUs * lateness) / tagCount);
  const args: Args = {
    failing: [],
    lengths: Array.from({ length: 4 + random.below(16) }, () =>
      random.chance(0.4) ? 512 * (1 + random.below(16)) : 1 + random.below(600),
    ),
    depth: 1 + random.below(4),
    pauseUs: random.chance(0.5) ? random.below(60) : 0,
    isLate: true,
  };
  return {
    args: args as unknown as JsonValue,
    set: {
      'host.memory.sizeMib': 64,
      'pcie.function.completionTimeoutDefaultUs': timeoutUs,
      'pcie.rootComplex.outstandingReadCount': 1,
      'pcie.rootComplex.readLatencyPs': readLatencyPs,
      'dma.tagCount': tagCount,
    },
    hasDrawnHardware: false,
    climate: 'flawed',
  };
}

const draw = (random: Random): SceneDraft => (random.chance(0.5) ? drawRefused(random) : drawLate(random));

const byteAt = (write: number, index: number): number => (1 + 53 * write + 7 * index + (index >> 8)) & 0xff;

const connectSides = (program: ProgramContext, { lengths }: Args): Promise<Side> =>
  connectWithPeer(program, {
    areaBytes: lengths.length * slotBytes,
    qpCount: qpCountMax,
    attributes: { timeoutCode: 10, retryCount: 1 },
  });

/** @returns status of each WRITE, null of those not posted */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { lengths, depth, pauseUs, isLate } = args;
  const side = await connectSides(program, args);
  for (const [write, lengthBytes] of lengths.entries())
    program.memory.write(
      side.area.address + write * slotBytes,
      Uint8Array.from({ length: lengthBytes }, (_, index) => byteAt(write, index)),
    );
  const statuses: (number | null)[] = lengths.map(() => null);
  let qp = 0;
  for (let write = 0; write < lengths.length && qp < qpCountMax; ) {
    const count = Math.min(depth, lengths.length - write);
    for (let index = write; index < write + count; index++)
      post(
        side.qps[qp]!,
        requestOf(side, index, IBV_WR_RDMA_WRITE, {
          offset: index * slotBytes,
          lengthBytes: lengths[index]!,
        }),
      );
    const ended = await completionsOf(side, count, patiencePs);
    for (const { id, status } of ended) statuses[id] = status;
    // A queue or a context that could not be read ends in an event, or breaks the CQ: nothing is said of the rest.
    if (isLate && ended.length < count) break;
    write += count;
    if (ended.every(({ status }) => status === IBV_WC_SUCCESS)) continue;
    qp++;
    await program.cpu.sleep(pauseUs * psPerUs);
  }
  await barrier(program, 'over');
  await leave(side);
  return statuses;
}

/** @returns the first byte of each WRITE that is not what it should be, -1 where there is none, and null where nothing came */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const side = await connectSides(program, args);
  await barrier(program, 'over');
  await lastBytesIn(program);
  const wrong = args.lengths.map((lengthBytes, write) => {
    const bytes = program.memory.read(side.area.address + write * slotBytes, lengthBytes);
    const at = bytes.findIndex((byte, index) => byte !== byteAt(write, index));
    return bytes.every((byte) => byte === 0) ? null : at;
  });
  await leave(side);
  return wrong;
}

export const failedReads: Scene = {
  name: 'failed-reads',
  about:
    'reads of the device are refused, poisoned, lost, or answered when it has given them up, and others are not',
  hasLateReads: true,
  module: import.meta.url,
  programs: askerAndAnswerer,
  draw,
  judge({ args, results }) {
    const { failing, isLate, lengths } = args as unknown as Args;
    const [statuses, wrong] = results as unknown as [(number | null)[], (number | null)[]];
    return lengths.flatMap((lengthBytes, write) => {
      const status = statuses[write];
      const found: string[] = [];
      if (status === IBV_WC_SUCCESS && wrong[write] !== -1 && byteAt(write, 0) !== 0)
        found.push(`WRITE ${write} of ${lengthBytes} bytes: byte ${wrong[write]} is wrong under SUCCESS`);
      if (isLate || status === undefined) return found;
      if (status === null) return [...found, `WRITE ${write} did not end`];
      const mustFail = failing.includes(write);
      if (mustFail && (status === IBV_WC_SUCCESS || status === IBV_WC_WR_FLUSH_ERR))
        found.push(`WRITE ${write} ended in status ${status}, and its bytes could not be read`);
      if (!mustFail && status !== IBV_WC_SUCCESS)
        found.push(`WRITE ${write} ended in status ${status}, and its bytes could be read`);
      return found;
    });
  },
};
