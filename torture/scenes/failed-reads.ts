/**
 * Reads of the device that the host refuses, poisons, or answers so late that the device has given them up, and good ones behind
 * them: just those requests fail whose bytes did not come, and what arrives under SUCCESS is right. After a failure the asker goes on with its next QP.
 *
 *     asker: WRITE, WRITE, … one at a time, or several ─► failed? next QP, pause ─► peer: which bytes are there?
 *     asker: READ, READ, … whose bytes the peer's device cannot read ─► failed? next QP, pause ─► which bytes are here?
 */
import { psPerMs, psPerUs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { FaultEntry } from '../../machine/faults/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  IBV_WC_REM_OP_ERR,
  IBV_WC_SUCCESS,
  IBV_WC_WR_FLUSH_ERR,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
} from '../../userlib/index.ts';
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
  /** Requests of one read each that fail, by number from 0; empty where time alone decides. */
  readonly failing: readonly number[];
  /** READs, which the peer's device cannot answer, in place of WRITEs. */
  readonly isRead: boolean;
  /** Length of each request, and how many are posted at once. */
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
  const drawn = {
    failing: failing.toSorted((left, right) => left - right),
    // A read each, whatever MRRS and payload are.
    lengths: Array.from({ length: count }, () => 1 + random.below(120)),
    depth: 1,
    pauseUs: random.below(20),
    isLate: false,
  };
  const answers = drawn.failing.map(() =>
    one(
      random,
      'lost' as const,
      'unsupportedRequest' as const,
      'completerAbort' as const,
      'poisoned' as const,
    ),
  );
  const set = {
    'host.memory.sizeMib': 64,
    'pcie.function.completionTimeoutDefaultUs': one(random, 50, 1000),
    'pcie.rootPort.nonPostedHeaders': 1 + random.below(4),
    'pcie.link.updateFcPercent': one(random, 0, 25, 100),
    ...(random.chance(0.5) ? { 'dma.tagCount': 1 + random.below(4) } : {}),
  };
  const args: Args = { ...drawn, isRead: random.chance(0.4) };
  const faults: FaultEntry[] = args.failing.map((request, index) => ({
    read: 'payloadRead',
    nth: request + 1,
    answer: answers[index]!,
    node: args.isRead ? 1 : 0,
  }));
  return {
    args: args as unknown as JsonValue,
    set,
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
    isRead: false,
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

const byteAt = (request: number, index: number): number =>
  (1 + 53 * request + 7 * index + (index >> 8)) & 0xff;

function fill(program: ProgramContext, { area }: Side, { lengths }: Args): void {
  for (const [request, lengthBytes] of lengths.entries())
    program.memory.write(
      area.address + request * slotBytes,
      Uint8Array.from({ length: lengthBytes }, (_, index) => byteAt(request, index)),
    );
}

/** The first byte of each request that is not what it should be, -1 where there is none, and null where nothing came. */
const wrongIn = (program: ProgramContext, { area }: Side, { lengths }: Args): (number | null)[] =>
  lengths.map((lengthBytes, request) => {
    const bytes = program.memory.read(area.address + request * slotBytes, lengthBytes);
    const at = bytes.findIndex((byte, index) => byte !== byteAt(request, index));
    return bytes.every((byte) => byte === 0) ? null : at;
  });

const connectSides = (program: ProgramContext, { lengths }: Args): Promise<Side> =>
  connectWithPeer(program, {
    areaBytes: lengths.length * slotBytes,
    qpCount: qpCountMax,
    attributes: { timeoutCode: 10, retryCount: 1 },
  });

interface Asked {
  /** Of each request; null of those not posted. */
  readonly statuses: (number | null)[];
  /** What READs brought; null where the peer looks. */
  readonly wrong: (number | null)[] | null;
}

/** @returns {@link Asked} */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { lengths, depth, pauseUs, isLate, isRead } = args;
  const side = await connectSides(program, args);
  if (isRead) await barrier(program, 'filled');
  else fill(program, side, args);
  const statuses: (number | null)[] = lengths.map(() => null);
  let qp = 0;
  for (let first = 0; first < lengths.length && qp < qpCountMax; ) {
    const count = Math.min(depth, lengths.length - first);
    for (let index = first; index < first + count; index++)
      post(
        side.qps[qp]!,
        requestOf(side, index, isRead ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, {
          offset: index * slotBytes,
          lengthBytes: lengths[index]!,
        }),
      );
    const ended = await completionsOf(side, count, patiencePs);
    for (const { id, status } of ended) statuses[id] = status;
    // A queue or a context that could not be read ends in an event, or breaks the CQ: nothing is required of the rest.
    if (isLate && ended.length < count) break;
    first += count;
    if (ended.every(({ status }) => status === IBV_WC_SUCCESS)) continue;
    qp++;
    await program.cpu.sleep(pauseUs * psPerUs);
  }
  await barrier(program, 'over');
  const wrong = isRead ? wrongIn(program, side, args) : null;
  await leave(side);
  return { statuses, wrong };
}

/** @returns what WRITEs brought */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const side = await connectSides(program, args);
  if (args.isRead) {
    fill(program, side, args);
    await barrier(program, 'filled');
  }
  await barrier(program, 'over');
  await lastBytesIn(program);
  const wrong = wrongIn(program, side, args);
  await leave(side);
  return wrong;
}

export const failedReads: Scene = {
  name: 'failed-reads',
  about:
    'reads of the device are refused, poisoned, lost, or answered when it has given them up, and others are not',
  hasLateReads: true,
  module: import.meta.url,
  cable: 'infiniband',
  programs: askerAndAnswerer,
  draw,
  judge({ args, results }) {
    const { failing, isLate, isRead, lengths } = args as unknown as Args;
    const [asked, there] = results as unknown as [Asked, (number | null)[]];
    const { statuses } = asked;
    const wrong = asked.wrong ?? there;
    const verb = isRead ? 'READ' : 'WRITE';
    return lengths.flatMap((lengthBytes, request) => {
      const status = statuses[request];
      const name = `${verb} ${request}`;
      const found: string[] = [];
      if (status === IBV_WC_SUCCESS && wrong[request] !== -1 && byteAt(request, 0) !== 0)
        found.push(`${name} of ${lengthBytes} bytes: byte ${wrong[request]} is wrong under SUCCESS`);
      if (isLate || status === undefined) return found;
      if (status === null) return [...found, `${name} did not end`];
      const mustFail = failing.includes(request);
      if (mustFail && (status === IBV_WC_SUCCESS || status === IBV_WC_WR_FLUSH_ERR))
        found.push(`${name} ended in status ${status}, and its bytes could not be read`);
      // The responder cannot do what it has accepted: a remote operational error (IBTA 9.7.5.2).
      if (mustFail && isRead && status !== IBV_WC_REM_OP_ERR)
        found.push(`${name} ended in status ${status}, expected ${IBV_WC_REM_OP_ERR}`);
      if (!mustFail && status !== IBV_WC_SUCCESS)
        found.push(`${name} ended in status ${status}, and its bytes could be read`);
      return found;
    });
  },
};
