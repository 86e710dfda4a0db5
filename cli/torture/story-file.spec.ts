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

it('fails for a story over iWARP with a fault that names a header of InfiniBand’s transport', async () => {
  const file = join(folder, 'story.json');
  const story = keptStory('reset-with-writes-under-way');
  const iwarp = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.transport': 'iwarp' };
  const faults = [{ packet: 'lost', psn: '+2', node: 0 }];
  writeFileSync(file, JSON.stringify({ ...story, set: { ...story.set, ...iwarp }, faults }));
  const { code, out } = await hca('torture', '--story', file);
  expect([code, out]).toEqual([
    1,
    expect.stringMatching(/refuses the configuration of this story: fault 1 .packet., field psn, is "\+2"/),
  ]);
});

it.each([
  ['no JSON', '{', /^hca: story is .*story\.json.*, expected a file that --save wrote/],
  ['a value', '7', /^hca: story is 7, expected an object/],
  [
    'a field that stories do not have',
    '{"mood":1}',
    /story has a field that is "mood", expected one of seed/,
  ],
])('refuses a file that holds %s with exit code 2', async (_, text, message) => {
  const file = join(folder, 'story.json');
  writeFileSync(file, text);
  const { code, out, err } = await hca('torture', '--story', file);
  expect([code, out]).toEqual([2, '']);
  expect(err).toMatch(message);
  expect(err).not.toMatch(/ at .*:\d+:\d+/);
});
