/** Checks that the judges find falsified work in hardware and rules that software breaks, in a successful story. */
import { beforeAll, describe, expect, it } from 'vitest';
import { type Played, playStory } from '../run-story.ts';
import { exampleStory } from '../testing/example-story.ts';
import { judgeHeld } from './held.ts';
import { judgeRules } from './rules.ts';

let played: Played;

beforeAll(async () => {
  played = await playStory(
    { ...exampleStory(121), again: undefined },
    { partition: 'single', shuffleSeed: undefined },
  );
}, 60_000);

/** The story with another count on the first node at one of the instants. */
const holding = (when: keyof Played['held'], name: string, count: number): Played => {
  const nodes = played.held[when]!;
  const held = nodes.map((node, index) => (index === 0 ? { ...node, [name]: count } : node));
  return { ...played, held: { ...played.held, [when]: held } };
};

describe('the judge of what is held', () => {
  it('finds nothing in a story that went well, in which software held something', () => {
    expect(played.held.ended?.[0]?.['eventQueues']).toBeGreaterThan(0);
    expect(judgeHeld(played)).toEqual([]);
  });

  it.each(['dmaTags', 'sendRecords', 'requestSlots', 'timers', 'receivedBytes'])(
    'finds %s still held when all programs have ended',
    (name) => {
      expect(judgeHeld(holding('ended', name, 3)).join()).toMatch(`held 3 ${name} when all programs`);
    },
  );

  it('asks for what drivers keep only when they are gone', () => {
    expect(judgeHeld(holding('ended', 'icmPages', 9))).toEqual([]);
    expect(judgeHeld(holding('removed', 'icmPages', 9)).join()).toMatch(/held 9 icmPages when the drivers/);
    expect(judgeHeld(holding('removed', 'iommuPages', 1)).join()).toMatch(/1 iommuPages/);
  });
});

describe('the judge of rules', () => {
  it('finds a rule that software broke, and none where it kept them', () => {
    expect(judgeRules(played)).toEqual([]);
    const broken = {
      rule: 'unknown-key',
      severity: 'error',
      section: '5.4',
      node: 'host0',
      atPs: 1,
      object: 'QP 0x41',
      text: 'no region has this key',
      access: 'a read',
      count: 1,
    } as unknown as Played['lint'][number];
    expect(judgeRules({ ...played, lint: [broken] }).join()).toMatch(/host0 broke the rule unknown-key/);
  });
});
