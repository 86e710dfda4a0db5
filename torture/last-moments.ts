/** The trace of a story's last microseconds of traffic: packets between hosts and HCAs before the last completion. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { psPerUs } from '../base/index.ts';
import { traceDefaults, traceFileOf } from '../machine/analysis/index.ts';
import { playStory } from './run-story.ts';
import type { Story } from './story.ts';

const lastPs = 20 * psPerUs;
const linesMax = 24;
const alone = { partition: 'single', shuffleSeed: undefined } as const;

/** @returns lines of the hosts' traces, host after host */
export async function lastMoments(story: Story): Promise<string[]> {
  const first = await playStory(story, alone);
  const times = first.seen.flatMap((seen) => [
    ...(seen?.posts ?? []).map(({ toPs }) => toPs),
    ...(seen?.completions ?? []).map(({ toPs }) => toPs),
  ]);
  if (times.length === 0) return [];
  const endPs = Math.max(...times);
  const folder = mkdtempSync(join(tmpdir(), 'hca-torture-'));
  try {
    const file = join(folder, 'trace.log');
    const filters = [`time=${Math.max(0, endPs - lastPs)}ps..${endPs}ps`];
    const categories = traceDefaults.categories.filter((category) => category !== 'commands');
    const analysis = { trace: { ...traceDefaults, categories, filters, file } };
    await playStory(story, alone, { analysis });
    return [0, 1].flatMap((node) => {
      const lines = readFileSync(traceFileOf(file, `host${node}`), 'utf8')
        .trimEnd()
        .split('\n');
      return lines.slice(-linesMax);
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
