/**
 * A program on every core of a host sleeps, and one of them waits for messages with deadlines that are mostly taken back: each
 * sleep lasts as long as it was asked for, however many others are under way, and wherever the kernel of time keeps it: sleeps
 * that are nearly as long as the near events reach (sim/event-queue.ts), and much longer ones (nanosleep(2)).
 */
import { psPerUs } from '../../base/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import { nowPs } from './pair.ts';
import { wrongOf } from './patterns.ts';
import type { Scene, SceneDraft } from './scene.ts';

export { sender, waiter } from './timed-waits.ts';

const sleeperCount = 9;
/** Up to here an event is a near one: 4096 slots of 1024 ps. */
const nearPs = 4096 * 1024;

interface Args {
  readonly waits: readonly { readonly kind: string; readonly lengthNs: number }[];
  readonly pausesNs: readonly number[];
  /** Of each sleeper, one after the other. */
  readonly sleepsPs: readonly (readonly number[])[];
}

function draw(random: Random): SceneDraft {
  const nearShare = [0, 0.5, 1][random.below(3)]!;
  const sleepPs = (): number =>
    random.chance(nearShare)
      ? nearPs - 60_000 + random.below(80_000)
      : 5 * psPerUs + random.below(random.chance(0.5) ? 60 * psPerUs : 400 * psPerUs);
  const messageCount = 8 + random.below(9);
  const args: Args = {
    waits: Array.from({ length: messageCount + 4 }, () => ({
      kind: random.chance(0.8) ? 'completion' : 'sleep',
      lengthNs: 20_000 + random.below(500_000),
    })),
    pausesNs: Array.from({ length: messageCount }, () => 1000 + random.below(80_000)),
    sleepsPs: Array.from({ length: sleeperCount }, () => {
      const sleeps: number[] = [];
      for (let sum = 0; sum < 4000 * psPerUs && sleeps.length < 150; sum += sleeps.at(-1)!)
        sleeps.push(sleepPs());
      return sleeps;
    }),
  };
  return {
    args: args as unknown as JsonValue,
    set: { 'host.memory.sizeMib': 64, 'host.core.count': sleeperCount + 1 },
    hasDrawnHardware: false,
  };
}

/** Interrupts, their handlers and switches between threads. */
const slackPs = 1000 * psPerUs;

export async function sleeper(program: ProgramContext): Promise<JsonValue> {
  const { sleepsPs } = program.args as unknown as Args;
  const { cpu, name } = program;
  const wrong: string[] = [];
  // Those of node 0 are its programs but for the first.
  for (const lengthPs of sleepsPs[Number(/\d+$/.exec(name)?.[0]) - 2]!) {
    await cpu.settle();
    const fromPs = nowPs(program);
    await cpu.sleep(lengthPs);
    const lastedPs = nowPs(program) - fromPs;
    if (lastedPs < lengthPs || lastedPs > lengthPs + slackPs)
      wrong.push(`a sleep of ${lengthPs} ps lasted ${lastedPs} ps`);
  }
  return { wrong };
}

export const sleepers: Scene = {
  name: 'sleepers',
  about: 'a program on every core sleeps, and one waits with deadlines that messages take back',
  module: import.meta.url,
  programs: [
    { node: 0, exportName: 'waiter' },
    { node: 1, exportName: 'sender' },
    ...Array.from({ length: sleeperCount }, () => ({ node: 0, exportName: 'sleeper' })),
  ],
  draw,
  judge: ({ results }) => wrongOf(results),
};
