/**
 * Reads seeds from standard input, one a line, plays their stories, and prints each outcome as one line of JSON. A line is `17`, `two-ways 17`
 * for a scene, `served 17` for a story of a served device, or `fabric 17` for one of a fabric. story-player.ts starts this program.
 */
import '../../runtime/node.ts';
import { createInterface } from 'node:readline';
import {
  type Finding,
  fabricStoryOf,
  playFabricStory,
  playServedStory,
  runStory,
  storyOfSeed,
} from '../../torture/index.ts';

async function playSeed(seed: number, scene: string | undefined): Promise<readonly Finding[]> {
  if (scene === 'fabric') return (await playFabricStory(fabricStoryOf(seed))).findings;
  return (await runStory(storyOfSeed(seed, scene))).findings;
}

/** Short: one rough guest between two normal ones. */
const playServed = (seed: number): readonly Finding[] =>
  playServedStory({ seed, lives: 1, actions: 500, watchesMemory: false }).findings.map(({ kind, text }) => ({
    judge: kind,
    what: text,
  }));

let beganMs = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const [seed, kind] = line.split(' ').toReversed();
  const findings = kind === 'served' ? playServed(Number(seed)) : await playSeed(Number(seed), kind);
  const { user, system } = process.cpuUsage();
  const nowMs = (user + system) / 1000;
  process.stdout.write(`${JSON.stringify({ findings: findings.slice(0, 3), cpuMs: nowMs - beganMs })}\n`);
  beganMs = nowMs;
}
process.exit();
