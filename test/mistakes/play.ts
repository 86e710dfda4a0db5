/** Plays the stories of the seeds that come in, one a line, and prints what came of each as one line of JSON. Started by known-stories.ts. */
import { createInterface } from 'node:readline';
import { runStory } from '../../system/torture/run-story.ts';
import { storyOfSeed } from '../../system/torture/story-of-seed.ts';

for await (const line of createInterface({ input: process.stdin })) {
  const seed = Number(line);
  const beganMs = performance.now();
  const { findings } = await runStory(storyOfSeed(seed));
  const { user, system } = process.cpuUsage();
  process.stdout.write(
    `${JSON.stringify({ seed, findings: findings.slice(0, 3), ms: performance.now() - beganMs, cpuMs: (user + system) / 1000 })}\n`,
  );
}
process.exit();
