/** Plays the stories of the seeds that come in, one a line, and prints what came of each as one line of JSON. Started by story-player.ts. */
import '../../runtime/node.ts';
import { createInterface } from 'node:readline';
import { runStory } from '../../torture/run-story.ts';
import { storyOfSeed } from '../../torture/story-of-seed.ts';

let beganMs = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const { findings } = await runStory(storyOfSeed(Number(line)));
  const { user, system } = process.cpuUsage();
  const nowMs = (user + system) / 1000;
  process.stdout.write(`${JSON.stringify({ findings: findings.slice(0, 3), cpuMs: nowMs - beganMs })}\n`);
  beganMs = nowMs;
}
process.exit();
