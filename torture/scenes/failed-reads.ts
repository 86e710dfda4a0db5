/**
 * The host refuses or poisons reads of the device, or answers them after the device has abandoned them, and answers others well: exactly the
 * requests without their bytes fail, and bytes under SUCCESS are right. After a failure the asker continues with its next QP.
 *
 *     asker: WRITE, WRITE, … one at a time, or several ─► failed? next QP, pause ─► peer: which bytes are there?
 *     asker: READ, READ, … whose bytes the peer's device cannot read ─► failed? next QP, pause ─► which bytes are here?
 */
import { psPerMs, psPerUs } from '../../base/index.ts';
import type { Draft, Draws, FaultEntry, Played, Side, Stage } from './language/index.ts';
import { connect, differencesOf, isWell, patternOf, READ, scene, times, WRITE } from './language/index.ts';

interface Args {
  /** Numbers, from 0, of the one-read requests that fail; empty if only time decides. */
  readonly failing: readonly number[];
  /** READs, which the peer's device cannot answer, in place of WRITEs. */
  readonly isRead: boolean;
  /** Length of each request, and how many are posted at once. */
  readonly lengths: readonly number[];
  readonly depth: number;
  /** Time between a failure and the next QP. */
  readonly pauseUs: number;
  readonly isLate: boolean;
}

const slotBytes = 8192;
const qpCount = 12;
/** Far longer than all retries. */
const patiencePs = 200 * psPerMs;
const answers = ['lost', 'unsupportedRequest', 'completerAbort', 'poisoned'] as const;

function drawRefused(random: Draws): Draft<Args> {
  const count = 24 + random.below(40);
  const some = new Set(times(1 + random.below(6), () => random.below(count)));
  const failing = [...some].toSorted((left, right) => left - right);
  // Each request needs one read, whatever MRRS and payload are.
  const lengths = times(count, () => 1 + random.below(120));
  const pauseUs = random.below(20);
  const refusals = failing.map(() => random.oneOf(answers));
  const set = {
    'host.memory.sizeMib': 64,
    'pcie.function.completionTimeoutDefaultUs': random.oneOf([50, 1000]),
    'pcie.rootPort.nonPostedHeaders': 1 + random.below(4),
    'pcie.link.updateFcPercent': random.oneOf([0, 25, 100]),
    ...random.maybe(0.5, () => ({ 'dma.tagCount': 1 + random.below(4) })),
  };
  const isRead = random.chance(0.4);
  const faults = failing.map((request, at): FaultEntry => {
    return { read: 'payloadRead', nth: request + 1, answer: refusals[at]!, node: isRead ? 1 : 0 };
  });
  const args = { failing, lengths, depth: 1, pauseUs, isLate: false, isRead };
  return { args, set, faults, climate: 'flawed' };
}

function drawLate(random: Draws): Draft<Args> {
  const tagCount = 4 + random.below(5);
  const timeoutUs = 50;
  // The last of as many reads as there are tags arrives after one timeout, and before a second one has passed.
  const lateness = 1.1 + 0.7 * random.unit();
  const set = {
    'host.memory.sizeMib': 64,
    'pcie.function.completionTimeoutDefaultUs': timeoutUs,
    'pcie.rootComplex.outstandingReadCount': 1,
    'pcie.rootComplex.readLatencyPs': Math.floor((timeoutUs * psPerUs * lateness) / tagCount),
    'dma.tagCount': tagCount,
  };
  const args = {
    failing: [],
    isRead: false,
    lengths: times(4 + random.below(16), () =>
      random.chance(0.4) ? 512 * (1 + random.below(16)) : 1 + random.below(600),
    ),
    depth: 1 + random.below(4),
    pauseUs: random.chance(0.5) ? random.below(60) : 0,
    isLate: true,
  };
  return { args, set, climate: 'flawed' };
}

const draw = (random: Draws): Draft<Args> => (random.chance(0.5) ? drawRefused(random) : drawLate(random));

const open = (stage: Stage<Args>): Promise<Side> =>
  connect(stage, {
    ...{ areaBytes: stage.args.lengths.length * slotBytes, qpCount },
    attributes: { timeoutCode: 10, retryCount: 1 },
  });

function fill(side: Side, { lengths }: Args): void {
  for (const [id, lengthBytes] of lengths.entries()) side.fill(patternOf(id, lengthBytes), id * slotBytes);
}

/** Wrong bytes by request. */
type Wrong = readonly (readonly string[])[];

const wrongIn = (side: Side, { lengths }: Args): Wrong =>
  lengths.map((length, id) =>
    differencesOf('its bytes', side.bytes(id * slotBytes, length), patternOf(id, length)),
  );

interface Told {
  /** Status of each request; null if not posted. */
  readonly statuses: readonly (string | null)[];
  readonly wrong: Wrong;
}

async function asker(stage: Stage<Args>): Promise<Told> {
  const { lengths, depth, pauseUs, isLate, isRead } = stage.args;
  const side = await open(stage);
  if (isRead) await stage.meet('filled');
  else fill(side, stage.args);
  const statuses: (string | null)[] = lengths.map(() => null);
  let qp = 0;
  for (let first = 0; first < lengths.length && qp < qpCount; ) {
    const count = Math.min(depth, lengths.length - first);
    for (let id = first; id < first + count; id++)
      side.post(id, isRead ? READ : WRITE, { qp, offset: id * slotBytes, lengthBytes: lengths[id]! });
    const ended = await side.completions(count, patiencePs);
    for (const { id, status } of ended) statuses[id] = status;
    // A queue or a context that could not be read ends in an event, or breaks the CQ: the rest may end in any way.
    if (isLate && ended.length < count) break;
    first += count;
    if (ended.every(isWell)) continue;
    qp++;
    await stage.sleepUs(pauseUs);
  }
  await stage.meet('over');
  return { statuses, wrong: wrongIn(side, stage.args) };
}

async function answerer(stage: Stage<Args>): Promise<Wrong> {
  const side = await open(stage);
  if (stage.args.isRead) {
    fill(side, stage.args);
    await stage.meet('filled');
  }
  await stage.meet('over');
  await stage.lastBytesIn();
  return wrongIn(side, stage.args);
}

function judge({ args, told: [{ statuses, wrong }, there] }: Played<Args, readonly [Told, Wrong]>): string[] {
  const { failing, isLate, isRead, lengths } = args;
  return lengths.flatMap((lengthBytes, id) => {
    const status = statuses[id]!;
    const name = `${isRead ? 'READ' : 'WRITE'} ${id} of ${lengthBytes} bytes`;
    const found: string[] = [];
    if (status === 'SUCCESS') found.push(...(isRead ? wrong : there)[id]!.map((what) => `${name}: ${what}`));
    if (isLate) return found;
    if (status === null) return [...found, `${name} did not end`];
    const mustFail = failing.includes(id);
    if (mustFail && (status === 'SUCCESS' || status === 'WR_FLUSH_ERR'))
      found.push(`${name} ended in ${status}, and its bytes could not be read`);
    // The responder cannot execute a request that it has accepted: a remote operational error (IBTA 9.7.5.2).
    if (mustFail && isRead && status !== 'REM_OP_ERR')
      found.push(`${name} ended in ${status}, expected REM_OP_ERR`);
    if (!mustFail && status !== 'SUCCESS')
      found.push(`${name} ended in ${status}, and its bytes could be read`);
    return found;
  });
}

export const failedReads = scene({
  about:
    'reads of the device are refused, poisoned, lost, or answered when it has given them up, and others are not',
  hasLateReads: true,
  cable: 'infiniband',
  draw,
  programs: [asker, answerer],
  judge,
});
