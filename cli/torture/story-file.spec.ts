import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { keptStory } from '../../torture/testing/kept-story.ts';
import { hca } from '../testing/in-process.ts';

const folder = mkdtempSync(join(tmpdir(), 'hca-story-'));
afterAll(() => rmSync(folder, { recursive: true }));

it('fails for a story file that the machine rejects, and does not report an empty result', async () => {
  const file = join(folder, 'story.json');
  const story = keptStory('reset-with-writes-under-way');
  writeFileSync(file, JSON.stringify({ ...story, set: { ...story.set, 'no.such': 1 } }));
  const { code, out } = await hca('torture', '--story', file);
  expect([code, out]).toEqual([
    1,
    expect.stringMatching(/refuses the configuration of this story: .*no\.such/),
  ]);
  expect(out).not.toContain('Nothing found');
});
