/**
 * A program on every core of a host sleeps, and one waits for messages with deadlines that are mostly cancelled: each sleep has the requested length
 * with any number of others, in either part of the event queue: sleeps near its border (sim/event-queue.ts), and much longer ones
 * (nanosleep(2)).
 */
import { type Draft, type Draws, on, psPerUs, type Stage, scene, sumOf, times } from './language/index.ts';
import { sender, type Waits, waiter } from './timed-waits.ts';

const sleeperCount = 9;
/** Up to here an event is a near one: 4096 slots of 1024 ps. */
const nearPs = 4096 * 1024;
/** Interrupts, their handlers and switches between threads. */
const slackPs = 1000 * psPerUs;

interface Args extends Waits {
  /** Sleeps of each sleeper, one after the other. */
  readonly sleepsPs: readonly (readonly number[])[];
}

function draw(random: Draws): Draft<Args> {
  const nearShare = random.oneOf([0, 0.5, 1]);
  const sleepPs = (): number =>
    random.chance(nearShare)
      ? nearPs - 60_000 + random.below(80_000)
      : 5 * psPerUs + random.below(random.chance(0.5) ? 60 * psPerUs : 400 * psPerUs);
  const messageCount = 8 + random.below(9);
  const args: Args = {
    waits: times(messageCount + 4, () => ({
      kind: random.chance(0.8) ? 'completion' : 'sleep',
      lengthNs: 20_000 + random.below(500_000),
    })),
    pausesNs: times(messageCount, () => 1000 + random.below(80_000)),
    sleepsPs: times(sleeperCount, () => {
      const sleeps: number[] = [];
      while (sumOf(sleeps) < 4000 * psPerUs && sleeps.length < 150) sleeps.push(sleepPs());
      return sleeps;
    }),
  };
  return { args, set: { 'host.memory.sizeMib': 64, 'host.core.count': sleeperCount + 1 } };
}

async function sleeper(stage: Stage<Args>): Promise<void> {
  const { cpu, context } = stage;
  // The sleepers of node 0 are its programs except the first.
  for (const lengthPs of stage.args.sleepsPs[Number(/\d+$/.exec(context.name)?.[0]) - 2]!) {
    await cpu.settle();
    const fromPs = stage.nowPs;
    await cpu.sleep(lengthPs);
    const lastedPs = stage.nowPs - fromPs;
    if (lastedPs < lengthPs || lastedPs > lengthPs + slackPs)
      stage.accuse(`a sleep of ${lengthPs} ps lasted ${lastedPs} ps`);
  }
}

export const sleepers = scene({
  about: 'a program on every core sleeps, and one waits with deadlines that messages take back',
  draw,
  programs: [waiter, sender, ...times(sleeperCount, () => on(0, sleeper))],
});
