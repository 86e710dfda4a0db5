/**
 * A process ends, or is killed, with everything open and in mid-traffic, while its parent exchanges messages with another peer: its requests end,
 * its peer's time out, none of its objects remains, and other processes continue undisturbed (exit_group(2); ib_uverbs_close).
 *
 *     keeper ── forks ─► leaver ⇄ stayer      one host ⇄ the other
 *     keeper ─────────────────── ⇄ friend
 */
import { psPerNs, psPerUs } from '../../base/index.ts';
import { postRecv } from '../../userlib/index.ts';
import type { ArgsOf, Draft, Draws } from './language/index.ts';
import { connect, on, patternOf, READ, Stage, scene, topic, WRITE } from './language/index.ts';

function draw(random: Draws) {
  const args = {
    isKilled: random.chance(0.6),
    // Time from the connection of both until the end, or the killing.
    lifeNs: random.below(200_000),
    qpCount: 1 + random.below(3),
    requests: 1 + random.below(8),
    lengthBytes: 64 << random.below(10),
    // Rounds of the keeper and its friend.
    rounds: 4 + random.below(12),
  };
  const set = random.maybe(0.3, () => ({ 'pcie.iommu.isEnabled': true }));
  return { args, set, hasDrawnHardware: random.chance(0.4), climate: 'flawed' } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;

/** Short timeouts: the absence of a partner is noticed after some milliseconds. */
const attributes = { timeoutCode: 8, retryCount: 2 };
const connected = topic<true>('connected');
const gone = topic<true>('gone');
const missed = topic<true>('missed');
const over = topic<true>('over');

/** Uses every kind of object, and ends with them open. */
async function leave(stage: Stage<Args>): Promise<void> {
  const { qpCount, requests, lengthBytes, lifeNs, isKilled } = stage.args;
  const areaBytes = requests * lengthBytes;
  const side = await connect(stage, { areaBytes, qpCount, hasChannel: true, attributes, label: 'leaving ' });
  await side.device.cq(8, side.cq.channel);
  await side.device.srq({ maxWr: 8, maxSge: 1 });
  await side.device.buffer(3 * lengthBytes);
  for (const [qp, one] of side.qps.entries())
    for (let id = 0; id < requests; id++) {
      side.post(id, (qp + id) % 2 === 0 ? WRITE : READ, { qp, offset: id * lengthBytes, lengthBytes });
      postRecv(one, { wrId: id, sgList: [], numSge: 0 });
    }
  // A process that is to be killed does not end otherwise.
  await stage.cpu.sleep(isKilled ? 1000 * 1000 * psPerUs : lifeNs * psPerNs);
}

/** Forks the leaver, waits for its end, and continues with its friend. */
async function keeper(stage: Stage<Args>): Promise<void> {
  const { memory, args } = stage;
  const { lengthBytes, lifeNs, isKilled, rounds } = args;
  const side = await connect(stage, { areaBytes: 2 * lengthBytes, label: 'staying ' });
  const child = stage.context.fork('leaver', (context) => leave(new Stage(context, args)));
  if (child === 'ENOMEM') return stage.accuse('fork: ENOMEM');
  await stage.cpu.settle();
  await stage.take(connected);
  const victims: { readonly address: number; readonly bytes: Uint8Array }[] = [];
  const victimBytes = 16 * 4096;
  for (let round = 0; round < rounds; round++) {
    if (round === 1) {
      await stage.sleepNs(lifeNs);
      if (isKilled) child.kill('in mid-traffic');
    }
    side.fill(patternOf(round, lengthBytes));
    side.post(0, WRITE, { lengthBytes });
    side.post(1, READ, { offset: lengthBytes, remoteOffset: 0, lengthBytes });
    await side.expectWell(2);
    side.expect(`what came back in round ${round}`, lengthBytes, patternOf(round, lengthBytes));
    if (!child.isEnded) continue;
    // Its frames must be free again.
    const victim = { address: memory.map(victimBytes), bytes: patternOf(round, victimBytes) };
    stage.expectAt('new memory', victim.address, new Uint8Array(victimBytes));
    memory.write(victim.address, victim.bytes);
    victims.push(victim);
  }
  for (let waited = 0; !child.isEnded || child.memory.space.mappedBytes > 0; waited++) {
    if (waited === 10_000) return stage.accuse('the process that left is still there after a second');
    await stage.sleepUs(100);
  }
  await stage.put(gone, true);
  await stage.take(missed);
  for (const [at, { address, bytes }] of victims.entries())
    stage.expectAt(`new memory ${at}`, address, bytes);
  await stage.put(over, true);
}

async function friend(stage: Stage<Args>): Promise<void> {
  await connect(stage, { areaBytes: 2 * stage.args.lengthBytes, label: 'staying ' });
  await stage.take(over);
}

/** Talks to the leaving process until it stops responding. */
async function stayer(stage: Stage<Args>): Promise<void> {
  const { qpCount, requests, lengthBytes } = stage.args;
  const side = await connect(stage, {
    areaBytes: requests * lengthBytes,
    qpCount,
    attributes,
    label: 'leaving ',
  });
  await stage.put(connected, true);
  const statuses: string[] = [];
  const talk = async (): Promise<void> => {
    for (let id = 0; id < 2; id++) side.post(id, WRITE, { lengthBytes });
    statuses.push(...(await side.completions(2)).map(({ status }) => status));
  };
  const isWell = (): boolean => statuses.every((status) => status === 'SUCCESS');
  for (let round = 0; round < 2000 && isWell(); round++) {
    await talk();
    await stage.sleepUs(50);
  }
  await stage.take(gone);
  if (isWell()) await talk();
  await stage.put(missed, true);
  const broken = statuses.slice(statuses.findIndex((status) => status !== 'SUCCESS'));
  if (isWell()) stage.accuse('requests to a process that is gone continue to succeed');
  else if (broken.some((status, at) => status !== (at === 0 ? 'RETRY_EXC_ERR' : 'WR_FLUSH_ERR')))
    stage.accuse(`statuses ${broken}`);
}

export const leftBehind = scene({
  about: 'a process ends or is killed with everything open and in mid-traffic while others continue',
  draw,
  programs: [keeper, friend, on(1, stayer)],
});
